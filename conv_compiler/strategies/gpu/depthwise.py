"""The depthwise strategy: tilings that fit, how long each would take, and what rides on the ops.

A group of one channel has a gradient that any chip computes faster than its memory brings the
operands: the kernel (`passes/depthwise.py`) reads each about once and keeps all else in registers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.model.counts import KernelCounts, counted
from conv_compiler.model.estimate import estimate
from conv_compiler.model.facts import rank_facts
from conv_compiler.model.launch import Launch
from conv_compiler.problem.batching import BUFFER_BYTES
from conv_compiler.strategies.gpu.cost import SLACK
from conv_compiler.strategies.gpu.split_k_reduction import (
    reduction_info,
    reduction_seconds,
    sums_of_few,
)
from conv_compiler.strategies.pipeline_file import read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import DepthwiseTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

DTYPES = ("f16", "bf16", "f32", "i8")
# Groups a thread may have side by side, and the sums it may keep of all their taps.
VECTORS = (8, 4, 2, 1)
MOST_SUMS = 128
# Output columns of a strip at most, and where no such number divides them.
MOST_COLUMNS, UNEVEN_COLUMNS = 8, 4
# Rows of a trip at most: they are written out one after another.
MOST_UNROLLED = 8
THREADS = (128, 256, 512)
# Bytes of neighbouring groups that threads side by side read at least, where there are so many.
LEAST_LINE = 64
# Workgroups a unit has in all, of which the model chooses.
WORKGROUPS_PER_UNIT = (1, 2, 4, 8)
MOST_PARTS = 1024
# Tilings of which all splits are modelled: the fastest with the split that comes nearest to two
# workgroups a unit. And those tried at most, should the first ones spill.
MODELLED, MOST_CANDIDATES = 32, 8
DWORD = 4
# Registers beside sums, window and gradients.
OTHER_VGPRS = 16
# Vector instructions, counted in compiled kernels: to find a strip, to address a row, and to mask
# a load at an edge.
STRIP_VALU, ROW_VALU, MASK_VALU = 40, 6, 2


def fits(problem: ConvProblem, target: Target) -> bool:
    """Whether groups of one channel lie side by side, in a type that vector units multiply.

    Operands are read by buffer instructions, and their elements counted in 32 bits.
    """
    row = problem.layout_row.grouped
    largest = max(math.prod(problem.input_shape), math.prod(problem.output_shape))
    return (
        problem.k == problem.c == 1 < min(problem.g, math.prod(problem.filter))
        and problem.direction == "bwd_weight"
        and row.input.endswith("GC")
        and row.output.endswith("GK")
        and set(problem.operand_dtypes) <= set(DTYPES)
        and len(set(problem.operand_dtypes)) == 1
        and largest * problem.data_type.bytes < BUFFER_BYTES
        and target.backend == "rocm"
    )


def _divisors(value: int, most: int) -> list[int]:
    return [n for n in range(1, min(value, most) + 1) if value % n == 0]


def _rows(problem: ConvProblem) -> tuple[int, int, int, int]:
    """Outputs, taps, stride and dilation of the spatial dimension before the last."""
    if problem.ndim == 1:
        return 1, 1, 1, 1
    return (
        problem.out_image[-2],
        problem.filter[-2],
        problem.stride[-2],
        problem.dilation[-2],
    )


def _kept(problem: ConvProblem) -> int:
    """Rows of a window that are its next one's too."""
    _, taps, stride, dilation = _rows(problem)
    return 0 if stride % dilation else max(0, taps - stride // dilation)


@lru_cache(maxsize=4096)
def _reach(problem: ConvProblem, columns: int) -> int:
    """Vectors of the image in a row of the window, over all depths."""
    depth = problem.filter[0] if problem.ndim == 3 else 1
    stride, dilation = problem.stride[-1], problem.dilation[-1]
    taps = problem.filter[-1]
    return depth * len({u * stride + x * dilation for u in range(columns) for x in range(taps)})


def _vgprs(problem: ConvProblem, tiling: DepthwiseTiling) -> int:
    """Registers of a thread, about: sums, window and gradients, and what later rows load."""
    _, taps, _, _ = _rows(problem)
    reach = _reach(problem, tiling.columns)
    fresh = reach * (taps - _kept(problem)) + tiling.columns
    vectors = math.prod(problem.filter) + reach * taps + tiling.columns
    dwords = -(-tiling.vector * problem.data_type.bytes // DWORD)
    return vectors * tiling.vector + fresh * (tiling.unroll - 1) * dwords + OTHER_VGPRS


def _lanes(vectors: int, a_vector: int, threads: int) -> Iterator[int]:
    """Threads side by side along the groups: all of them, or even shares that read whole lines."""
    least = min(vectors, max(1, LEAST_LINE // a_vector))
    shares = [n for n in range(least, min(vectors, threads) + 1) if vectors % n == 0]
    if not shares:
        shares = [-(-vectors // -(-vectors // threads))]
    # The narrowest, which makes the fewest parts, and the widest.
    yield from dict.fromkeys((shares[0], shares[-1]))


def tilings(problem: ConvProblem, target: Target) -> Iterator[DepthwiseTiling]:
    """Every tiling whose sums and window the registers and the LDS hold."""
    taps, size = math.prod(problem.filter), problem.data_type.bytes
    across, rows = problem.out_image[-1], _rows(problem)[0]
    columns = _divisors(across, MOST_COLUMNS)
    if columns == [1] and across > 1:
        columns = [1, UNEVEN_COLUMNS]
    for vector in VECTORS:
        if problem.g % vector or taps * vector > MOST_SUMS or vector * size > 4 * DWORD:
            continue
        for width, high in itertools.product(columns[-3:], _divisors(rows, rows)[-6:]):
            steps = _divisors(high, MOST_UNROLLED)
            for unroll in dict.fromkeys((*steps[:2], steps[-1])):
                for threads in THREADS:
                    if taps * vector * DWORD * threads > target.lds_bytes:
                        continue
                    for lanes in _lanes(problem.g // vector, vector * size, threads):
                        tiling = DepthwiseTiling(
                            vector=vector,
                            columns=width,
                            rows=high,
                            unroll=unroll,
                            lanes=lanes,
                            threads=threads,
                        )
                        if _vgprs(problem, tiling) <= min(256, target.vgprs_per_lane):
                            yield tiling


def rounds(problem: ConvProblem, tiling: DepthwiseTiling) -> int:
    """Rounds of strips of all parts together."""
    high = _rows(problem)[0]
    depth = problem.out_image[0] if problem.ndim == 3 else 1
    strips = problem.n * depth * -(-high // tiling.rows)
    strips *= -(-problem.out_image[-1] // tiling.columns)
    return -(-strips // (tiling.threads // tiling.lanes))


def blocks(problem: ConvProblem, tiling: DepthwiseTiling) -> int:
    """Workgroups of a part."""
    return -(-problem.g // (tiling.lanes * tiling.vector))


def filled_parts(problem: ConvProblem, tiling: DepthwiseTiling, split_k: int) -> int:
    """Of so many parts those that have strips: a part has whole rounds of them."""
    whole = rounds(problem, tiling)
    return -(-whole // -(-whole // split_k))


def splits(
    problem: ConvProblem,
    target: Target,
    tiling: DepthwiseTiling,
    per_unit: tuple[int, ...] = WORKGROUPS_PER_UNIT,
) -> list[int]:
    """Numbers of parts worth trying: those that give each unit so many workgroups, cut evenly."""
    whole, a_part = rounds(problem, tiling), blocks(problem, tiling)
    found = []
    for workgroups in per_unit:
        most = rank_facts(target).units * workgroups // a_part
        most = max(1, min(most, whole, MOST_PARTS, problem.gemm_k))
        found.append(-(-whole // -(-whole // most)))
    return list(dict.fromkeys(found))


@lru_cache(maxsize=16384)
def predict(problem: ConvProblem, target: Target, tiling: DepthwiseTiling, split_k: int) -> float:
    """Modelled seconds of a problem with a tiling and a split: its kernel and the reduction."""
    chip, size = rank_facts(target), problem.data_type.bytes
    taps, vector, lanes = math.prod(problem.filter), tiling.vector, target.subgroup_size
    _, high, _, _ = _rows(problem)
    reach, kept = _reach(problem, tiling.columns), _kept(problem)
    together = tiling.threads // tiling.lanes
    dwords = -(-vector * size // DWORD)
    packed = chip.valu_cycles == 4 and not problem.data_type.is_integer and vector > 1
    a_product = vector / 2 if packed else vector * (1 + problem.data_type.is_integer)
    widen = 0 if size == DWORD else vector
    padded = any((*problem.pad_low, *problem.pad_high))

    def work(image_rows: int, out_rows: int) -> dict[str, float]:
        loads = image_rows * reach + out_rows * tiling.columns
        valu = (
            loads * (widen + (MASK_VALU * dwords / 2 if padded else 0))
            + (image_rows + out_rows) * ROW_VALU
            + taps * tiling.columns * out_rows * a_product
        )
        return {
            "valu": valu,
            "valu_slots": valu,
            "vector_flops": 2 * taps * tiling.columns * out_rows * vector * lanes,
            "loads": loads,
            "load_dwords": loads * dwords,
            "load_bytes": loads * vector * size * lanes,
            "line_bytes": loads * vector * size * lanes,
        }

    a_part = -(-rounds(problem, tiling) // split_k)
    copies = kept * reach * vector / 2 if tiling.unroll < tiling.rows else 0
    trip = work((high - kept) * tiling.unroll, tiling.unroll)
    trip["valu_slots"] += copies
    trips = a_part * tiling.rows // tiling.unroll
    start = work(kept, 0)
    items = taps * tiling.lanes / tiling.threads
    outside = counted(
        valu=a_part * (start["valu"] + STRIP_VALU),
        valu_slots=a_part * (start["valu"] + STRIP_VALU) + items * together * vector,
        loads=a_part * start["loads"],
        load_dwords=a_part * start["load_dwords"],
        line_bytes=a_part * start["line_bytes"],
        lds_writes_4=taps * vector,
        lds_reads_4=items * together * vector,
        stores=items,
        store_dwords=items * vector,
    )
    counts = KernelCounts(body=(counted(**trip),), trips=trips, outside=outside, source="predicted")
    read = (math.prod(problem.input_shape) + math.prod(problem.output_shape)) * size
    launch = Launch(
        workgroups=split_k * blocks(problem, tiling),
        waves=-(-tiling.threads // lanes),
        vgprs=_vgprs(problem, tiling),
        lds_bytes=taps * vector * DWORD * tiling.threads,
        read_bytes=read,
        written_bytes=split_k * math.prod(problem.weight_shape) * DWORD,
    )
    main = estimate(counts, launch, target, chip)
    sums = sums_of_few(problem, target)
    reduction = reduction_seconds(problem, target, split_k, sums)
    return main.seconds + SLACK * main.unit_seconds + reduction


def candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """Tilings and splits, fastest first; those with the strip `tile`, where one is given."""
    if not fits(problem, target):
        return ()

    def seconds(tiling: DepthwiseTiling, parts: int) -> float:
        return predict(problem, target, tiling, parts)

    rough: dict[object, tuple[float, DepthwiseTiling]] = {}
    for tiling in tilings(problem, target):
        if tile in ((), (tiling.columns, tiling.rows, tiling.vector)):
            parts = splits(problem, target, tiling, (2,))[0]
            if split_k:
                parts = filled_parts(problem, tiling, split_k)
            entry = seconds(tiling, parts), tiling
            strip = (tiling.vector, tiling.columns, tiling.rows, tiling.unroll, tiling.lanes)
            if strip not in rough or entry[0] < rough[strip][0]:
                rough[strip] = entry
    timed = []
    for _, tiling in sorted(rough.values(), key=lambda entry: entry[0])[:MODELLED]:
        several = splits(problem, target, tiling)
        if split_k:
            several = [filled_parts(problem, tiling, split_k)]
        timed.append((*min((seconds(tiling, n), n) for n in several), tiling))
    return tuple(
        Strategy(name="depthwise", tiling=tiling, split_k=parts)
        for _, parts, tiling in sorted(timed, key=lambda entry: entry[0])[:MOST_CANDIDATES]
    )


def passes(problem: ConvProblem, target: Target, strategy: Strategy) -> tuple[Pass, ...]:
    """The payload as a kernel of vectors."""
    from conv_compiler.passes.depthwise import Depthwise

    tiling = strategy.tiling
    assert isinstance(tiling, DepthwiseTiling)
    return (Depthwise(**asdict(tiling), split_k=strategy.split_k),)


def schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """Pipeline of a kernel of vectors."""
    tiling = strategy.tiling
    assert isinstance(tiling, DepthwiseTiling)
    info = CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=read_pipeline("gpu_depthwise", {target.backend: True}).steps,
        workgroup_size=(tiling.threads, 1, 1),
        subgroup_size=target.subgroup_size,
    )
    roles = {"contraction": info}
    if strategy.split_k > 1:
        sums = sums_of_few(problem, target)
        roles["reduction"] = reduction_info(problem, target, strategy.split_k, sums)
    return Schedule(roles=roles)
