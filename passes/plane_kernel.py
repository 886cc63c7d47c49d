# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a convolution of few channels a group, or its data gradient, whose channels lie in front
of the pixels, as a CPU kernel with the pixels of a row in the lanes.

Before: the contraction of the equivalent weight gradient, and what brings its operands and its
result into their places. After, two dispatch regions; a depthwise problem has the second alone:

    forall groups, blocks of result channels               workgroups
      packed = the weights of a block, tap after tap
    forall shares of planes, of result channels, of rows   workgroups
      zeros on the stack, where a copy has pads
      for planes: an image's pixels of a group
        copy the source rows of the share to the stack     widened or riffled, phases apart
        for blocks of result channels
          for tiles of rows and vectors of pixels          sums in registers
            for source channels or pairs of them, taps
              sums[block][rows][vectors] += weight * copy[rows][vectors]
            result = epilogue(sums)                        whole vectors

A depthwise plane holds its weights in registers. The columns of a stride's phase are adjacent in
the copy, so taps read adjacent lanes. With an `instruction` of pairs two adjacent source channels
are multiplied at once; they are riffled when they are copied. The last vector of a row begins
earlier where vectors are no whole row. It computes some pixels again, to the same bits.
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
