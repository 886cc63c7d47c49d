# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of a forward pass or data gradient whose windows are kept in LDS."""

from __future__ import annotations

import math
from dataclasses import dataclass

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.problem.convolution_sizes import ConvolutionSizes
from conv_compiler.problem.weight_steps import WeightSteps
from conv_compiler.problem.window_tiles import WindowTile


@dataclass(frozen=True, kw_only=True)
class WindowSizes(ConvolutionSizes):
    """Tile of a kernel of the pass `wgmma-windows`, and the convolution that it computes.

    Rows are the units of a `WindowTile`. Columns are the result channels of `merged_groups`
    adjacent groups, for each phase. Nothing of one group is multiplied by anything of another.
    `workgroups` share the tiles of merged groups: with
    fewer workgroups than tiles, each copies the window of its next tile while it has another.
    """

    tile_images: int
    tile_rows: int
    tile_columns: int
    patch_rows: int
    wave_groups: int
    merged_groups: int
    workgroups: int

    def check(self) -> None:
        """UnsupportedStrategy where no kernel has such a tile."""
        rule = self.tile.broken_rule
        if self.groups % self.merged_groups:
            rule = "merged groups divide the groups"
        if not 1 <= self.workgroups <= self.tiles:
            rule = "each workgroup has a tile"
        if rule:
            raise UnsupportedStrategy(
                f"tile {self.tile_images}x{self.tile_rows}x{self.tile_columns}: {rule}; use another"
            )

    @property
    def tile(self) -> WindowTile:
        """The tile of a workgroup."""
        return WindowTile.of(
            self.dimensions,
            self.direction,
            rows=self.tile_rows,
            columns=self.tile_columns,
            images=self.tile_images,
            patch_rows=self.patch_rows,
            wave_groups=self.wave_groups,
            sources=self.sources,
            results=self.results,
            merged_groups=self.merged_groups,
        )

    @property
    def tiles(self) -> int:
        """Tiles of all images."""
        return math.prod(self.tile.tiles(self.batch))

    @property
    def threads(self) -> int:
        """Of a workgroup."""
        return self.tile.threads

    @property
    def stages(self) -> int:
        """Windows in LDS."""
        return 2 if self.workgroups < self.tiles else 1

    @property
    def weights(self) -> WeightSteps:
        """The steps of the weight."""
        return WeightSteps(*self.weight_steps)
