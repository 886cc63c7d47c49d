# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a forward pass or data gradient of small groups as products of wave groups (sm_90a) whose
source pixels are copied to LDS once.

Before: the contraction of the equivalent weight gradient, and what brings its operands and its
result into their places. After, a kernel written down to its addresses:

    workgroup (tile of images and units, merged groups)
      copy the weights of all taps to LDS                          cp.async
      copy the window of the first tile, each source pixel once    zeros in the pads
      for tile of the workgroup
        wait for its window; barrier
        copy the window of the next tile
        for two pieces of 8 channels, of any two taps, and group
          start sums += window * weights                           wgmma, operands from LDS
        result pixels of all phases = op(sums)                     by way of LDS, in whole lines

The window of a tap is that of another one, some lines further (`problem/window_tiles.py`). So an
instruction of each tap reads the same LDS from another address on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.passes.wgmma_parts.rewriting import rewrite
from conv_compiler.passes.wgmma_parts.window_kernel import WindowKernel
from conv_compiler.passes.wgmma_parts.window_sizes import WindowSizes


@dataclass(frozen=True, kw_only=True)
class WgmmaWindows(WindowSizes):
    """Options: those of `WindowSizes`."""

    name: ClassVar[str] = "wgmma-windows"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if there is none or more than one, or if ops
        are applied to its operands."""
        self.check()
        channels = self.groups * self.results
        rewrite(module, self.name, channels, lambda found: WindowKernel(self).result(module, found))
