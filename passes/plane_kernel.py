# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a depthwise convolution, or its data gradient, whose channels lie in front of the pixels,
as a CPU kernel with the pixels of a row in the lanes.

Before: the contraction of the equivalent weight gradient, and what brings its operands and its
result into their places. After, one dispatch region:

    forall shares of planes, shares of rows                  workgroups
      for planes: an image's pixels of a group
        copy the source rows of the share to the stack       widened, with zeros for pads
        for tiles of rows and vectors of pixels              sums in registers
          for source rows, taps along a row
            for rows of the tile that meet the source row
              sums[row][vectors] += weight * copy[vectors]   weights in all lanes
          result = epilogue(sums)                            whole vectors

The last vector of a row begins earlier where vectors are no whole row. It computes some pixels
again, to the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.passes.direct_parts.planes import Planes
from conv_compiler.passes.direct_parts.regions import rewrite
from conv_compiler.problem.plane_sizes import PlaneSizes


@dataclass(frozen=True, kw_only=True)
class PlaneKernel(PlaneSizes):
    """The pass; its options are those of `PlaneSizes`."""

    name: ClassVar[str] = "plane-kernel"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if there is none or more than one, or if no
        kernel has these sizes."""
        self.check()
        rewrite(
            module,
            lambda source, weight, result, element: Planes(self, element).value(
                source, weight, result
            ),
            self.rounding,
        )
