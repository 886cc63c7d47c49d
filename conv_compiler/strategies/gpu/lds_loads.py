# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tilings whose loads write to LDS by themselves (`passes/load_to_lds.py`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.cost_constants import LDS_LOADS
from conv_compiler.strategies.gpu.lds_copies import (
    Pair,
    Share,
    tiling_lds_bytes,
    transposed_padding,
)

if TYPE_CHECKING:
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Mma, Target

# Pieces of a row of LDS that can change places among all banks (`main_loop/turned_rows.py`).
TURNED_PIECES = (1, 2, 4, 8)


def loading_to_lds(
    target: Target, mma: Mma, tiling: GpuTiling, shares: tuple[Share, ...], size: int
) -> Iterator[GpuTiling]:
    """A tiling with loads that write elements of `size` bytes to LDS, in so many buffers as are
    tried; none where such loads cannot bring both operands as lanes read them.

    `shares` are those of operands a and b, which must both lie along gemm_k in memory, or neither:
    lanes read the ones as they are, the others transposed.
    """
    width = target.isa.lds_load_bytes if target.isa else 0
    along = [share.adjacent[1] > 1 for share in shares]
    if not width or any(along) != all(along):
        return
    piece = _piece(width // size, along_k=all(along))
    fragments = {side * mma.k * size // target.subgroup_size for side in (mma.m, mma.n)}
    if all(along):
        # A lane's fragment is a piece, which a read finds by its row.
        fits = fragments == {width} and mma.unit(mma.k) * size // width in TURNED_PIECES
    else:
        bits = target.isa.transposed_read_bits if target.isa else ()
        # Rows that need no padding: a wave writes without holes.
        padded = any(transposed_padding(side * size) for side in (mma.m, mma.n))
        fits = 8 * size in bits and not padded
    if not fits or not all(_divides(piece, share) for share in shares):
        return
    for buffers in LDS_LOADS.buffered_tiles:
        found = replace(tiling, copy_a=piece, copy_b=piece, stages=buffers, loads_to_lds=True)
        if tiling_lds_bytes(mma, found, size) <= target.lds_bytes:
            yield found


def _piece(elements: int, *, along_k: bool) -> Pair:
    return (1, elements) if along_k else (elements, 1)


def _divides(piece: Pair, share: Share) -> bool:
    """Whether pieces divide what is adjacent in memory, an instruction's operand, and the work of
    the threads."""
    axis, elements = int(piece[1] > 1), math.prod(piece)
    return (
        share.adjacent[axis] % elements == 0 == share.unit[axis] % elements
        and math.prod(share.tile) % (elements * share.threads) == 0
    )
