"""Candidates of the GPU strategies: consistent with the instruction, the chip and the problem."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.model.facts import rank_facts
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import (
    grid,
    implicit_gemm,
    lds_banks,
    loop_order,
    tilings,
    vector_gemm,
)
from conv_compiler.strategies.gpu.cost_constants import COPIES as COPIES_COSTS
from conv_compiler.strategies.gpu.cost_constants import REDUCTION, SPLITS, TILES
from conv_compiler.strategies.gpu.implicit_gemm_schedule import ANY_OP
from conv_compiler.strategies.gpu.instruction_counts import mma_counts
from conv_compiler.strategies.gpu.lds_banks import Item, LdsRow
from conv_compiler.strategies.gpu.lds_copies import (
    Memory,
    Share,
    copy_of,
    copy_pieces,
    load_lines,
)
from conv_compiler.strategies.gpu.search import full_splits
from conv_compiler.strategies.gpu.split_k_reduction import (
    Sums,
    lane_width,
    sums_of_tiling,
)
from conv_compiler.strategies.registry import STRATEGIES
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import GpuTiling, StrategyRequest
from conv_compiler.strategies.transform_library import library
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.targets.resolve import resolve
from tests.problems import problems

GPUS = [row for row in TARGETS.values() if row.is_gpu]
MOST_THREADS = 1024
LDS_ROW = LdsRow(16, Item(2))


def shared(mma, tile, threads, adjacent):
    """An operand's tile of f16 with the rows of an instruction, for copies."""
    return Share(tile, (mma.unit(mma.m), mma.unit(mma.k)), threads, adjacent)


RESNET = ConvProblem(n=32, k=128, c=64, image=(28, 28), filter=(3, 3), pad_low=(1, 1))


def instruction(strategy, target):
    return next(row for row in target.mma if row.name == strategy.tiling.mma)


def check_mma(problem, target, strategy):
    tiling, mma = strategy.tiling, instruction(strategy, target)
    (m, n, k), (subgroups_m, subgroups_n) = tiling.workgroup, tiling.subgroups
    assert mma.dtype == problem.dtype
    assert (m % mma.m, n % mma.n, k % mma.k) == (0, 0, 0)
    assert (m // mma.m % subgroups_m, n // mma.n % subgroups_n) == (0, 0)
    threads = subgroups_m * subgroups_n * target.subgroup_size
    assert threads <= MOST_THREADS
    assert m * n // threads < target.vgprs_per_lane
    size = problem.data_type.bytes
    # Rows are lengthened against bank conflicts only as far as there is room.
    assert (m + n) * k * size <= target.lds_bytes
    for rows, unit, (along_row, along_k) in (
        (m, mma.unit(mma.m), tiling.copy_a),
        (n, mma.unit(mma.n), tiling.copy_b),
    ):
        assert (unit % along_row, mma.unit(mma.k) % along_k) == (0, 0)
        assert rows * k % (along_row * along_k * threads) == 0
        assert along_row * along_k * size <= COPIES_COSTS.most_piece_bytes


def check_vector(problem, target, strategy):
    tiling = strategy.tiling
    m, n, groups = tilings.vector_threads(problem, tiling.piece)
    assert 1 <= m * n * groups <= TILES.vector_threads <= MOST_THREADS
    assert groups <= problem.g
    assert tiling.workgroup == (
        m * tiling.piece[0],
        n * tiling.piece[1],
        TILES.vector_gemm_k_products,
    )
    assert math.prod(tiling.piece) < target.vgprs_per_lane


@settings(max_examples=60, deadline=None)
@given(problem=problems(), target=st.sampled_from(GPUS))
def test_candidates_are_consistent(problem, target):
    for strategy in implicit_gemm.mma_candidates(problem, target):
        assert strategy.name == "implicit_gemm"
        assert strategy.split_k >= 1
        check_mma(problem, target, strategy)
    vector = vector_gemm.vector_candidates(problem, target)
    assert vector
    for strategy in vector:
        assert (strategy.name, strategy.mma) == ("vector_gemm", "")
        assert strategy.split_k >= 1
        check_vector(problem, target, strategy)


SIZES = st.sampled_from([1, 3, 8, 17, 64, 96, 256, 1024, 2048])


@settings(max_examples=60, deadline=None)
@given(
    problem=st.builds(
        ConvProblem,
        n=st.sampled_from([1, 16, 256]),
        g=st.sampled_from([1, 2, 32]),
        k=SIZES,
        c=SIZES,
        image=st.sampled_from([(7, 7), (28, 28), (224, 224)]),
        filter=st.sampled_from([(1, 1), (3, 3), (7, 7)]),
        dtype=st.sampled_from(["f16", "bf16", "f32", "i8"]),
    ),
    target=st.sampled_from(GPUS),
)
def test_candidates_of_large_problems_are_consistent(problem, target):
    for strategy in implicit_gemm.mma_candidates(problem, target):
        check_mma(problem, target, strategy)
    for strategy in vector_gemm.vector_candidates(problem, target):
        check_vector(problem, target, strategy)


@pytest.mark.parametrize("target", GPUS, ids=lambda row: row.name)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "i8"])
def test_every_type_with_an_instruction_has_tiles(target, dtype):
    problem = ConvProblem.from_json({**RESNET.to_json(), "dtype": dtype, "weight_dtype": ""})
    assert bool(implicit_gemm.mma_candidates(problem, target)) == bool(target.mma_for(dtype))


@settings(max_examples=60, deadline=None)
@given(problem=problems(), target=st.sampled_from(GPUS), split_k=st.integers(1, 64))
def test_explicit_split_is_honoured_as_far_as_parts_hold_products(problem, target, split_k):
    if split_k > problem.gemm_k:
        with pytest.raises(UnsupportedStrategy, match=f"split_k {split_k}: more parts"):
            choose(problem, target, split_k=split_k)
        return
    for one in choose(problem, target, split_k=split_k):
        row = STRATEGIES[one.name]
        assert 1 <= one.split_k <= split_k
        # No smaller part would do, and none is empty (tests/issues/test_empty_parts.py).
        assert row.filled_parts(problem, one, split_k) == one.split_k
        assert row.filled_parts(problem, one, one.split_k) == one.split_k


@settings(max_examples=60, deadline=None)
@given(problem=problems(), target=st.sampled_from(GPUS))
def test_automatic_split_leaves_every_part_a_loop(problem, target):
    found = choose(problem, target)
    for strategy in {found[0], found[-1]}:
        steps = STRATEGIES[strategy.name].lower(problem, target, strategy).passes
        (parts,) = {step.split_k for step in steps if hasattr(step, "split_k")}
        assert strategy.split_k == parts
    for strategy in found:
        assert strategy.split_k >= 1
        if isinstance(strategy.tiling, GpuTiling):  # parts of written kernels need no loop
            assert loop_order.iterations(problem, strategy.tiling, strategy.split_k) >= 2


@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_forms_name_every_summed_loop_once(problem):
    (flat, *others) = loop_order.summed_forms(problem)
    assert flat == ((), ())
    names = {"n", *("do", "ho", "wo")[-problem.ndim :]}
    for outside, inside in others:
        assert sorted((*outside, *inside)) == sorted(names)
        assert loop_order.summed_length(problem, outside) > 1


def test_candidates_are_ranked_by_cost():
    for target in GPUS:
        found = choose(RESNET, target)
        costs = [STRATEGIES[one.name].cost(RESNET, target, one) for one in found]
        assert costs == sorted(costs)


@pytest.mark.timed
@pytest.mark.parametrize("k", [128, 36])  # taps may be in rows where there are fewer than C
def test_a_choice_takes_less_than_a_compile(k):
    target = find_target("gfx942")
    choose(RESNET, target)

    def seconds(n):
        started = time.thread_time()
        choose(replace(RESNET, k=k, n=n), target)
        return time.thread_time() - started

    # The least of several, of problems none of which was seen before: what else the machine has to
    # do (collecting garbage of seven thousand tests, a neighbour's work) is not ours.
    assert min(seconds(RESNET.n + more) for more in range(1, 11)) < 0.2


@pytest.mark.parametrize(
    ("beside", "pieces"),
    [
        # Reads 16 bytes of f16, but lanes wait for LDS banks; reads 8, and none waits.
        ((64, 1), ((8, 2), (4, 4))),
        ((4, 1), ((4, 4),)),  # reads the 8 bytes there are, writes 8 bytes of gemm_k
        ((3, 1), ((4, 4),)),  # reads single elements, writes 8 bytes of gemm_k
        # Reads 16 bytes along gemm_k, or 4; lanes lie along both k steps, so that no banks clash.
        ((64, 128), ((2, 8), (8, 2))),
        ((64, 6), ((8, 2),)),  # pairs along gemm_k
    ],
)
def test_copy_pieces_follow_what_lies_side_by_side(beside, pieces):
    mma = find_target("gfx942").mma_for("f16")[0]
    assert copy_pieces(shared(mma, (128, 32), 256, beside), Item(2)) == pieces


def test_no_piece_where_threads_do_not_divide_the_tile():
    mma = find_target("gfx942").mma_for("f16")[0]
    assert copy_pieces(shared(mma, (16, 16), 192, (64, 1)), Item(2)) == ()


@pytest.mark.parametrize(
    ("piece", "cycles"),
    [
        ((8, 2), (2, 2)),  # rows of 10 dwords: eight on is 16 banks on, and 16 on the same bank
        ((4, 4), (4, 0)),  # four on is 8 banks on: 16 lanes of 2 dwords use each bank once
        ((8, 4), (4, 4)),
        ((8, 1), (2, 0)),  # two lanes share a dword
    ],
)
def test_lds_banks(piece, cycles):
    assert lds_banks.lds_write_cycles(piece, LdsRow(16, Item(2))) == cycles


def bank_writes(piece, row, lanes):
    """Dwords that lanes write, as (k step, row, byte) of their places: the padded tile's layout."""
    elements, along_k = piece
    in_row = row.elements // along_k
    pitch = row.elements * row.item.bytes + lds_banks.LDS_ROW_PADDING
    # 16 tiles of 16 rows, a multiple of 128 bytes, and a row more for each step.
    step_bytes = 256 * pitch + row.elements * row.item.bytes
    assert 256 * pitch % 128 == 0
    for lane in lanes:
        behind, at = divmod(lane, in_row)
        behind, step = divmod(behind, row.steps)
        first = step * step_bytes + behind * elements * pitch + at * along_k * row.item.bytes
        yield from range(first // 4, -(-(first + along_k * row.item.bytes) // 4))


@given(
    size=st.sampled_from([1, 2, 4]),
    elements=st.sampled_from([4, 8, 16, 32]),
    steps=st.sampled_from([1, 2, 4]),
    piece=st.tuples(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8])),
)
def test_lanes_along_k_steps_write_to_the_banks_of_a_padded_tile(size, elements, steps, piece):
    """No write is so wide that LDS has it in halves: those are counted by themselves."""
    assume(piece[1] <= elements and piece[1] * size <= COPIES_COSTS.write_bytes)
    row = LdsRow(elements, Item(size), steps)
    together = min(64, 128 // max(4, piece[1] * size))
    cycles = 0
    for first in range(0, 64, together):
        dwords = set(bank_writes(piece, row, range(first, first + together)))
        cycles += max(Counter(dword % 32 for dword in dwords).values())
    found = lds_banks.lds_write_cycles(piece, row)
    assert found.free + found.conflicts == cycles
    assert found.free == 64 // together


@pytest.mark.parametrize(
    ("target", "direction", "several", "writes", "conflicts"),
    [
        # Of a pair of rows one begins at a multiple of 16 bytes, without conflicts; the other's two
        # writes are halves that wait for 8 of 16 cycles.
        ("gfx950", "fwd", True, 4, 0.25),
        ("gfx950", "bwd_data", True, 4, 0.25),
        ("gfx1201", "bwd_data", False, 2, 0),
        ("gfx1201", "bwd_weight", False, 2, 0),
        ("sm_90a", "fwd", False, 2, 0),
    ],
)
def test_a_row_of_32_bytes_is_two_writes(target, direction, several, writes, conflicts):
    """On RDNA where both operands are contiguous along gemm_k: test_whole_rows.py."""
    chip = find_target(target)
    problem = ConvProblem(n=32, k=64, c=64, image=(8, 8), filter=(1, 1), direction=direction)
    item = tilings.item_of(resolve(problem, chip).wgrad, chip)
    assert item.several == several
    row = LdsRow(32, item, steps=2)
    found = copy_of((128, 64), (2, 16), Memory((1, 256), (1, 256), 256), (256, 64), row)
    assert (found.writes, found.write_conflicts) == (writes, conflicts)


def test_of_equals_the_tile_that_fits_the_result_comes_first():
    """80000 pixels are whole tiles of 128, and of 256 they are not."""
    problem = ConvProblem(
        n=32, k=1024, c=1024, image=(50, 50), filter=(1, 1), direction="fwd", dtype="f16"
    )
    tiles = [one.tiling.workgroup for one in choose(problem, find_target("gfx950"))]
    assert tiles.index((256, 128, 64)) < tiles.index((128, 256, 64))


@given(elements=st.sampled_from([8, 16, 32]), along_k=st.sampled_from([1, 2, 4, 8]))
def test_a_row_of_one_write_is_timed_as_pieces_are(elements, along_k):
    row = LdsRow(elements, Item(2, several=True))
    piece = 4, along_k
    assert lds_banks.row_write_cycles(piece, row) == lds_banks.lds_write_cycles(piece, row)


@given(
    tile=st.sampled_from([(64, 32), (128, 64)]),
    piece=st.sampled_from([(1, 8), (2, 8), (4, 4), (8, 2)]),
    lanes=st.sampled_from([32, 64]),
)
def test_lanes_along_k_steps_share_lines(tile, piece, lanes):
    """A wave's load touches fewer lines along all of a tile's gemm_k than along a step of it."""
    memory = Memory((1, 256), (1, 256), 256)
    one, all_steps = (
        load_lines(tile, piece, memory, lanes, LdsRow(16, Item(2), steps))
        for steps in (1, tile[1] // 16)
    )
    assert lanes * piece[1] * 2 / 128 <= all_steps < one


def test_steps_are_those_of_a_tile_along_gemm_k():
    assert LdsRow.of(16, Item(2), (128, 64), (1, 256)) == LdsRow(16, Item(2), 4)
    assert LdsRow.of(16, Item(2), (128, 64), (256, 1)) == LDS_ROW == LdsRow(16, Item(2), 1)


@pytest.mark.parametrize("target", GPUS, ids=lambda row: row.name)
def test_schedules_name_every_entry_once(target):
    for strategy in {one.name: one for one in choose(RESNET, target)}.values():
        kind = STRATEGIES[strategy.name]
        schedule = kind.lower(RESNET, target, strategy).schedule
        info = schedule.roles["contraction"]
        entries = [step[1:] for step in info.pipeline if step.startswith("@")]
        assert bool(entries) == kind.has_script
        for entry in entries:
            assert schedule.library.count(f"@{entry}(") == 1
        assert info.subgroup_size == target.subgroup_size
        assert info.workgroup_size[0] % target.subgroup_size == 0
        rocm_only = [step for step in info.pipeline if step.startswith("iree-rocdl-")]
        assert bool(rocm_only) == (target.backend == "rocm")


def test_libraries_link_what_a_script_declares():
    def entry(sequence):
        (contraction,) = sequence.include("contraction", results=ANY_OP)
        (grid,) = sequence.include("workgroups_sgmn", contraction, 32, 64, results=ANY_OP)
        sequence.include("operands_into_grid", grid)

    text, _ = library(("common", "implicit_gemm"), ("entry",), {"entry": entry})
    assert "named_sequence private" not in text
    assert text.count("@cleanup(%") == 1
    assert text.count("@slices_to_producers(%") == 1
    assert "@main_loop" not in text  # the entry does not reach it


# What lies side by side in memory (m or n, gemm_k) and a thread's piece of it -> its share of a
# tile of 64 x 32 elements of 2 bytes among 128 threads, 16 elements: loads, rows it reads them in,
# registers whose halves come from different loads, and bytes of cache lines. Eight lanes lie along
# gemm_k, or two with pieces of eight; the others share the lines of m or n.
COPIES = {
    ((128, 1), (8, 2)): (2, 2, 8.0, 32.0),
    ((32, 1), (8, 2)): (2, 2, 8.0, 64.0),  # lines of 64 bytes in use
    ((16, 1), (8, 2)): (2, 2, 8.0, 128.0),  # lines of 32 bytes in use
    ((1, 1), (8, 2)): (16, 2, 8.0, 256.0),  # single elements
    ((1, 128), (2, 8)): (2, 2, 0.0, 128.0),  # as registers take them, a quarter of a line each
}


@pytest.mark.parametrize(("beside", "piece"), COPIES)
def test_what_a_copy_is_taken_for(beside, piece):
    copy = copy_of((64, 32), piece, Memory(beside, beside, max(beside)), (128, 64), LDS_ROW)
    assert (copy.loads, copy.rows, copy.packed, copy.line_bytes) == COPIES[beside, piece]
    assert copy.dwords == 8


def test_registers_need_not_be_turned():
    """Pieces of one row of gemm_k: elements written one by one, of loads that are as wide."""
    mma = find_target("gfx1100").mma_for("f16", "f16")[0]
    share = shared(mma, (64, 32), 128, (64, 1))
    pieces = copy_pieces(share, Item(2))
    assert copy_pieces(share, Item(2), single=True) == (*pieces, (8, 1))
    turned, plain = (
        copy_of((64, 32), piece, Memory((64, 1), (64, 1), 64), (128, 32), LDS_ROW)
        for piece in ((8, 2), (8, 1))
    )
    assert (turned.loads, plain.loads, turned.writes, plain.writes) == (2, 2, 8, 16)
    chips = ("gfx942", "gfx1100", "gfx1201", "sm_80")
    assert [tilings.writes_single_elements(find_target(chip), 2) for chip in chips] == [
        0,
        1,
        1,
        0,
    ]


# Channels side by side and from one pixel to the next, piece, LDS row -> lines that a load of 64
# lanes touches, f16, as a first look on the virtual GPU counts them (docs/model.md).
LINES = {
    (256, 256, (4, 4), 16): 4.0,  # 4 pixels, a line each
    (256, 256, (8, 2), 32): 16.0,  # 16 pixels, half a line each
    (256, 256, (8, 4), 32): 8.0,
    (32, 1024, (4, 4), 16): 8.0,  # 4 pixels, two taps or groups each
    (36, 36, (4, 4), 16): 4 * (1 + (1 + 60 / 36) * 15 / 16),  # runs start anywhere
}


@pytest.mark.parametrize("copy", LINES)
def test_lines_of_a_load(copy):
    channels, pitch, piece, row = copy
    assert (
        load_lines(
            (128, 32), piece, Memory((channels, 1), (channels, 1), pitch), 64, LdsRow(row, Item(2))
        )
        == LINES[copy]
    )


def test_copies_that_share_no_lines_are_not_chosen():
    """RetinaNet's R26: of an image row of 256 channels one way to copy reads half lines."""
    problem = ConvProblem(n=32, k=36, c=256, image=(100, 100), filter=(3, 3), pad_low=(1, 1),
                          pad_high=(1, 1))  # fmt: skip
    target = find_target("gfx950")
    found = choose(problem, target, StrategyRequest(tile=(128, 128, 64)), 50)
    chosen = next(one for one in found if one.mma == "MFMA_F32_16x16x32_F16")
    mma = instruction(chosen, target)
    lines = {
        one: mma_counts(problem, target, one, mma, 50).iteration.line_bytes
        for one in tilings.other_copies(problem, target, mma, chosen.tiling)
    }
    assert lines[chosen.tiling] == min(lines.values()) < max(lines.values())


# Sums of so many parts of a lane's weights, extracted or not -> weights of a lane, parts at once.
REDUCTIONS = {
    (14, True): (2, 7),  # LLVM would wait for each of 6, 6 and 2
    (14, False): (4, 6),
    (13, True): (1, 13),
    (12, True): (4, 6),
    (29, True): (1, 29),
    (37, True): (4, 6),  # of a number that nothing divides as before
}


@pytest.mark.parametrize(("parts", "extracted"), REDUCTIONS)
def test_extracted_sums_are_cut_evenly(parts, extracted):
    problem = ConvProblem(n=128, g=32, k=32, c=32, image=(7, 7), filter=(3, 3), pad_low=(1, 1))
    sums = Sums(REDUCTION.in_flight_sums, extracted)
    width = lane_width(problem, find_target("gfx950"), parts, sums)
    assert (width, sums.in_flight(parts, width)) == REDUCTIONS[parts, extracted]


@pytest.mark.parametrize(
    ("most", "parts", "at_once"),
    [(REDUCTION.few_weights_in_flight_sums, 100, 100), (REDUCTION.few_weights_loop_sums, 152, 38)],
)
def test_sums_of_few_weights_leave_no_last_round(most, parts, at_once):
    assert Sums(most, True).in_flight(parts, 1) == at_once


@pytest.mark.parametrize(("chip", "workgroups"), [("gfx942", (3, 1)), ("gfx90a", (3,))])
def test_a_tile_is_ranked_by_splits_that_fill_the_chip(chip, workgroups):
    """With three workgroups a unit, and with one where iterations are ordered."""
    problem = ConvProblem(n=32, k=36, c=256, image=(25, 25), filter=(3, 3), pad_low=(1, 1))
    target = find_target(chip)
    tiling = next(
        replace(one, outside=("ho", "wo"), inside=("n",))
        for _, one in tilings.mma_tilings(problem, target, (128, 128, 32))
        if one.taps_in_rows
    )
    found = full_splits(problem, target, tiling, SPLITS.most_parts)
    units = rank_facts(target).units / grid.tiles(problem, tiling)
    assert len(found) == len(workgroups)
    assert all(abs(p / units - n) < 0.25 for p, n in zip(found, workgroups, strict=True)), found


def test_instructions_compete_for_a_tile():
    """RetinaNet's head on gfx950: 32x32x16 in 128x128x32 is 1.4 times as fast as 16x16x32."""
    problem = ConvProblem(
        n=32, k=2376, c=256, image=(50, 50), filter=(3, 3), pad_low=(1, 1), pad_high=(1, 1)
    )
    found = implicit_gemm.mma_candidates(problem, find_target("gfx950"))
    ways = {one.mma for one in found if one.tile == (128, 128, 32)}
    assert {"MFMA_F32_32x32x16_F16", "MFMA_F32_16x16x32_F16"} <= ways


@pytest.mark.parametrize(
    ("chip", "split_k", "rows", "sums"),
    [
        ("gfx942", 98, False, REDUCTION.few_weights_in_flight_sums),
        ("gfx942", 98, True, REDUCTION.few_weights_in_flight_sums),
        ("gfx942", 200, False, REDUCTION.few_weights_loop_sums),
        ("sm_80", 98, False, REDUCTION.in_flight_sums),
    ],
)
def test_all_parts_of_few_weights_are_in_flight(chip, split_k, rows, sums):
    problem = ConvProblem(n=128, k=32, c=64, image=(56, 56), filter=(3, 3), pad_low=(1, 1))
    target = find_target(chip)
    tiling = replace(choose(problem, target, "implicit_gemm")[0].tiling, taps_in_rows=rows)
    assert sums_of_tiling(problem, target, tiling, split_k).most == sums


@pytest.mark.parametrize(
    ("chip", "dtype", "width", "stages"),
    [
        ("gfx942", "f16", 8, 3),
        ("gfx942", "f16", 4, 2),  # two iterations of the pipeline are behind its loop
        ("gfx942", "i8", 8, 2),
        ("gfx90a", "f16", 8, 2),
        ("gfx1201", "f16", 8, 2),
    ],
)
def test_where_trips_are_ordered(chip, dtype, width, stages):
    problem = ConvProblem(n=64, k=64, c=64, image=(1, width), filter=(1, 1), dtype=dtype)
    found = choose(problem, find_target(chip), StrategyRequest(tile=(64, 64, 64)), 1)
    pixels = [one.tiling for one in found if one.tiling.inside == ("n",)]
    assert {one.stages for one in pixels} == {stages}
