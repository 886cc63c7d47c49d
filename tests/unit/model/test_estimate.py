"""The estimate: hand-computed cases, and what must hold whatever the counts."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conv_compiler.errors import ModelRefused, UnsupportedTarget
from conv_compiler.model.classify import classify
from conv_compiler.model.constants import BOUND
from conv_compiler.model.counts import Counts, KernelCounts
from conv_compiler.model.estimate import (
    chain_cycles,
    covered,
    estimate,
    fill_seconds,
    unit_cycles,
    unit_time,
)
from conv_compiler.model.facts import CHIPS, chip_facts
from conv_compiler.model.instructions import from_text
from conv_compiler.model.launch import Launch, occupancy, resident
from conv_compiler.model.matrix import matrix_work
from conv_compiler.model.roofline import least_seconds, peak_flops
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.targets import TARGETS, find_target

GFX942 = find_target("gfx942")
FACTS = chip_facts(GFX942)
# An iteration of the default loop of docs/design.md's fact sheet: eight waves, 128 x 64 x 128.
IREE_ITERATION = Counts(
    matrix=32,
    matrix_cycles=32 * 16,
    matrix_flops=32 * 8192,
    valu=190,
    valu_slots=190,
    lds_reads_4=128,
    lds_writes_16=6,
    loads=6,
    load_dwords=24,
    load_bytes=6 * 1024,
    line_bytes=6 * 1024,
    salu=9,
    barriers=2,
)


def one(**values):
    return KernelCounts(outside=Counts(**values), source="predicted")


def test_pipes_of_a_known_loop():
    """Two waves a SIMD: 32*16*2 matrix cycles, (32+190)*4*2 vector, 8*(128*2+6*10) LDS cycles."""
    launch = Launch(workgroups=144, waves=8, vgprs=240, lds_bytes=51200)
    assert unit_cycles(IREE_ITERATION, 1, launch, FACTS) == {
        "matrix": 1024,
        "VALU": 1776,
        "SALU": 72,
        "LDS": 2528,
        "memory issue": 768,
    }


def test_a_bound_kernel_takes_its_pipe_and_the_launch():
    """One workgroup a unit, matrix instructions alone: 1000 of 16 cycles a SIMD at 2.1 GHz."""
    counts = one(matrix=1000, matrix_cycles=16000, matrix_flops=8192000)
    result = estimate(counts, Launch(workgroups=304, waves=4, vgprs=128), GFX942)
    busy = 16000 / 2.1e9
    assert result.pipes["matrix"] == pytest.approx(busy)
    assert result.seconds == pytest.approx(busy + FACTS.launch_seconds)
    assert (result.binds, result.occupancy.rounds) == ("matrix", 1)
    assert result.matrix_busy == pytest.approx(busy / result.seconds)


def test_a_perfect_kernel_reaches_the_published_peak():
    """A long kernel of nothing but matrix instructions: AMD states 1307.4 TFLOP/s for MI300X."""
    counts = one(matrix=1e7, matrix_cycles=16e7, matrix_flops=8192e7)
    result = estimate(counts, Launch(workgroups=304, waves=4, vgprs=128), GFX942)
    assert result.tflops == pytest.approx(1307.4, rel=0.01)
    assert result.matrix_busy == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize(
    ("chip", "name", "tflops"),
    [
        ("gfx90a", "v_mfma_f32_32x32x8f16", 191.5),  # one of MI250X's two dies
        ("gfx942", "v_mfma_f32_32x32x8_f16", 1307.4),
        ("gfx942", "v_mfma_i32_16x16x32_i8", 2614.9),
        ("gfx942", "v_mfma_f32_16x16x4_f32", 163.4),
        ("gfx950", "v_mfma_f32_16x16x32_f16", 2500),
        ("gfx1100", "v_wmma_f32_16x16x16_f16", 123),
        ("gfx1201", "v_wmma_f32_16x16x16_bf16", 195),
        ("gfx1201", "v_wmma_i32_16x16x16_iu8", 389),
    ],
)
def test_matrix_rates_give_the_published_peaks(chip, name, tflops):
    cycles, flops = matrix_work(chip, name)
    target = find_target(chip)
    facts = chip_facts(target)
    peak = flops / cycles * facts.simds * facts.units * target.clock_ghz * 1e9 / 1e12
    assert peak == pytest.approx(tflops, rel=0.03)


@pytest.mark.parametrize(
    ("chip", "dtype", "tflops"),
    [("gfx942", "f16", 1307.4), ("gfx942", "i8", 2614.9), ("gfx1100", "f32", 61.4)],
)
def test_the_peak_of_a_type(chip, dtype, tflops):
    """gfx1100 has no f32 matrix instruction: two vector fma a lane and cycle, by dual issue."""
    assert peak_flops((dtype, dtype), find_target(chip)) / 1e12 == pytest.approx(tflops, rel=0.03)


def test_the_least_time_is_arithmetic_or_memory_and_a_launch():
    square = ConvProblem(n=32, k=1024, c=1024, image=(56, 56), filter=(3, 3), pad_low=(1, 1))
    arithmetic = square.flops / peak_flops(("f16", "f16"), GFX942)
    assert least_seconds(square, GFX942) == arithmetic + FACTS.launch_seconds
    halved = replace(square, compute="f8E5M2FNUZ,f8E4M3FNUZ")
    assert least_seconds(halved, GFX942) == arithmetic / 2 + FACTS.launch_seconds
    # gfx90a multiplies 8-bit floats as bf16.
    assert least_seconds(halved, find_target("gfx90a")) == least_seconds(
        replace(square, dtype="bf16", weight_dtype="bf16"), find_target("gfx90a")
    )
    thin = replace(square, k=8, c=8)
    memory = thin.bytes / GFX942.memory_gb_per_s / 1e9
    assert least_seconds(thin, GFX942) == memory + FACTS.launch_seconds
    with pytest.raises(UnsupportedTarget):
        least_seconds(square, find_target("cpu"))


@pytest.mark.parametrize("chip", CHIPS)
def test_matrix_rates_are_those_of_the_targets_table(chip):
    suffix = {"i8": "iu8" if chip.startswith("gfx1") else "i8"}
    for row in find_target(chip).mma:
        name = f"{row.instruction}_{suffix.get(row.dtype, row.dtype)}"
        if DTYPES[row.dtype].is_f8:
            words = ("bf8" if "E5M2" in operand else "fp8" for operand in row.operands)
            name = "_".join((row.instruction, *([row.spelling] if row.spelling else words)))
        if row.dtype == "xf32":
            name = row.instruction
        work = row.subgroup_cycles, 2 * row.m * row.n * row.k
        assert matrix_work(chip, name) == tuple(row.joined * part for part in work)


def test_products_of_4_and_6_bits_have_twice_the_rate():
    """Where both operands are so narrow: 4 passes of 4 cycles by LLVM's scheduling model, not 8."""
    chip = find_target("gfx950")
    for dtype in ("f4E2M1FN", "f6E2M3FN", "f6E3M2FN"):
        assert peak_flops((dtype, dtype), chip) == 2 * peak_flops(("f8E5M2", "f8E5M2"), chip)
    assert peak_flops((dtype, dtype), chip) / 1e15 == pytest.approx(10.1, rel=0.03)
    name = "v_mfma_scale_f32_16x16x128_f8f6f4"
    row = chip.scaled_for("f6E3M2FN")
    assert matrix_work("gfx950", name, is_short=True).cycles == row.subgroup_cycles == 16
    words = "v[0:3], v[36:41], v[18:23], v[2:5], v32, v17 op_sel_hi:[0,0,0]"
    for text, cycles in (("cbsz:2 blgp:4", 16), ("cbsz:2", 32), ("blgp:1", 32), ("", 32)):
        (one,) = from_text(f"{name} {words} {text}")
        assert classify(one, "gfx950", 64).matrix_cycles == cycles


@pytest.mark.parametrize(
    ("name", "blocks"),
    [("v_mfma_f32_4x4x4_16b_f16", 16), ("v_mfma_f32_4x4x4_16b_bf16", 16)],
)
def test_block_instructions_count_every_block(name, blocks):
    assert matrix_work("gfx942", name) == (8, 2 * 4 * 4 * 4 * blocks)


@pytest.mark.parametrize(
    ("name", "cycles", "operations"),
    [
        ("v_mfma_f32_4x4x4f16", 8, 2 * 4 * 4 * 4 * 16),
        ("v_mfma_f32_4x4x4bf16_1k", 8, 2 * 4 * 4 * 4 * 16),
        ("v_mfma_f32_16x16x4bf16_1k", 32, 2 * 16 * 16 * 4 * 4),
        ("v_mfma_f32_32x32x2bf16", 64, 2 * 32 * 32 * 2 * 2),
        ("v_mfma_f32_32x32x1f32", 64, 2 * 32 * 32 * 2),
        ("v_mfma_f32_16x16x16f16", 32, 2 * 16 * 16 * 16),
        ("v_mfma_i32_32x32x8i8", 64, 2 * 32 * 32 * 8),
        ("v_mfma_f64_4x4x4f64", 16, 2 * 4 * 4 * 4 * 4),
        ("v_mfma_f64_16x16x4f64", 32, 2 * 16 * 16 * 4),
    ],
)
def test_old_mnemonics_do_not_say_their_blocks(name, cycles, operations):
    """gfx90a's; the blocks are those of the CDNA2 ISA document."""
    assert matrix_work("gfx90a", name) == (cycles, operations)


def test_an_unknown_matrix_instruction_is_refused():
    with pytest.raises(ModelRefused, match="v_mfma_f32_7x7x7_f16"):
        matrix_work("gfx942", "v_mfma_f32_7x7x7_f16")


@pytest.mark.parametrize(
    ("launch", "workgroups"),
    [
        (Launch(workgroups=1, waves=4, vgprs=128), 4),  # 512 / 128 waves a SIMD, one each
        (Launch(workgroups=1, waves=4, vgprs=129), 3),  # a granule of 8 more
        (Launch(workgroups=1, waves=8, vgprs=128), 2),
        (Launch(workgroups=1, waves=4, vgprs=32), 8),  # wave slots
        (Launch(workgroups=1, waves=1, vgprs=32), 16),  # barrier slots
        (Launch(workgroups=1, waves=4, vgprs=32, lds_bytes=33000), 1),
        (Launch(workgroups=1, waves=4, vgprs=32, lds_bytes=32768), 2),
        (Launch(workgroups=1, waves=16, vgprs=512), 1),  # it compiled, so it runs
    ],
)
def test_residents(launch, workgroups):
    assert resident(launch, FACTS) == workgroups


def test_the_grid_over_the_chip():
    lie = occupancy(Launch(workgroups=305, waves=4, vgprs=256), FACTS)
    assert (lie.busiest, lie.resident, lie.rounds) == (2, 2, 1)
    assert lie.tail == pytest.approx(305 / 608)
    lie = occupancy(Launch(workgroups=100, waves=4, vgprs=64), FACTS)
    assert (lie.busiest, lie.resident, lie.waves_per_simd) == (1, 1, 1)


@pytest.mark.parametrize(
    ("distance", "cycles"),
    [(0, 1100), (0.5, 950), (1, 800), (2, 400), (8, 300)],
)
def test_latency_left_uncovered(distance, cycles):
    """An iteration of 300 cycles, loads of 800."""
    assert covered(300, distance, 800) == cycles


def test_barriers_and_segments_in_a_workgroup_alone():
    """Matrix work, LDS reads and writes take turns; a barrier is an iteration to LDS."""
    launch = Launch(workgroups=1, waves=4, vgprs=128)
    counts = KernelCounts(
        body=(
            Counts(matrix=10, matrix_cycles=160, lds_reads_16=2, barriers=1),
            Counts(lds_writes_16=8, barriers=1),
        ),
        iterations=3,
        source="predicted",
    )
    assert chain_cycles(counts, launch, FACTS) == 3 * (160 + 4 * (2 * 8 + 8 * 10) + 2 * 64)


# A workgroup of 1000 cycles, 400 of them on the matrix units: four waves, one a SIMD.
WAITING = KernelCounts(
    outside=Counts(matrix_cycles=400),
    body=(Counts(barriers=1),),
    iterations=600 / 64,
    source="predicted",
)


@pytest.mark.parametrize(
    ("busiest", "cycles"),
    [
        (1, 1000),
        (2, 600 + 400 * 1.4),  # the second finds the first at the pipe 400 of 1000 cycles
        (3, 600 + 400 * (1 + 2 * 560 / 1160)),
        (4, 2 * (600 + 400 * 1.4)),  # three fit at a time, and one alone would wait for itself
        (7, 2 * (600 + 400 * (1 + 2 * 560 / 1160)) + 1000),  # here it does
    ],
)
def test_residents_hide_waits_from_one_another(busiest, cycles):
    launch = Launch(workgroups=304 * busiest, waves=4, vgprs=168)
    lie = occupancy(launch, FACTS)
    assert lie.busiest == busiest
    alone = chain_cycles(WAITING, launch, FACTS)
    assert unit_time(WAITING, lie, launch, FACTS, alone) == pytest.approx(cycles)


def test_what_the_last_kernel_wrote_is_in_the_cache_if_it_fits():
    launch = Launch(workgroups=1, waves=1, vgprs=8, read_bytes=2**28, written_bytes=2**20)
    for warm, missed in ((0, 2**28), (2**27, 2**27), (2**28, 0)):
        pipes = estimate(one(), replace(launch, warm_bytes=warm), GFX942).pipes
        assert pipes["memory"] == pytest.approx((missed + 2**20) / 5300e9)
    large = replace(launch, read_bytes=2**29, warm_bytes=2**29)
    pipes = estimate(one(), large, GFX942).pipes
    assert pipes["memory"] == pytest.approx((2**29 + 2**20) / 5300e9)


@pytest.mark.parametrize("name", [n for n, row in TARGETS.items() if row.backend != "rocm"])
def test_other_targets_are_refused(name):
    with pytest.raises(UnsupportedTarget, match=f"target {name}: not modelled"):
        estimate(one(), Launch(workgroups=1, waves=1, vgprs=1), find_target(name))
    with pytest.raises(UnsupportedTarget):
        fill_seconds(1, find_target(name))


AMOUNT = st.floats(0, 1e5)
COUNTS = st.builds(Counts, **{field.name: AMOUNT for field in fields(Counts)})
KERNELS = st.builds(
    KernelCounts,
    body=st.lists(COUNTS, max_size=3).map(tuple),
    iterations=st.integers(0, 1000),
    outside=COUNTS,
    load_distance=st.floats(0, 3),
    source=st.just("predicted"),
)
LAUNCHES = st.builds(
    Launch,
    workgroups=st.integers(1, 100000),
    waves=st.integers(1, 16),
    vgprs=st.integers(1, 512),
    lds_bytes=st.integers(0, 65536),
    read_bytes=st.integers(0, 2**34),
    written_bytes=st.integers(0, 2**34),
)
ROWS = st.sampled_from([find_target(name) for name in CHIPS])
# Comparisons of sums in another order.
ALMOST = 1 - 1e-9


@settings(deadline=None, max_examples=50)
@given(KERNELS, LAUNCHES, ROWS, st.sampled_from([field.name for field in fields(Counts)]), AMOUNT)
def test_more_work_is_never_faster(kernel, launch, target, name, more):
    before = estimate(kernel, launch, target)

    def worse(part):
        return replace(part, **{name: getattr(part, name) + more})

    after = estimate(replace(kernel, outside=worse(kernel.outside)), launch, target)
    assert after.seconds >= before.seconds * ALMOST
    after = estimate(replace(kernel, body=tuple(map(worse, kernel.body))), launch, target)
    assert after.seconds >= before.seconds * ALMOST


@settings(deadline=None, max_examples=50)
@given(KERNELS, LAUNCHES, ROWS, st.integers(1, 5000))
def test_a_larger_grid_is_never_faster(kernel, launch, target, more):
    before = estimate(kernel, launch, target)
    larger = replace(launch, workgroups=launch.workgroups + more)
    assert estimate(kernel, larger, target).seconds >= before.seconds * ALMOST


@settings(deadline=None, max_examples=50)
@given(KERNELS, LAUNCHES, ROWS)
@example(
    KernelCounts(outside=Counts(branches=1), source="predicted"),
    Launch(workgroups=16849, waves=3, vgprs=137),  # 352 a unit: 13 at a time leave one, 12 four
    find_target("gfx1100"),
)
def test_more_registers_or_lds_are_never_faster(kernel, launch, target):
    before = estimate(kernel, launch, target)
    for name in ("vgprs", "lds_bytes", "read_bytes", "written_bytes"):
        worse = replace(launch, **{name: getattr(launch, name) + 8})
        assert estimate(kernel, worse, target).seconds >= before.seconds * ALMOST


@settings(deadline=None, max_examples=50)
@given(KERNELS, LAUNCHES, ROWS)
def test_loads_issued_earlier_are_never_slower(kernel, launch, target):
    earlier = replace(kernel, load_distance=kernel.load_distance + 0.5)
    before, after = (estimate(each, launch, target) for each in (kernel, earlier))
    assert after.seconds <= before.seconds / ALMOST


@settings(deadline=None, max_examples=50)
@given(KERNELS, LAUNCHES, ROWS)
def test_the_time_is_at_least_every_pipe(kernel, launch, target):
    result = estimate(kernel, launch, target)
    work = max(*result.pipes.values(), result.unit_seconds)
    assert result.seconds == work + result.launch_seconds
    assert result.bound_seconds <= result.seconds
    if result.binds == "launch":
        assert result.launch_seconds >= work
    elif result.binds == "latency":
        assert result.bound_seconds < BOUND.busy_share * work
    else:
        assert result.pipes[result.binds] == result.bound_seconds >= BOUND.busy_share * work


@settings(deadline=None, max_examples=50)
@given(KERNELS, LAUNCHES, ROWS)
def test_the_unit_takes_a_time_between_all_hidden_and_nothing_hidden(kernel, launch, target):
    chip = chip_facts(target)
    lie = occupancy(launch, chip)
    alone = chain_cycles(kernel, launch, chip)
    took = unit_time(kernel, lie, launch, chip, alone)
    assert alone * ALMOST <= took <= lie.busiest * alone / ALMOST
