# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of schedules whose kernels a pass writes down to their addresses (NVIDIA)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class TailTile:
    """A smaller tile (m, n), of the rows that whole rounds of a larger tile leave.

    The larger one has the first `head_tiles` tiles of rows, for all columns. `warp_groups` and
    `stages` are as in `WarpGroupTiling`; gemm_k of a tile and the instruction are those of the
    larger one.
    """

    head_tiles: int
    tile: tuple[int, int]
    warp_groups: tuple[int, int]
    stages: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """As the pass has them (`passes/wgmma_parts/pixel_sizes.py`)."""
        return self.head_tiles, *self.tile, *self.warp_groups, self.stages


@dataclass(frozen=True, kw_only=True)
class WarpGroupTiling:
    """Numbers of a GPU schedule of wave groups, or of waves (`passes/wgmma_gemm.py`).

    `workgroup` is the GEMM tile (m, n, gemm_k) of a workgroup in one iteration of its main loop;
    `warp_groups` counts those that share its m and its n: wave groups, or waves by `mma.sync`. LDS
    holds `stages` tiles of both operands. `mma` is the instruction, named as IREE names others.
    `merged_groups` neighbouring groups are one to the GEMM, of which only the blocks on the
    diagonal are kept.

    With `row_workgroups` the schedule is weight-stationary: as many workgroups share the row tiles
    of each column tile, and LDS keeps the weight of those columns beside the stages, which are of
    the other operand alone. 0 is a workgroup for each row tile.

    With a `tail` the last rows are those of smaller tiles, in workgroups of as many threads.
    """

    workgroup: tuple[int, int, int]
    warp_groups: tuple[int, int]
    stages: int
    mma: str
    merged_groups: int = 1
    row_workgroups: int = 0
    tail: TailTile | None = None

    @property
    def kinds(self) -> tuple[WarpGroupTiling, ...]:
        """Its kinds of tiles as tilings without a tail: its own, and behind it that of the tail."""
        if self.tail is None:
            return (self,)
        m, n = self.tail.tile
        small = replace(
            self,
            workgroup=(m, n, self.workgroup[2]),
            warp_groups=self.tail.warp_groups,
            stages=self.tail.stages,
            tail=None,
        )
        return replace(self, tail=None), small

    @property
    def by_wave_groups(self) -> bool:
        """Whether wave groups multiply, and not waves."""
        return self.mma.startswith("WGMMA")

    @property
    def element_bytes(self) -> int:
        """Bytes of an operand's element."""
        if self.mma.endswith("TF32"):
            return 4
        return 1 if self.mma.startswith("WGMMA") and "x32_" in self.mma else 2

    @property
    def adds_tiles(self) -> bool:
        """Whether sums of a tile of gemm_k are kept apart from those of the tiles before."""
        return self.by_wave_groups and "x32_F8" in self.mma

    @property
    def thread_sums(self) -> int:
        """Registers that a thread has for sums."""
        m, n, _ = self.workgroup
        return m * n // self.threads * (2 if self.adds_tiles else 1)

    @property
    def threads(self) -> int:
        """Of a workgroup."""
        return math.prod(self.warp_groups) * (128 if self.by_wave_groups else 32)


@dataclass(frozen=True, kw_only=True)
class WindowTiling:
    """Numbers of a schedule of wave groups for `fwd` and `bwd_data` (`passes/wgmma_windows.py`).

    A workgroup has `rows` x `columns` units of result pixels (`problem/slides.py`) of each of
    `images`, and `merged_groups` adjacent groups. Units are cut into patches of 64, which have
    `patch_rows` rows each. `wave_groups` share the patches evenly. So many `workgroups` share the
    tiles of merged groups. `mma` is the instruction, named as IREE names others.
    """

    images: int
    rows: int
    columns: int
    patch_rows: int
    wave_groups: int
    merged_groups: int
    workgroups: int
    mma: str


@dataclass(frozen=True, kw_only=True)
class GradientTiling:
    """Numbers of a schedule of waves for weight gradients (`passes/mma_sync_windows.py`).

    A tile has `pixels` output pixels along each axis, of each of `images`. A workgroup has
    `merged_groups` groups, each of which has `joined_groups` adjacent groups of the problem, so
    that channels come in whole pieces. A wave has `wave_pieces` pieces of the output gradient. LDS
    holds `stages` tiles. `mma` is the instruction, named as IREE names others.
    """

    images: int
    pixels: tuple[int, ...]
    joined_groups: int
    merged_groups: int
    wave_pieces: int
    stages: int
    mma: str
