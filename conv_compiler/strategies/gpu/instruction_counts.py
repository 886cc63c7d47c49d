"""What a tiling would execute.

`conv_compiler.model` reads machine code; here the same counts are predicted from the numbers of a
schedule, so that tilings can be ranked before one is compiled. Instruction counts of address
arithmetic are those of gfx942's machine code (docs/gpu.md, "What a trip executes").
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.model.counts import Counts, KernelCounts, counted, total
from conv_compiler.model.facts import rank_facts
from conv_compiler.strategies.gpu.lds_copies import DWORD, copy_of, width_class
from conv_compiler.strategies.gpu.loop_order import INTERLEAVED_STAGES, Form, along_gemm_k, trips
from conv_compiler.strategies.gpu.tail_masking import is_cdna, is_uneven, unmasked_operand
from conv_compiler.strategies.gpu.tilings import (
    counts_halves,
    merged,
    stores_result,
    writes_single_elements,
)
from conv_compiler.targets.f8 import operand_bytes

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Mma, Target

# Vector operations to find an address, for each row of gemm_k a thread reads: (gradient, image).
FLAT, POINTWISE, ROWS, BATCH = (5, 40), (5, 5), (7, 12), (2, 2)
# ... for each further element of such a row that is loaded on its own, with its test and packing.
SCALAR_LOAD = 4
# On CDNA besides, for each row where parts have fewer pixels than others: without a window, and
# with one, whose test is there already.
UNEVEN_ROW, UNEVEN_WINDOW_ROW = 3, 1
# ... where lanes of a tile have different taps: of the image, and for each row of it one more; of
# the output gradient.
COLUMN_TAPS, ROW_TAPS = 24, 14
# Scalar and vector operations of a trip besides.
TRIP_SALU, TRIP_VALU = 30, 8
# Vector operations of a wave besides, once: for each sum it stores, and at its start.
STORE_VALU, START_VALU = 3.5, 80
# ... fewer of a trip and of a row in the batch form with two trips a loop, groups not merged: 26 a
# trip of 128x128x32 in a 1x1 layer (57 where parts have fewer pixels than others), 30 with 3x3.
MIXED_TRIP, MIXED_ROW = 6, 1
# Trips between a load and the wait for it where trips are ordered: from the second half of a trip
# to the turning of its operand at the start of the next but one.
MIXED_DISTANCE = 1.4
# Registers for addresses and other values that live through the main loop.
OTHER_VGPRS = 40
# ... more of them in ordered trips that come so near to the half of all registers: 248 were 264.
TIGHT_VGPRS = 16


def _is_last(letters: str, channel: str, groups: int) -> bool:
    """Whether channels of a group lie side by side."""
    inner = letters[letters.index(channel) + 1 :]
    return inner == "" or (inner == "G" and groups == 1)


def address_costs(problem: ConvProblem, form: Form, taps_in_rows: bool) -> tuple[int, int]:
    """Vector operations a row of gemm_k a thread reads, of operands a and b."""
    outside, inside = form
    if outside:
        plain, window = BATCH if inside == ("n",) else ROWS
    else:
        plain, window = POINTWISE if problem.is_pointwise else FLAT
    return (window, plain) if taps_in_rows else (plain, window)


@lru_cache(maxsize=64)
def side_by_side(problem: ConvProblem, merged_groups: int) -> tuple[int, int]:
    """Channels that lie side by side in memory: of the output gradient, of the input."""
    problem = merged(problem, merged_groups)
    row = problem.layout_row.grouped
    return (
        problem.k if _is_last(row.output, "K", problem.g) else 1,
        problem.c if _is_last(row.input, "C", problem.g) else 1,
    )


@lru_cache(maxsize=64)
def pitches(problem: ConvProblem) -> tuple[int, int]:
    """Elements from a pixel to the next where channels lie side by side, else along the innermost
    axis: of the output gradient, of the input."""
    row = problem.layout_row.grouped
    sizes = ({"G": problem.g, "K": problem.k, "N": problem.n}, {"G": problem.g, "C": problem.c})
    found = []
    for letters, size in zip((row.output, row.input), sizes, strict=True):
        inner = letters[letters.rindex("*") + 1 :] if "*" in letters else letters
        found.append(math.prod({"N": problem.n, **size}[one] for one in inner))
    return found[0], found[1]


@lru_cache(maxsize=4096)
def mma_body(
    problem: ConvProblem,
    target: Target,
    tiling: GpuTiling,
    mma: Mma,
    uneven: bool = False,
    kept: str = "",
) -> tuple[tuple[Counts, Counts], int]:
    """What a wave of the matrix kernel executes a trip, up to and from its second barrier, and the
    loads of a trip; `uneven` where parts of a split, or tiles, have fewer pixels than others, for
    which the operand `kept` has no zeros."""
    size, lanes = operand_bytes(problem, target), target.subgroup_size
    (m, n, k), (subgroups_m, subgroups_n) = tiling.workgroup, tiling.subgroups
    threads, row = subgroups_m * subgroups_n * lanes, mma.unit(mma.k)
    channels_k, channels_c = side_by_side(problem, tiling.merged_groups)
    along_a, along_b = along_gemm_k(problem, target)
    pitch_k, pitch_c = pitches(problem)
    sides = (threads, lanes), row, size, counts_halves(target)
    beside_a, beside_b = (channels_k, along_a), (channels_c, along_b)
    # Of taps side by side, where nothing lies between the channels of one pixel and the next.
    across = problem.filter[-1]
    taps_a = across if tiling.taps_in_rows and pitch_k == channels_k else 1
    in_columns = not (tiling.taps_in_rows or tiling.taps_outside)
    taps_b = across if in_columns and pitch_c == channels_c else 1
    a = copy_of((m, k), tiling.copy_a, beside_a, (taps_a * channels_k, along_a), pitch_k, *sides)
    b = copy_of((n, k), tiling.copy_b, beside_b, (taps_b * channels_c, along_b), pitch_c, *sides)
    image, gradient = (a, b) if tiling.taps_in_rows else (b, a)
    form = (tiling.outside, tiling.inside)
    address_a, address_b = address_costs(problem, form, tiling.taps_in_rows)
    steps = k // mma.k
    own_m, own_n = m // subgroups_m // mma.m, n // subgroups_n // mma.n
    matrix = own_m * own_n * steps
    loads = a.loads + b.loads
    valu: float = TRIP_VALU + a.rows * address_a + b.rows * address_b
    counted_so = tiling.inside == ("n",) and tiling.merged_groups == 1
    if tiling.stages >= INTERLEAVED_STAGES and counted_so:
        valu -= MIXED_TRIP + MIXED_ROW * (a.rows + b.rows)
    valu += (loads - a.rows - b.rows) * SCALAR_LOAD
    # Elements of neighbouring k come from different loads and share a register, but for those that
    # are written one by one.
    single = writes_single_elements(target, size) and problem.g == 1
    for copy, piece in ((a, tiling.copy_a), (b, tiling.copy_b)):
        valu += 0.0 if single and piece[1] == 1 else copy.packed * (DWORD / size - 1)
    if any((*problem.pad_low, *problem.pad_high)) or (uneven and not tiling.outside):
        valu += image.dwords  # zeros where the window leaves its operand
    if uneven:
        # And where there are no pixels.
        valu += {"a": b, "b": a}.get(kept, gradient).dwords
    if is_cdna(target):
        valu += _row_tests(problem, tiling, a.rows + b.rows if uneven else 0, image.rows)
        if not tiling.taps_in_rows and problem.k * tiling.merged_groups % m:
            valu += gradient.dwords + UNEVEN_ROW * gradient.rows  # where there are no channels
    fragments = (own_m * mma.m + own_n * mma.n) * mma.k * size / lanes  # bytes a lane, a step
    fragment = min(mma.m, mma.n) * mma.k * size / lanes
    compute = counted(
        matrix=matrix,
        matrix_cycles=matrix * mma.subgroup_cycles,
        matrix_flops=2 * matrix * mma.m * mma.n * mma.k,
        valu=valu,
        valu_slots=valu,
        salu=TRIP_SALU,
        barriers=1,
        loads=loads,
        load_dwords=max(a.dwords, a.loads) + max(b.dwords, b.loads),
        load_bytes=(a.dwords + b.dwords) * DWORD * lanes,
        line_bytes=(a.line_bytes + b.line_bytes) * lanes,
        **{f"lds_reads_{width_class(fragment)}": fragments * steps / fragment},
    )
    writes = {4: 0, 8: 0, 16: 0}
    writes[a.write_bytes] += a.writes
    writes[b.write_bytes] += b.writes
    store = counted(
        barriers=1,
        lds_conflict_cycles=(a.write_conflicts + b.write_conflicts) * lanes,
        lds_writes_4=writes[4],
        lds_writes_8=writes[8],
        lds_writes_16=writes[16],
    )
    return (compute, store), loads


def _row_tests(problem: ConvProblem, tiling: GpuTiling, uneven_rows: int, image_rows: int) -> int:
    """Vector operations of a trip for rows that may have no pixel, and for taps that lanes have."""
    valu = uneven_rows * (UNEVEN_ROW if problem.is_pointwise else UNEVEN_WINDOW_ROW)
    if tiling.taps_in_rows:
        return valu + ROW_TAPS
    columns = tiling.outside and not tiling.taps_outside and not problem.is_pointwise
    if columns and tiling.merged_groups == 1:
        valu += COLUMN_TAPS + image_rows
    return valu


def mma_counts(
    problem: ConvProblem, target: Target, tiling: GpuTiling, mma: Mma, split_k: int
) -> KernelCounts:
    """What a wave of the matrix kernel executes."""
    kept = unmasked_operand(problem, target, tiling, split_k)
    zeros = problem.is_pointwise or not kept  # windows have them anyway
    uneven = zeros and is_uneven(problem, target, tiling, split_k)
    body, loads = mma_body(problem, target, tiling, mma, uneven, kept)
    lanes, mixed = target.subgroup_size, tiling.stages >= INTERLEAVED_STAGES
    sums = math.prod(tiling.workgroup[:2]) / (math.prod(tiling.subgroups) * lanes)
    direct = saves_a_kernel(problem, target, tiling, split_k)
    is_held = _is_held_to_code(problem, target)
    valu = STORE_VALU * sums + START_VALU if is_held else 2 * sums
    distance = float(max(tiling.stages - 1, 0))
    if mixed:
        distance = MIXED_DISTANCE
    elif is_held:
        distance = load_distance(body, tiling.stages)
    stored = sums * (problem.result_type.bytes if direct else DWORD) * lanes
    outside = counted(
        valu=valu,
        valu_slots=valu,
        stores=sums,
        store_dwords=sums,
        loads=loads,
        # Trips that load ahead load one tile behind the last.
        line_bytes=stored + (total(body).line_bytes if mixed else 0.0),
    )
    return KernelCounts(
        body=body,
        trips=trips(problem, tiling, split_k),
        outside=outside,
        load_distance=distance,
        mixed=mixed,
        source="predicted",
    )


def _is_held_to_code(problem: ConvProblem, target: Target) -> bool:
    """Whether what a kernel does outside its main loop, and how late its loads come, are predicted
    as they were counted in code: of windows on CDNA, where trips are not ordered. 1x1 layers, which
    memory binds, and other chips are ranked by rougher numbers, which served them as well.
    """
    plain = target.pipeline_stages < INTERLEAVED_STAGES
    return plain and is_cdna(target) and not problem.is_pointwise


def load_distance(body: tuple[Counts, ...], stages: int) -> float:
    """Trips between a load and the wait for it, measured as in code (`model/static.py`).

    A trip's loads come behind about half of its scalar operations; after the wait for them come the
    vector operations and the writes to LDS.
    """
    if stages < 2:
        return 0.0
    trip = total(body)
    other = trip.valu + trip.salu + trip.lds_reads + trip.lds_writes + trip.loads
    waiting = trip.valu + trip.salu / 2 + trip.lds_writes
    return stages - 1 - waiting / (trip.matrix_cycles + other)


def mma_vgprs(problem: ConvProblem, target: Target, tiling: GpuTiling, mma: Mma) -> int:
    """Registers of a lane: sums, operands of one step, loads in flight, addresses."""
    (m, n, k), (subgroups_m, subgroups_n) = tiling.workgroup, tiling.subgroups
    lanes, size = target.subgroup_size, operand_bytes(problem, target)
    threads = subgroups_m * subgroups_n * lanes
    fragments = (m // subgroups_m + n // subgroups_n) * mma.k * size / lanes / DWORD
    loads = (m + n) * k * size / threads / DWORD
    # Where trips are ordered, all of a trip's fragments and the loads of two trips.
    ordered = tiling.stages >= INTERLEAVED_STAGES
    steps, held = (k // mma.k, 2) if ordered else (2, 1)
    sums = m * n / threads
    if rank_facts(target).accumulators_apart:
        others = math.ceil(steps * fragments + held * loads) + OTHER_VGPRS
        return max(math.ceil(sums), others)
    vgprs = math.ceil(sums + steps * fragments + held * loads) + OTHER_VGPRS
    return vgprs + TIGHT_VGPRS * (ordered and vgprs > 256 - TIGHT_VGPRS)


def vector_counts(
    problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int
) -> KernelCounts:
    """What a wave of the vector kernel executes."""
    m, n = tiling.piece
    k = tiling.workgroup[2]
    address = POINTWISE if problem.is_pointwise else FLAT
    loads = (m + n) * k
    valu = k * (m * address[0] + n * address[1] + m * n + m + n)
    trip = counted(
        valu=valu,
        valu_slots=valu,
        vector_flops=2 * m * n * k * target.subgroup_size,
        salu=TRIP_SALU,
        loads=loads,
        load_dwords=loads,
        load_bytes=loads * operand_bytes(problem, target) * target.subgroup_size,
        line_bytes=loads * operand_bytes(problem, target) * target.subgroup_size,
    )
    outside = counted(valu=m * n, valu_slots=m * n, stores=m * n, store_dwords=m * n)
    return KernelCounts(
        body=(trip,), trips=trips(problem, tiling, split_k), outside=outside, source="predicted"
    )


def mma_of(target: Target, tiling: GpuTiling) -> Mma:
    """The matrix instruction of a tiling."""
    return next(row for row in target.mma if row.name == tiling.mma)


def saves_a_kernel(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> bool:
    """Whether a ranking counts on the result being stored by the matrix kernel itself.

    On NVIDIA it does not: of the main loop this model knows too little there. Choices of one part
    that it would make took 1.2 to 2.9 times as long as these on an H100.
    """
    return target.backend == "rocm" and stores_result(problem, target, tiling, split_k)
