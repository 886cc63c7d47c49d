# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tilings whose loads write to LDS by themselves (`passes/load_to_lds.py`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.cost_constants import LDS_LOADS
from conv_compiler.strategies.gpu.lds_banks import Item, Pair
from conv_compiler.strategies.gpu.lds_copies import (
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
    target: Target, mma: Mma, tiling: GpuTiling, shares: tuple[Share, Share], size: int
) -> Iterator[GpuTiling]:
    """A tiling with loads that write elements of `size` bytes to LDS, in so many buffers as are
    tried; none where such loads cannot bring both operands as lanes read them.

    `shares` are those of operands a and b. What lies along gemm_k in memory lanes read as it is,
    the other transposed.
    """
    width = target.isa.lds_load_bytes if target.isa else 0
    if not width:
        return
    pieces = [
        (1, width // size) if share.adjacent[1] > 1 else (width // size, 1) for share in shares
    ]
    for piece, share, side in zip(pieces, shares, (mma.m, mma.n), strict=True):
        if not _fits(piece, share) or not _can_be_read(target, mma, side, piece, size):
            return
    a, b = pieces
    for buffers in LDS_LOADS.buffered_tiles:
        found = replace(tiling, copy_a=a, copy_b=b, stages=buffers, loads_to_lds=True)
        if tiling_lds_bytes(mma, found, Item(size)) <= target.lds_bytes:
            yield found


def _can_be_read(target: Target, mma: Mma, side: int, piece: Pair, size: int) -> bool:
    """Whether lanes can read an operand of this `side` from rows of LDS without padding."""
    if piece[0] > 1:
        bits = target.isa.transposed_read_bits if target.isa else ()
        plain = mma.unit(side) == side and mma.unit(mma.k) == mma.k
        return plain and 8 * size in bits and not transposed_padding(side * size)
    # A lane's fragment is a piece, which a read finds by its row.
    width = piece[1] * size
    is_piece = side * mma.k * size == width * target.subgroup_size
    return is_piece and mma.unit(mma.k) * size // width in TURNED_PIECES


def _fits(piece: Pair, share: Share) -> bool:
    """Whether pieces divide what is adjacent in memory, an instruction's operand, and the work of
    the threads."""
    axis, elements = int(piece[1] > 1), math.prod(piece)
    return (
        share.adjacent[axis] % elements == 0 == share.unit[axis] % elements
        and math.prod(share.tile) % (elements * share.threads) == 0
    )
