"""Tilings of the GPU schedules that fit a problem, an instruction and a chip."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.model.facts import rank_facts
from conv_compiler.strategies.gpu.lds_copies import copy_pieces, lds_bytes
from conv_compiler.strategies.gpu.loop_order import PLAIN_STAGES, along_gemm_k
from conv_compiler.strategies.strategy import GpuTiling
from conv_compiler.targets.f8 import multiplied, operand_bytes

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Mma, Target

# Workgroup tiles in matrix instructions (m, n) and the subgroups that share them, as large as the
# registers of a subgroup allow and then smaller for small problems.
SUBGROUPS = ((2, 2), (1, 4), (4, 1), (1, 2), (2, 1), (1, 1), (2, 4), (4, 2))
MMA_TILES = tuple(
    ((m, n), (subgroups_m, subgroups_n))
    for subgroups_m, subgroups_n in SUBGROUPS
    for m in (1, 2, 4, 8)
    for n in (1, 2, 4, 8)
    if m % subgroups_m == 0 and n % subgroups_n == 0
)
# Accumulators may take this part of a lane's registers; the rest go to operands, addresses and the
# loads in flight.
ACCUMULATOR_SHARE = 8
# Channels up to which groups are merged: the smallest side of a matrix instruction, and what
# fills half a cache line of 2-byte elements or a whole one.
MERGED_CHANNELS = (16, 32, 64)
# Bytes of gemm_k in an LDS row: enough to read whole 16-byte pieces, few enough for two stages.
K_TILE_BYTES = 128
# Vector kernels: threads of a workgroup, and candidate pieces (m, n) a thread computes.
VECTOR_THREADS = 256
VECTOR_PIECES = ((4, 4), (2, 4), (4, 2), (1, 4), (4, 1), (2, 2), (1, 2), (2, 1), (1, 1))
VECTOR_K_STEP = 4


def mma_tiling(
    problem: ConvProblem,
    target: Target,
    mma: Mma,
    tile: tuple[int, int, int],
    subgroups: tuple[int, int],
    *,
    taps_in_rows: bool = False,
    merged_groups: int = 1,
) -> GpuTiling | None:
    """A whole tiling for a workgroup tile, or None when registers or copies do not work out."""
    problem = merged(problem, merged_groups)
    threads = math.prod(subgroups) * target.subgroup_size
    if tile[0] * tile[1] // threads > target.vgprs_per_lane // ACCUMULATOR_SHARE:
        return None
    size = operand_bytes(problem, target)
    if lds_bytes(mma, tile, size) > target.lds_bytes:
        return None
    along_a, along_b = along_gemm_k(problem, target)
    halves = counts_halves(target)
    copies_a, copies_b = (
        copy_pieces(extent, tile[2], threads, rows, mma, beside, size, halves=halves)
        for extent, rows, beside in (
            (tile[0], mma.m, (problem.k, along_a)),
            (tile[1], mma.n, (problem.c, along_b)),
        )
    )
    if not copies_a or not copies_b:
        return None
    return GpuTiling(
        workgroup=tile,
        subgroups=subgroups,
        mma=mma.name,
        copy_a=copies_a[0],
        copy_b=copies_b[0],
        taps_outside=(
            not taps_in_rows and problem.c % tile[1] == 0 and math.prod(problem.filter) > 1
        ),
        taps_in_rows=taps_in_rows,
        merged_groups=merged_groups,
        stages=pipeline_stages(target, size),
    )


def pipeline_stages(target: Target, size: int) -> int:
    """Stages of a matrix kernel's software pipeline, for elements of `size` bytes.

    Bytes are turned in few instructions by the vectorizer alone that ordered trips do without
    (`implicit_gemm_schedule.ORDERED_FLAGS`); i8 took 1.3 to 4 times as long.
    """
    return PLAIN_STAGES if size == 1 else target.pipeline_stages


def stores_result(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> bool:
    """Whether the matrix kernel stores the result itself: no parts to add up, whole tiles, and
    columns that lie in the result as one axis.

    Taps may be an axis by themselves, but not the innermost: what a workgroup has of the result's
    last axis must be contiguous (IREE 3.13 cannot scatter by buffer instructions). Else taps and
    channels are one axis, taps outermost, or the other way round where the image is read along
    gemm_k (`passes/implicit_gemm_parts/im2col.py`).
    """
    if split_k > 1 or tiling.taps_in_rows or tiling.merged_groups > 1:
        return False
    taps, (m, n, _) = math.prod(problem.filter), tiling.workgroup
    if problem.k % m or (problem.c if tiling.taps_outside else taps * problem.c) % n:
        return False
    letters = problem.layout_row.grouped.weight
    is_sum = problem.result_type == problem.accumulator_type and not problem.fused
    if is_sum and letters.replace("*", "") == "GKC":
        return False  # the sums in their order are the result, and nothing is left to be made
    if tiling.taps_outside:
        return not letters.endswith("*")
    if taps == 1 or "*C" in letters:
        return True
    n_alone = tiling.inside == ("n",) or math.prod(problem.out_image) == 1
    return "C*" in letters and n_alone and along_gemm_k(problem, target)[1] > 1


def other_copies(
    problem: ConvProblem, target: Target, mma: Mma, tiling: GpuTiling
) -> Iterator[GpuTiling]:
    """The tiling with each way to copy its operands."""
    (m, n, k), size = tiling.workgroup, operand_bytes(problem, target)
    grouped, problem = problem.g > 1, merged(problem, tiling.merged_groups)
    threads = math.prod(tiling.subgroups) * target.subgroup_size
    along_a, along_b = along_gemm_k(problem, target)
    a = m, k, threads, mma.m, mma, (problem.k, along_a), size
    b = n, k, threads, mma.n, mma, (problem.c, along_b), size
    halves = counts_halves(target)
    pairs = list(itertools.product(*(copy_pieces(*side, halves=halves) for side in (a, b))))
    if writes_single_elements(target, size) and not grouped:  # a grouped layer lost a third by it
        pairs.append((copy_pieces(*a, unturned=True)[-1], copy_pieces(*b, unturned=True)[-1]))
    for copy_a, copy_b in dict.fromkeys(pairs):
        yield replace(tiling, copy_a=copy_a, copy_b=copy_b)


def counts_halves(target: Target) -> bool:
    """Whether writes of 16 bytes to LDS count as the halves they may be (`lds_write_cycles`). Not
    on NVIDIA, whose banks nobody has modelled: pieces chosen by it took 1.13 to 1.62 times as long
    on an H100."""
    return target.backend == "rocm"


def writes_single_elements(target: Target, size: int) -> bool:
    """Whether elements of `size` bytes may be written to LDS one by one: that costs LDS cycles and
    spares vector instructions, which take turns with matrix instructions on RDNA. Halves of a
    register have writes of their own, bytes have not."""
    return size == 2 and target.backend == "rocm" and not rank_facts(target).matrix_beside_valu


def can_have_taps_in_rows(problem: ConvProblem, target: Target) -> bool:
    """Whether windows of the output gradient can meet image pixels, and may be the smaller work.

    The image, read once a tile of rows, is then read again for fewer of them: where it has more
    channels than the gradient. Strides would leave holes between the gradient's pixels.
    """
    reach = [d * (f - 1) for d, f in zip(problem.dilation, problem.filter, strict=True)]
    pads = zip(problem.pad_low, problem.pad_high, reach, strict=True)
    return (
        target.backend == "rocm"
        and problem.k < problem.c
        and math.prod(problem.filter) > 1
        and set(problem.stride) == {1}
        and all(max(low, high) <= most for low, high, most in pads)
    )


def merges(problem: ConvProblem, target: Target) -> tuple[int, ...]:
    """How many neighbouring groups may be one to the GEMM: 1, and as many as fill an instruction.

    What the groups do to one another is computed and thrown away; their channels are read side by
    side, as they must lie in memory.
    """
    grouped = problem.layout_row.grouped
    side_by_side = "GC" in grouped.input and "GK" in grouped.output
    if target.backend != "rocm" or not side_by_side:
        return (1,)
    found = [1]
    for channels in MERGED_CHANNELS:
        most = max(1, channels // max(problem.k, problem.c))
        found.append(math.gcd(problem.g, 2 ** int(math.log2(most))))
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=256)
def merged(problem: ConvProblem, groups: int) -> ConvProblem:
    """The problem in which so many neighbouring groups are one."""
    if groups == 1:
        return problem
    return replace(problem, g=problem.g // groups, k=problem.k * groups, c=problem.c * groups)


def mma_tilings(
    problem: ConvProblem, target: Target, tile: tuple[int, ...] = ()
) -> Iterator[tuple[Mma, GpuTiling]]:
    """Every tiling for every matrix instruction of the type, all summed loops inside.

    With a workgroup `tile` every way to share it among subgroups, else the table's tiles.
    """
    for mma in target.mma_for(*multiplied(problem, target)):
        shapes = _shared(mma, tile) if tile else _listed(mma, operand_bytes(problem, target))
        ways = [(groups, False) for groups in merges(problem, target)]
        ways += [(1, True)] * can_have_taps_in_rows(problem, target)
        for (shape, subgroups), (groups, in_rows) in itertools.product(shapes, ways):
            if tiling := mma_tiling(
                *(problem, target, mma, shape, subgroups),
                taps_in_rows=in_rows,
                merged_groups=groups,
            ):
                yield mma, tiling


def _listed(mma: Mma, size: int) -> Iterator[tuple[tuple[int, int, int], tuple[int, int]]]:
    """The table's tiles in elements of `size` bytes, with the subgroups that share them."""
    depth = max(1, K_TILE_BYTES // size // mma.k)
    for (m, n), subgroups in MMA_TILES:
        for steps in (depth, depth // 2, depth // 4):
            if steps:
                yield (m * mma.m, n * mma.n, steps * mma.k), subgroups


def _shared(
    mma: Mma, tile: tuple[int, ...]
) -> Iterator[tuple[tuple[int, int, int], tuple[int, int]]]:
    """The tile with each arrangement of subgroups that whole instructions allow."""
    if len(tile) != 3 or min(tile) < 1 or tile[2] % mma.k:
        return
    m, n, k = tile
    for subgroups in SUBGROUPS:
        if m % (mma.m * subgroups[0]) == 0 and n % (mma.n * subgroups[1]) == 0:
            yield (m, n, k), subgroups


def tiles(problem: ConvProblem, tiling: GpuTiling) -> int:
    """Workgroups of one part."""
    m, n, _ = tiling.workgroup
    taps, problem = math.prod(problem.filter), merged(problem, tiling.merged_groups)
    if tiling.taps_in_rows:
        return problem.g * -(-taps * problem.k // m) * -(-problem.c // n)
    columns = taps * -(-problem.c // n) if tiling.taps_outside else -(-problem.gemm_n // n)
    return problem.g * -(-problem.gemm_m // m) * columns


def vector_threads(problem: ConvProblem, piece: tuple[int, int]) -> tuple[int, int, int]:
    """Threads of a workgroup along (m, n, groups): near square, what is left goes to groups."""
    m_pieces, n_pieces = -(-problem.gemm_m // piece[0]), -(-problem.gemm_n // piece[1])
    side = math.isqrt(VECTOR_THREADS)
    n = min(n_pieces, side)
    m = min(m_pieces, VECTOR_THREADS // n)
    n = min(n_pieces, VECTOR_THREADS // m)
    return m, n, min(problem.g, VECTOR_THREADS // (m * n))


def vector_tilings(problem: ConvProblem) -> Iterator[GpuTiling]:
    """Tilings of vector code.

    A piece of one sum has no fma (its k products are added as a tree): only for one weight a group.
    """
    one_sum = problem.gemm_m == problem.gemm_n == 1
    for piece in VECTOR_PIECES:
        if piece == (1, 1) and not one_sum:
            continue
        m, n, _ = vector_threads(problem, piece)
        tile = (m * piece[0], n * piece[1], VECTOR_K_STEP)
        yield GpuTiling(workgroup=tile, subgroups=(1, 1), piece=piece, stages=0)
