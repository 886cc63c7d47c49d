# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a 1x1 convolution, or its data gradient, whose channels lie in front of the pixels, as a
CPU kernel with pixels in the lanes.

Before: the contraction of the equivalent weight gradient, and what brings its operands and its
result into their places. After, two dispatch regions:

    forall groups, blocks of result channels                     workgroups
      packed = the weights of a block, source channel after source channel
    forall images, groups, shares of channels, shares of pixels  workgroups
      for tiles of pixels, a few vectors each
        copy the source channels of the tile to the stack        read once for all blocks
        for blocks of result channels                            sums in registers
          for source channels
            sums[block][vectors] += packed[block] * source[vectors]
          result = epilogue(sums)                                whole vectors

The last vector of a share begins earlier where vectors are no whole share: it computes some pixels
again, to the same bits. With an `instruction` of pairs two adjacent source channels are multiplied
at once; they are riffled when they are copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.passes.direct_parts.pointwise import PointwiseTiles
from conv_compiler.passes.direct_parts.pointwise_options import PointwiseOptions
from conv_compiler.passes.direct_parts.regions import rewrite


@dataclass(frozen=True, kw_only=True)
class PointwiseKernel(PointwiseOptions):
    """The pass; its options are those of `PointwiseOptions`."""

    name: ClassVar[str] = "pointwise-kernel"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if there is none or more than one, or if the
        numbers cut no whole shares."""
        self.check()
        rewrite(
            module,
            lambda source, weight, result, element: PointwiseTiles(self, element).value(
                source, weight, result
            ),
            self.rounding,
        )
