# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of schedules whose matrix instructions take block scales."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ScaledTiling:
    """Numbers of a GPU schedule of operands with block scales (`passes/scaled_gemm.py`).

    A wave has `row_tiles` x `column_tiles` products by the matrix instruction `mma`, in IREE's
    name; `waves` waves of a workgroup lie side by side along the columns.
    """

    row_tiles: int
    column_tiles: int
    waves: int
    mma: str

    @property
    def workgroup(self) -> tuple[int, int, int]:
        """The tile a user names."""
        return self.row_tiles, self.column_tiles, self.waves
