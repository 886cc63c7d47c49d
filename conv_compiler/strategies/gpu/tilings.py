# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tilings of the GPU schedules that fit a problem, an instruction and a chip."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.model.facts import rank_facts
from conv_compiler.strategies.gpu.cost_constants import TILES
from conv_compiler.strategies.gpu.lds_banks import Item
from conv_compiler.strategies.gpu.lds_copies import Share, copy_pieces, lds_bytes
from conv_compiler.strategies.gpu.lds_loads import loading_to_lds
from conv_compiler.strategies.gpu.loop_order import PLAIN_STAGES, along_gemm_k, has_columns_apart
from conv_compiler.strategies.gpu.tail_masking import is_cdna
from conv_compiler.strategies.strategy import GpuTiling
from conv_compiler.targets.f8 import multiplied, operand_bytes
from conv_compiler.targets.limits import (
    ACCUMULATOR_SHARE,
    K_TILE_BYTES,
    MMA_TILES,
    SUBGROUPS,
)

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Mma, Target


# Bytes of an element of which a lane of WMMA reads 16 bytes at a time.
WHOLE_ROW_ITEM_BYTES = 2


class Shape(NamedTuple):
    """A workgroup's tile (m, n, gemm_k) in elements, and the subgroups (m, n) that share it."""

    tile: tuple[int, int, int]
    subgroups: tuple[int, int]


class Arrangement(NamedTuple):
    """How many neighbouring groups are one to the GEMM, and whether filter taps are rows."""

    merged_groups: int = 1
    taps_in_rows: bool = False


def mma_tiling(
    problem: ConvProblem,
    target: Target,
    mma: Mma,
    shape: Shape,
    arrangement: Arrangement,
) -> GpuTiling | None:
    """A whole tiling for a workgroup's tile, or None where registers, LDS or copies do not fit."""
    problem = merged(problem, arrangement.merged_groups)
    (tile, subgroups), taps_in_rows = shape, arrangement.taps_in_rows
    threads = math.prod(subgroups) * target.subgroup_size
    sums = target.vgprs_per_lane // ACCUMULATOR_SHARE
    if tile[0] * tile[1] // threads > sums:
        return None
    size = operand_bytes(problem, target)
    if lds_bytes(mma, tile, size) > target.lds_bytes:
        return None
    item = item_of(problem, target)
    pieces_a, pieces_b = (
        copy_pieces(share, item) for share in _shares(problem, target, mma, shape)
    )
    if not pieces_a or not pieces_b:
        return None
    in_rows_or_merged = taps_in_rows or arrangement.merged_groups > 1
    channels_outside = not in_rows_or_merged and has_columns_apart(problem, target, tile[1])
    return GpuTiling(
        workgroup=tile,
        subgroups=subgroups,
        mma=mma.name,
        copy_a=pieces_a[0],
        copy_b=pieces_b[0],
        taps_outside=(
            not (taps_in_rows or channels_outside)
            and problem.c % tile[1] == 0
            and math.prod(problem.filter) > 1
        ),
        channels_outside=channels_outside,
        taps_in_rows=taps_in_rows,
        merged_groups=arrangement.merged_groups,
        stages=pipeline_stages(target, size),
    )


def _shares(problem: ConvProblem, target: Target, mma: Mma, shape: Shape) -> tuple[Share, Share]:
    """What the threads of a workgroup share of operands a and b."""
    m, n, k = shape.tile
    threads = math.prod(shape.subgroups) * target.subgroup_size
    along_a, along_b = along_gemm_k(problem, target)
    along_k = mma.unit(mma.k)
    return (
        Share((m, k), (mma.unit(mma.m), along_k), threads, (problem.k, along_a)),
        Share((n, k), (mma.unit(mma.n), along_k), threads, (problem.c, along_b)),
    )


def pipeline_stages(target: Target, size: int) -> int:
    """Depth of a matrix kernel's software pipeline, for elements of `size` bytes.

    Bytes are transposed in few instructions only by LLVM's vectorizer, which interleaved loops do
    without (`implicit_gemm_schedule.py`). Interleaved i8 took 1.3 to 4 times as long.
    """
    return PLAIN_STAGES if size == 1 else target.pipeline_stages


def other_copies(
    problem: ConvProblem, target: Target, mma: Mma, tiling: GpuTiling
) -> Iterator[GpuTiling]:
    """The tiling with each way to copy its operands."""
    size, grouped = operand_bytes(problem, target), problem.g > 1
    problem = merged(problem, tiling.merged_groups)
    item = item_of(problem, target)
    shares = _shares(problem, target, mma, Shape(tiling.workgroup, tiling.subgroups))
    pairs = list(itertools.product(*(copy_pieces(share, item) for share in shares)))
    is_single = writes_single_elements(target, size) and not grouped  # else a third was lost
    if is_single or can_read_transposed(problem, target, mma):
        a, b = (copy_pieces(share, item, single=True)[-1] for share in shares)
        pairs.append((a, b))
    for copy_a, copy_b in dict.fromkeys(pairs):
        yield replace(tiling, copy_a=copy_a, copy_b=copy_b)
    # A tile of gemm_k of several pixels is read in other pieces than it has along gemm_k.
    one_pixel = tiling.inside == ("n",) or math.prod(problem.out_image) == 1
    if one_pixel or max(share.adjacent[1] for share in shares) == 1:
        yield from loading_to_lds(target, mma, tiling, shares, size)


def item_of(problem: ConvProblem, target: Target) -> Item:
    """The elements of the operands, with what is known of a chip's writes to LDS.

    NVIDIA's banks nobody has modelled: pieces chosen by halves took 1.13 to 1.62 times as long on
    an H100. On RDNA a row counts as several writes where both operands are contiguous along gemm_k.
    Rows of 16-bit types are whole there, for lanes read 16 bytes of one at a time. Where an operand
    is transposed neither holds: data gradients take 1.1 times as long by several writes.
    """
    size, is_amd = operand_bytes(problem, target), target.backend == "rocm"
    straight = min(along_gemm_k(problem, target)) > 1
    return Item(
        size,
        halves=is_amd,
        several=is_amd and (is_cdna(target) or straight),
        whole_rows=is_amd and straight and not is_cdna(target) and size == WHOLE_ROW_ITEM_BYTES,
    )


def writes_single_elements(target: Target, size: int) -> bool:
    """Whether elements of `size` bytes may be written to LDS one by one.

    That costs LDS cycles and spares vector instructions, which take turns with matrix instructions
    on RDNA. There are instructions that write half a register, but none for a byte of it.
    """
    return size == 2 and target.backend == "rocm" and not rank_facts(target).matrix_beside_valu


def can_read_transposed(problem: ConvProblem, target: Target, mma: Mma) -> bool:
    """Whether lanes can read both operands from LDS transposed.

    Threads then write what they read of a pixel as it is, and no registers are transposed. It takes
    instructions of the chip, operands that are contiguous along rows and columns, and an operand
    layout of one axis each along rows and gemm_k.
    """
    bits = 8 * operand_bytes(problem, target)
    plain = all(mma.unit(extent) == extent for extent in (mma.m, mma.n, mma.k))
    has_instructions = target.isa is not None and bits in target.isa.transposed_read_bits
    return has_instructions and plain and max(along_gemm_k(problem, target)) == 1


def reads_transposed(problem: ConvProblem, target: Target, mma: Mma, tiling: GpuTiling) -> bool:
    """Whether lanes read the tiling's operands from LDS transposed: where pieces are of one pixel
    each."""
    along_k = {tiling.copy_a[1], tiling.copy_b[1]}
    return along_k == {1} and can_read_transposed(problem, target, mma)


def transposed_sides(
    problem: ConvProblem, target: Target, mma: Mma, tiling: GpuTiling
) -> tuple[bool, bool]:
    """Whether lanes read operands a and b from LDS transposed; each by itself where loads write
    to LDS."""
    if tiling.loads_to_lds:
        a, b = (along == 1 for along in along_gemm_k(problem, target))
        return a, b
    both = reads_transposed(problem, target, mma, tiling)
    return both, both


def can_have_taps_in_rows(problem: ConvProblem, target: Target) -> bool:
    """Whether windows of the output gradient can meet image pixels, and may be less work.

    Each tile of rows reads the whole image. With taps in the rows there are fewer such tiles where
    the image has more channels than the gradient. With a stride there would be holes between the
    gradient's pixels.
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

    Products across groups are computed and dropped. The groups' channels must be adjacent in
    memory, for they are read together.
    """
    grouped = problem.layout_row.grouped
    side_by_side = "GC" in grouped.input and "GK" in grouped.output
    if target.backend != "rocm" or not side_by_side:
        return (1,)
    found = [1]
    for channels in TILES.merged_channels:
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

    With a workgroup's `tile` every way to share it among subgroups, else the table's tiles.
    """
    for mma in target.mma_for(*multiplied(problem, target)):
        shapes = _shared(mma, tile) if tile else _listed(mma, operand_bytes(problem, target))
        ways = [Arrangement(merged_groups=groups) for groups in merges(problem, target)]
        if can_have_taps_in_rows(problem, target):
            ways.append(Arrangement(taps_in_rows=True))
        for shape, way in itertools.product(shapes, ways):
            if tiling := mma_tiling(problem, target, mma, shape, way):
                yield mma, tiling


def _listed(mma: Mma, size: int) -> Iterator[Shape]:
    """The table's tiles in elements of `size` bytes, with the subgroups that share them."""
    depth = max(1, K_TILE_BYTES // size // mma.k)
    for (m, n), subgroups in MMA_TILES:
        for steps in (depth, depth // 2, depth // 4):
            if steps and steps % mma.joined == 0:
                yield Shape((m * mma.m, n * mma.n, steps * mma.k), subgroups)


def _shared(mma: Mma, tile: tuple[int, ...]) -> Iterator[Shape]:
    """The tile with each arrangement of subgroups that whole instructions allow."""
    if len(tile) != 3 or min(tile) < 1 or tile[2] % (mma.k * mma.joined):
        return
    m, n, k = tile
    for subgroups in SUBGROUPS:
        if m % (mma.m * subgroups[0]) == 0 and n % (mma.n * subgroups[1]) == 0:
            yield Shape((m, n, k), subgroups)


def vector_threads(problem: ConvProblem, piece: tuple[int, int]) -> tuple[int, int, int]:
    """Threads of a workgroup along (m, n, groups): near square, and groups for the rest."""
    m_pieces, n_pieces = -(-problem.gemm_m // piece[0]), -(-problem.gemm_n // piece[1])
    side = math.isqrt(TILES.vector_threads)
    n = min(n_pieces, side)
    m = min(m_pieces, TILES.vector_threads // n)
    n = min(n_pieces, TILES.vector_threads // m)
    return m, n, min(problem.g, TILES.vector_threads // (m * n))


def vector_tilings(problem: ConvProblem) -> Iterator[GpuTiling]:
    """Tilings of vector code.

    A thread with one sum adds its products as a tree, without multiply-adds. So there is such a
    tiling only for problems with one weight a group.
    """
    one_sum = problem.gemm_m == problem.gemm_n == 1
    for piece in TILES.vector_sums:
        if piece == (1, 1) and not one_sum:
            continue
        m, n, _ = vector_threads(problem, piece)
        tile = (m * piece[0], n * piece[1], TILES.vector_gemm_k_products)
        yield GpuTiling(workgroup=tile, subgroups=(1, 1), piece=piece, stages=0)
