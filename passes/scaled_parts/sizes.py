# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the pass `scaled-gemm`, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from conv_compiler.problem.dtypes import DTYPES, DType

# Of v_mfma_scale_f32_16x16x128_f8f6f4: rows and columns, products of a sum, products that have one
# scale of either operand, and adjacent rows of a column that a lane gets.
SIDE, DEPTH, BLOCK, ROWS = 16, 128, 32, 4
# The orders of a result's axes that a kernel stores: images C, space, groups G, rows K.
RESULTS = ("C*GK", "GC*K", "GK*C")


@dataclass(frozen=True, kw_only=True)
class ScaledSizes:
    """A contraction in the roles of a weight gradient (`problem/canonical.py`), and its tiles.

    `source` has the letters of the axes of the image, `weight` those of the gradient, `result`
    those of the weight gradient, of which a row is an index of K. `summed` counts N, which is cut
    into blocks, and `images` counts C. `elements` names the type of the elements of both. `image`,
    `outs` and `taps` are the spatial sizes of the three. A wave has `row_tiles` x `column_tiles`
    products of 16x16, and a workgroup `waves` waves side by side along the columns.
    """

    source: str
    weight: str
    result: str
    elements: str
    groups: int
    rows: int
    images: int
    summed: int
    image: tuple[int, ...]
    outs: tuple[int, ...]
    taps: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pad: tuple[int, ...]
    row_tiles: int
    column_tiles: int
    waves: int

    @property
    def columns(self) -> int:
        """Columns of a group: result pixels of all images."""
        return self.images * math.prod(self.taps)

    @property
    def blocks(self) -> int:
        """Blocks along N."""
        return self.summed // BLOCK

    @property
    def steps(self) -> int:
        """Products of DEPTH along N; the last may have fewer blocks."""
        return -(-self.summed // DEPTH)

    @property
    def element(self) -> DType:
        """The type of the elements."""
        return DTYPES[self.elements]

    @property
    def run(self) -> int:
        """Depths that follow one another in a lane's registers: a block of packed elements, of
        others half of one. A lane has a block of depths in all, runs of a half DEPTH apart."""
        return BLOCK if self.element.is_packed else BLOCK // 2

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a workgroup."""
        return SIDE * self.row_tiles, SIDE * self.column_tiles * self.waves

    @property
    def row_is_inner(self) -> bool:
        """Whether adjacent elements of the result are adjacent rows, not columns."""
        return self.result.endswith("K")
