# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of a weight gradient whose windows are kept in LDS."""

from __future__ import annotations

import math
from dataclasses import dataclass

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction
from conv_compiler.passes.wgmma_parts.sizes import BYTES
from conv_compiler.problem.gradient_tiles import GradientTile, Slid


@dataclass(frozen=True, kw_only=True)
class GradientSizes:
    """Tile of a kernel of the pass `mma-sync-windows`.

    A tile has `tile_pixels` output pixels along each axis, of each of `tile_images`. A workgroup
    has `merged_groups` groups, of `joined_groups` adjacent ones of the contraction each. A wave has
    `wave_pieces` pieces of the output gradient. Tiles are in so many `parts`, of which LDS holds
    one tile or two (`stages`).
    """

    tile_images: int
    tile_pixels: tuple[int, ...]
    joined_groups: int
    merged_groups: int
    wave_pieces: int
    parts: int
    stages: int

    @property
    def groups(self) -> int:
        """Groups of the contraction that a workgroup has."""
        return self.joined_groups * self.merged_groups

    def tile_of(self, conv: Contraction) -> GradientTile:
        """The tile of a workgroup; UnsupportedStrategy where no kernel has it."""
        slides = zip(conv.taps, conv.strides, conv.dilations, strict=True)
        tile = GradientTile(
            images=self.tile_images,
            pixels=self.tile_pixels,
            slides=tuple(Slid(*one) for one in slides),
            sources=conv.channels * self.joined_groups,
            results=conv.gemm_m * self.joined_groups,
            merged_groups=self.merged_groups,
            wave_pieces=self.wave_pieces,
        )
        batch, *outs = conv.pixels
        element = ops.element_of(conv.gradient)
        rules = {
            "it has a size along each axis": len(self.tile_pixels) == conv.ndim,
            "merged groups divide the groups": conv.groups % self.groups == 0,
            "its instruction multiplies types of 16 bits": ops.bits_of(element) == 8 * BYTES,
            "LDS holds one tile or two": self.stages in (1, 2),
        }
        rule = next((rule for rule, holds in rules.items() if not holds), tile.broken_rule)
        if not rule and not 1 <= self.parts <= math.prod(tile.tiles(batch, outs)):
            rule = "each part has a tile"
        if rule:
            size = "x".join(map(str, (self.tile_images, *self.tile_pixels)))
            raise UnsupportedStrategy(f"tile {size}: {rule}; use another")
        return tile
