"""Static counts of real kernels against what the virtual GPU counts when it runs them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest

from conv_compiler.commands.model_table import LOOK_BARRIERS, count_on_virtual_gpu, model
from conv_compiler.compiler.compile import compile
from conv_compiler.model.facts import CHIPS, chip_facts
from conv_compiler.model.module import model_module
from conv_compiler.problem.canonical import equivalent_wgrad
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.instruction_counts import mma_counts, mma_of
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import find_target
from tests.chips import each
from tests.turns import in_turn

PROBLEMS = (
    ConvProblem(n=8, k=64, c=64, image=(14, 14), filter=(3, 3), pad_low=(1, 1)),
    ConvProblem(n=4, k=40, c=24, image=(9, 9), filter=(1, 1), stride=(2, 2), dtype="bf16"),
)
# Whose waves all have work; those without would be counted by the model.
VECTOR = ConvProblem(n=2, k=1, c=1, g=64, image=(8, 8), filter=(2, 2), dtype="f32")
CLASSES = {
    "matrix": "matrix",
    "lds_read": "lds_reads",
    "lds_write": "lds_writes",
    "global_read": "loads",
    "global_write": "stores",
    "valu": "valu",
    "salu": "salu",
    "branch": "branches",
}
# Guards on lanes and the odd workgroup's other path.
TOLERANCE = 0.05


@pytest.mark.parametrize(
    ("problem", "strategy"), [*((one, None) for one in PROBLEMS), (VECTOR, "vector_gemm")]
)
@pytest.mark.parametrize("chip", each(CHIPS))
def test_static_counts_are_those_of_a_run(chip, problem, strategy):
    artifact = compile(problem, chip, strategy)
    static = model_module(artifact.vmfb)
    counted = {row.kernel: row for row in count_on_virtual_gpu(artifact.vmfb)}
    assert {one.code.name for one in static.kernels} == set(counted)
    launches = Counter(one.code.name for one in static.kernels)
    for one in static.kernels:
        row, times = counted[one.code.name], launches[one.code.name]
        assert (row.workgroups, row.waves) == (
            times * one.launch.workgroups,
            times * one.launch.workgroups * one.launch.waves,
        )
        for kind, name in CLASSES.items():
            expected = row.instructions.get(kind, 0)
            if kind == "lds_write" and any(load.to_lds for load in one.code.code):
                expected += row.instructions["global_read"]  # each of these loads writes to LDS
            found = getattr(one.counts.wave, name) * row.waves
            assert found == pytest.approx(expected, rel=TOLERANCE, abs=row.waves), (one, kind)
        assert one.counts.wave.matrix_flops * row.waves == pytest.approx(row.matrix_flops)


def test_a_run_takes_the_place_of_static_counts():
    artifact = compile(PROBLEMS[0], "gfx942")
    counters = count_on_virtual_gpu(artifact.vmfb)
    static, run = model_module(artifact.vmfb), model_module(artifact.vmfb, counters)
    for before, after, row in zip(static.kernels, run.kernels, counters, strict=True):
        assert (before.counts.source, after.counts.source) == ("static", "virtual")
        assert after.code.name == row.kernel
        wave = after.counts.wave
        for kind, name in CLASSES.items():
            assert getattr(wave, name) * row.waves == pytest.approx(row.instructions.get(kind, 0))
        conflicts = wave.lds_conflict_cycles * row.waves
        assert conflicts == pytest.approx(row.lds_conflict_cycles)
        lines = row.fetched_lines + row.global_write_lines
        assert wave.line_bytes * row.waves == pytest.approx(128 * lines)
        looked_up = row.global_read_lines + row.global_write_lines
        assert wave.lines * row.waves == pytest.approx(looked_up)
        assert after.estimate.seconds == pytest.approx(before.estimate.seconds, rel=0.25)


@pytest.mark.parametrize(("chip", "split_k", "dies"), [("gfx942", 8, 1), ("gfx1100", 3, 1)])
def test_each_die_reads_the_pixels_of_its_parts(chip, split_k, dies):
    """gfx942's eight dies get the workgroups in turn, parts first; gfx1100 has one."""
    problem = ConvProblem(n=16, k=128, c=128, image=(8, 8), filter=(1, 1))
    artifact = compile(problem, chip, "implicit_gemm", split_k)
    main = model_module(artifact.vmfb, count_on_virtual_gpu(artifact.vmfb)).main
    assert main.launch.workgroups > split_k
    assert main.launch.dies == pytest.approx(dies, rel=0.1)


@pytest.mark.parametrize("chip", each(CHIPS))
def test_every_die_reads_all_where_there_is_one_part(chip):
    """The model and the virtual GPU know the same number of dies."""
    problem = ConvProblem(n=16, k=512, c=64, image=(8, 8), filter=(1, 1))
    artifact = compile(problem, chip, StrategyRequest(name="implicit_gemm", tile=(64, 64, 32)), 1)
    main = model_module(artifact.vmfb, count_on_virtual_gpu(artifact.vmfb)).main
    assert main.launch.workgroups == 8
    size = problem.n * 64  # a tile has 128 bytes of each pixel: a cache line
    dies = chip_facts(find_target(chip)).l2_parts
    want = (dies * size * problem.c + size * problem.k) / (size * (problem.c + problem.k))
    assert main.launch.dies == pytest.approx(want)


@pytest.mark.parametrize(
    ("chip", "dtype", "tile", "piece", "direction"),
    [
        ("gfx942", "f16", (64, 64, 32), (8, 2), "bwd_weight"),
        ("gfx942", "f16", (64, 64, 32), (4, 4), "bwd_weight"),
        # 16 bytes at a time, of every other row in two halves
        ("gfx942", "f16", (64, 64, 64), (4, 8), "bwd_weight"),
        ("gfx942", "f32", (64, 64, 16), (4, 1), "bwd_weight"),
        ("gfx942", "i8", (64, 64, 64), (8, 4), "bwd_weight"),
        ("gfx1100", "f16", (64, 64, 32), (8, 2), "bwd_weight"),
        # along two k steps, or four
        ("gfx942", "f16", (64, 64, 32), (8, 2), "fwd"),
        ("gfx942", "f16", (64, 64, 32), (4, 4), "fwd"),
        ("gfx90a", "f16", (64, 64, 64), (4, 4), "fwd"),
        ("gfx1100", "f16", (64, 64, 64), (4, 4), "fwd"),
    ],
)
def test_bank_conflicts_are_those_predicted(chip, dtype, tile, piece, direction):
    """Nothing but writes to LDS has lanes wait for a bank, and they as long as predicted."""
    problem = ConvProblem(
        n=32, k=64, c=64, image=(4, 4), filter=(1, 1), dtype=dtype, direction=direction
    )
    target = find_target(chip)
    threads = math.prod(tile[1:]) // math.prod(piece)
    chosen = next(
        one
        for one in choose(problem, target, StrategyRequest(tile=tile), 1)
        if math.prod(one.tiling.subgroups) * target.subgroup_size <= threads
    )
    tiling = replace(chosen.tiling, copy_a=piece, copy_b=piece)
    artifact = compile(problem, chip, replace(chosen, tiling=tiling))
    rows = count_on_virtual_gpu(artifact.vmfb)
    row = next(one for one in rows if one.lds_write_bytes)
    counts = mma_counts(equivalent_wgrad(problem), target, tiling, mma_of(target, tiling), 1)
    iterations = row.workgroups * counts.iterations
    written = iterations * sum(tiling.workgroup[:2]) * tiling.workgroup[2]
    assert row.lds_write_bytes == written * problem.data_type.bytes
    waves = math.prod(tiling.subgroups)
    assert row.lds_conflict_cycles == iterations * waves * counts.iteration.lds_conflict_cycles


@pytest.mark.parametrize("chip", each(CHIPS))
def test_a_first_look_sees_what_a_run_does(chip):
    """Bank conflicts, cache lines and dies of two or three iterations are those of the whole
    loop."""
    problem = ConvProblem(n=64, k=64, c=64, image=(8, 8), filter=(3, 3), pad_low=(1, 1))
    artifact = compile(problem, chip, split_k=1)
    static, look, run = (model(artifact.vmfb, one) for one in ("static", "look", "virtual"))
    assert look.main.counts.source == "look"
    assert look.main.counts.iterations == static.main.counts.iterations > LOOK_BARRIERS
    found, whole = look.main.counts.iteration, run.main.counts.iteration
    assert found.matrix == static.main.counts.iteration.matrix
    assert found.lds_conflict_cycles == pytest.approx(whole.lds_conflict_cycles, rel=0.05, abs=1)
    assert found.line_bytes == pytest.approx(whole.line_bytes, rel=0.05)
    assert 1 <= look.main.launch.dies <= chip_facts(find_target(chip)).l2_parts


@pytest.mark.parametrize(
    ("channels", "waves", "split_k", "barriers"), [(64, 2, 4, LOOK_BARRIERS), (32, 1, 1, 0)]
)
def test_a_first_look_ends_by_barriers_or_iterations(channels, waves, split_k, barriers):
    """A workgroup of one wave has no barriers."""
    problem = ConvProblem(
        n=256, k=channels, c=channels, image=(8, 8), filter=(3, 3), pad_low=(1, 1)
    )
    tile = (64, 64, 16) if waves > 1 else (16, 16, 64)
    artifact = compile(problem, "gfx90a", StrategyRequest(tile=tile), split_k)
    assert math.prod(artifact.strategy.tiling.subgroups) == waves
    main = model(artifact.vmfb).main.code.name
    (look,) = (one for one in count_on_virtual_gpu(artifact.vmfb, True) if one.kernel == main)
    (run,) = (one for one in count_on_virtual_gpu(artifact.vmfb) if one.kernel == main)
    assert look.waves == run.waves
    assert look.instructions.get("barrier", 0) == barriers * look.waves
    assert 0 < look.instructions["matrix"] < run.instructions["matrix"]
    assert look.instructions.get("global_write", 0) == 0


# K, image side, stride of RetinaNet's 3x3 layers of 256 channels whose main loop decides, and
# vector operations for each 16x16x16 at most: what AMD hides in waves of its own is little enough
# here to stand beside the matrix instructions.
LEAN = [
    (36, 100, 1, 1.5),
    (36, 50, 1, 1.5),
    (36, 25, 1, 1.5),
    (256, 13, 1, 1.5),
    (256, 13, 2, 1.5),
    (256, 25, 2, 1.5),
    (256, 100, 1, 1.5),
]


@pytest.mark.parametrize(("layer", "dtype"), in_turn(LEAN, ["f16", "bf16"]), ids=str)
def test_main_loops_are_lean(layer, dtype):
    k, size, stride, most = layer
    problem = ConvProblem(
        n=32, k=k, c=256, image=(size, size), filter=(3, 3), stride=(stride, stride),
        pad_low=(1, 1), dtype=dtype,
    )  # fmt: skip
    artifact = compile(problem, "gfx942")
    main = model(artifact.vmfb).main
    iteration, names = main.counts.iteration, {one.name for one in main.code.code}
    assert iteration.valu <= most * iteration.equivalents
    assert iteration.lds_reads <= 0.5 * iteration.equivalents
    assert "ds_read_u16" not in names
    assert main.code.spills == main.code.scratch_bytes == 0
    tiling = artifact.strategy.tiling
    mma = mma_of(find_target("gfx942"), tiling)
    predicted = mma_counts(problem, find_target("gfx942"), tiling, mma, artifact.strategy.split_k)
    expected = predicted.iteration.valu / predicted.iteration.equivalents
    assert expected == pytest.approx(iteration.valu / iteration.equivalents, rel=0.3)


@pytest.mark.parametrize("direction", ["bwd_weight", "fwd"])
def test_a_strided_filter_of_one_tap_reads_few_pixels(direction):
    """The bytes by the problem against the lines that a run reads."""
    problem = ConvProblem(
        n=16, k=64, c=128, image=(16, 16), filter=(1, 1), stride=(2, 2), direction=direction
    )
    artifact = compile(problem, "gfx942", "implicit_gemm", 1)
    (row,) = count_on_virtual_gpu(artifact.vmfb)
    whole = model_module(artifact.vmfb).main.launch.read_bytes
    main = model_module(artifact.vmfb, problem=problem).main
    image = 16 * 16 * 16 * 128 * 2
    assert whole - main.launch.read_bytes == image * 3 // 4
    assert main.launch.read_bytes == row.read_lines * 128
