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

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import erase_if_dead, find_nests
from conv_compiler.passes.depthwise_parts.operands import find_operand, find_result
from conv_compiler.passes.direct_parts.plane_options import PlaneOptions
from conv_compiler.passes.direct_parts.planes import Planes


@dataclass(frozen=True, kw_only=True)
class PlaneKernel(PlaneOptions):
    """The pass; its options are those of `PlaneOptions`."""

    name: ClassVar[str] = "plane-kernel"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if there is none or more than one, or if no
        kernel has these sizes."""
        self.check()
        with module.context, ir.Location.unknown():
            nests = find_nests(module)
            if len(nests) != 1:
                raise UnsupportedStrategy(
                    f"module: {len(nests)} contractions; give it as it was built"
                )
            op = nests[0].op
            result = find_result(op.results[0])
            source, weight = find_operand(op.operands[0]), find_operand(op.operands[1])
            with ir.InsertionPoint(result.value.owner):
                kernel = Planes(self, ops.element_of(op.results[0]))
                made = kernel.value(source, weight, result)
            last = result.value.owner
            result.value.replace_all_uses_with(made)
            erase_if_dead(last)
