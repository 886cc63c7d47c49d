# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of vectors put together and taken apart in registers, by shuffles of two vectors each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from iree.compiler import ir
from iree.compiler.dialects import vector


def part_of(row: ir.Value, first: int, width: int) -> ir.Value:
    """So many elements of a vector."""
    type = ir.VectorType.get([width], ir.VectorType(row.type).element_type)
    return vector.ExtractStridedSliceOp(type, row, [first], [width], [1]).result


def riffled(rows: list[ir.Value]) -> list[ir.Value]:
    """Rows of vectors, a power of two of them, as their columns, one behind the other.

    Each stage shuffles two rows that are half of all apart into one of twice the length.
    """
    (width,) = ir.VectorType(rows[0].type).shape
    shuffle = list(chain.from_iterable((i, width + i) for i in range(width)))
    for _ in range(len(rows).bit_length() - 1):
        half = len(rows) // 2
        rows = [
            vector.ShuffleOp(rows[i], rows[i + half], mask).result
            for i in range(half)
            for mask in (shuffle[:width], shuffle[width:])
        ]
    return rows


def side_by_side(rows: Sequence[ir.Value], element: ir.Type) -> ir.Value:
    """Two rows riffled, what comes to lie side by side as one element of twice the width."""
    (width,) = ir.VectorType(rows[0].type).shape
    riffle = list(chain.from_iterable((i, width + i) for i in range(width)))
    both = vector.ShuffleOp(*rows, riffle).result
    return vector.BitCastOp(ir.VectorType.get([width], element), both).result


def deinterleaved(rows: list[ir.Value]) -> list[ir.Value]:
    """Every n-th element of n rows of vectors that lie one behind the other, a power of two of
    them: what `riffled` puts together.

    Each stage shuffles two neighbours into their even elements and their odd ones.
    """
    (width,) = ir.VectorType(rows[0].type).shape
    for _ in range(len(rows).bit_length() - 1):
        rows = [
            vector.ShuffleOp(rows[i], rows[i + 1], list(range(odd, 2 * width, 2))).result
            for odd in (0, 1)
            for i in range(0, len(rows), 2)
        ]
    return rows
