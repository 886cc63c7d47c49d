"""Sums in tile registers: when they are offered, what their passes leave, and what they need. On
any host: they are made for a CPU by name."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings

from conv_compiler.artifacts.kernel_facts import KernelFacts
from conv_compiler.compiler.compile import compile
from conv_compiler.compiler.proofs import prove
from conv_compiler.errors import DeviceUnavailable, StrategyNotApplied, UnsupportedStrategy
from conv_compiler.problem.canonical import canonical
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime import amx_permission
from conv_compiler.runtime import kernel as runtime
from conv_compiler.strategies.cpu import packed
from conv_compiler.strategies.cpu.amx_tiles import tile_candidates
from conv_compiler.strategies.cpu.cost_constants import AMX_KERNELS, MEMORY
from conv_compiler.strategies.cpu.operand_packing_cost import Chunk, copies
from conv_compiler.strategies.cpu.split_k import DeepLoop, deep_loop
from conv_compiler.strategies.cpu.work_distribution import best_distribution
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.targets.cpu_features import TILE_EXTENSIONS, needs_of
from conv_compiler.targets.host import STACK_BYTES, TILE_INSTRUCTIONS, TILE_REGISTERS, TILE_ROWS
from conv_compiler.targets.resolve import resolve
from tests.problems import problems_with_split

CPU, WITHOUT = find_target("cpu-sapphirerapids"), find_target("cpu-znver4")
PROBLEM = ConvProblem(n=8, k=64, c=64, image=(14, 14), filter=(3, 3), pad_low=(1, 1), dtype="bf16")


@pytest.mark.parametrize(("dtype", "next_best"), [("bf16", "cpu_packed"), ("i8", "cpu_dot")])
def test_chosen_where_the_cpu_has_tiles(dtype, next_best):
    first, second, *_ = choose(replace(PROBLEM, dtype=dtype, weight_dtype=""), CPU)
    assert (first.name, second.name) == ("cpu_amx", next_best)
    assert TILE_INSTRUCTIONS[first.instruction].dtype == dtype
    assert f" {first.instruction} " in first.text


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 1},
        {"c": 7},
        {"k": 4},
        {"dtype": "f16", "weight_dtype": ""},
        {"dtype": "f32", "weight_dtype": ""},
    ],
)
def test_not_for_one_image_few_channels_or_other_types(fields):
    problem = replace(PROBLEM, **fields)
    assert choose(problem, CPU)[0].name != "cpu_amx"
    with pytest.raises(UnsupportedStrategy, match="cpu_amx: has no tile"):
        choose(problem, CPU, "cpu_amx")


def test_not_without_tiles():
    assert choose(PROBLEM, WITHOUT)[0].name == "cpu_dot"
    with pytest.raises(UnsupportedStrategy, match="cpu_amx: has no tile for bf16 on cpu-znver4"):
        choose(PROBLEM, WITHOUT, "cpu_amx")
    with pytest.raises(UnsupportedStrategy, match="cpu-znver4 multiplies bf16 over 8 images by"):
        packed.passes(PROBLEM, WITHOUT, choose(PROBLEM, CPU)[0])


@pytest.mark.parametrize(
    ("fields", "tile"),
    [
        ({}, (32, 1, 1, 32)),
        ({"k": 16}, (16, 1, 3, 32)),
        ({"g": 8, "k": 16, "c": 16}, (1, 16, 1, 3, 16)),
        ({"filter": (1, 1), "pad_low": (0, 0), "pad_high": (0, 0)}, (32, 32)),
    ],
)
def test_sums_and_factors_fill_the_registers(fields, tile):
    first = choose(replace(PROBLEM, **fields), CPU)[0]
    assert first.tile == tile
    assert choose(replace(PROBLEM, **fields), CPU, StrategyRequest(tile=tile))[0] == first


def test_a_tile_that_does_not_fit_is_refused():
    with pytest.raises(UnsupportedStrategy, match="tile 64x1x1x32"):
        choose(PROBLEM, CPU, StrategyRequest(name="cpu_amx", tile=(64, 1, 1, 32)))


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ({"n": 4, "ho": 56, "wo": 56}, ("wo", 14)),
        ({"n": 4, "ho": 25, "wo": 25}, ("wo", 13)),
        ({"n": 4, "wo": 14}, ("wo", 14)),
        ({"n": 16, "ho": 7, "wo": 7}, ("n", 16)),  # seven of sixteen rows otherwise
        ({"n": 15, "ho": 13, "wo": 13}, ("wo", 13)),
        ({"n": 2}, ("n", 2)),
    ],
)
def test_the_loop_that_fills_tiles(lengths, expected):
    assert deep_loop(lengths) == expected


def test_the_instruction_is_looked_for():
    strategy = choose(PROBLEM, CPU)[0]
    kernel = KernelFacts(name="main", role="contraction", mma={"tdpbf16ps": 4})
    prove(resolve(PROBLEM, CPU, strategy.mma), strategy, [kernel])
    with pytest.raises(StrategyNotApplied, match="no tdpbf16ps in its text"):
        prove(resolve(PROBLEM, CPU, strategy.mma), strategy, [replace(kernel, mma={})])


# Packed first, rows of two pixels behind those that are turned: taken for channels, the end of the
# last row's vector was not counted.
ROW_END = ConvProblem(
    n=2, g=2, k=64, c=17, image=(2, 4, 4), filter=(2, 2, 3), layout="NGCDHW_GKZYXC_NGKDHW"
)


@settings(max_examples=40, deadline=None)
@example((ROW_END, "auto"))
@given(problems_with_split())
def test_tiles_divide_the_loops_the_passes_leave(drawn):
    from iree.compiler import ir

    from conv_compiler.build import build

    problem, split_k = drawn
    dtype = "i8" if problem.n % 2 else "bf16"
    problem = replace(problem, dtype=dtype, weight_dtype="", compute="", dynamic_batch=False)
    parts = split_k if isinstance(split_k, int) and split_k > 0 else 1
    for one in tile_candidates(canonical(problem), CPU):
        *_, kernel = steps = packed.passes(canonical(problem), CPU, one.with_split_k(parts))
        assert kernel.tile[-1] % TILE_ROWS == 0
        assert 1 < max(kernel.steps) <= TILE_ROWS
        with ir.Context() as context, ir.Location.unknown():
            context.allow_unregistered_dialects = True
            module = build(problem)
            for step in steps:
                step.apply(module)  # raises where a tile does not divide
            assert module.operation.verify()
            rooms = re.findall(r"bufferization.alloc_tensor\(\) : tensor<(\d+)x", str(module))
        whole = packed.paired(canonical(problem), one.tiling)
        found = best_distribution(whole, one.tiling, parts, CPU.processor)
        deep, step = next((p, n) for p, n in zip(found.cache, kernel.steps, strict=True) if n > 1)
        counted = copies(
            whole, Chunk(found.share, found.cache), CPU.processor.unit, DeepLoop(deep, step)
        )
        taken, sums = sum(map(int, rooms)), TILE_REGISTERS * TILE_ROWS**2
        # Sums on their way to vectors, and waiting ones where they fit beside copies.
        assert taken * 4 <= STACK_BYTES + sums * 4
        assert found.packs_first == kernel.packs_first
        room = MEMORY.packed_bytes if found.packs_first else AMX_KERNELS.stack_bytes
        assert sum(copy.elements for copy in counted) * 4 <= room
        if found.packs_first:
            lengths = re.findall(
                r"tensor.parallel_insert_slice .* : tensor<(\d+)xi32>", str(module)
            )
            assert sum(map(int, lengths)) <= sum(copy.elements for copy in counted) + 2 * TILE_ROWS


def deal_of(problem):
    (one,) = tile_candidates(problem, CPU)
    return best_distribution(packed.paired(problem, one.tiling), one.tiling, 1, CPU.processor)


def test_operands_are_packed_first_where_they_would_be_copied_again_and_again():
    assert deal_of(replace(PROBLEM, k=256, c=256)).packs_first
    # All channels are one workgroup's.
    assert not deal_of(replace(PROBLEM, n=64, k=32, c=32)).packs_first
    # Memory that each call gets afresh costs more than copying again.
    assert deal_of(replace(PROBLEM, n=48)).packs_first
    assert not deal_of(replace(PROBLEM, n=256)).packs_first


def test_an_artifact_says_whether_it_uses_tiles():
    with_tiles, without = (
        needs_of(compile(PROBLEM, CPU.name, name).vmfb.read_bytes())
        for name in ("cpu_amx", "cpu_dot")
    )
    assert set(with_tiles.extensions) - set(without.extensions) == set(TILE_EXTENSIONS)


@pytest.fixture
def _asks(monkeypatch):
    """A host that has all the CPU has, to which nothing is loaded."""
    monkeypatch.setattr(runtime, "host_flags", lambda: frozenset(CPU.processor.extensions))
    monkeypatch.setattr(runtime, "host_architecture", lambda: "x86_64")
    monkeypatch.setattr(runtime, "Kernel", lambda path, *_: path.name)
    runtime._load.cache_clear()
    yield
    runtime._load.cache_clear()


@pytest.mark.usefixtures("_asks")
def test_tiles_are_asked_for_when_they_are_needed(monkeypatch):
    monkeypatch.setattr(amx_permission, "refusal", lambda: "Operation not permitted")
    artifact = compile(PROBLEM, CPU.name, "cpu_amx")
    with pytest.raises(DeviceUnavailable, match=r"refuses the tile registers \(AMX\) that \S+ use"):
        runtime.load(artifact)
    assert runtime.load(compile(PROBLEM, CPU.name, "cpu_dot"))
    monkeypatch.setattr(amx_permission, "refusal", lambda: "")
    assert runtime.load(artifact)


def test_the_system_says_why_it_refuses():
    """Asked for a state that no processor has, Linux refuses; asked again, it is not asked."""
    amx_permission.refusal.cache_clear()
    assert isinstance(amx_permission.refusal(), str)
    assert amx_permission.refusal() == amx_permission.refusal()
