# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a forward pass or data gradient as a GEMM of wave groups (sm_90a), stored in place.

Before: the contraction of the equivalent weight gradient, and what brings its operands and its
result into their places: pads, a weight arranged by phases, phases put in place, an elementwise op.
After, a kernel written down to its addresses:

    workgroup (pixel tile, channel tile, phase, part and group)
      copy the first tiles to stages 0, 1 ... of LDS               cp.async, no registers
      for tile of the part: channels of a tap that the phase has
        wait for this tile's copies; barrier
        start sums += source(tile) * weight(tile)                  wgmma, operands from LDS
        wait for the products of the tile before
        copy a later tile to the stage that is free                zeros where there is no pixel
      result pixels of the phase = op(sums)                        by way of LDS, in whole lines

Taps of a phase are known where the kernel is written (`problem/slides.py`), so no product is by a
zero between strided pixels. The weight is read as the program has it. With several parts a second
kernel adds them in a fixed order, and applies the op.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import erase_if_dead, find_nests
from conv_compiler.passes.depthwise_parts.operands import find_operand, find_result
from conv_compiler.passes.wgmma_parts.padded_channels import with_whole_pieces
from conv_compiler.passes.wgmma_parts.pixel_kernel import PixelKernel
from conv_compiler.passes.wgmma_parts.pixel_sizes import PixelSizes
from conv_compiler.passes.wgmma_parts.reduction import Reduction
from conv_compiler.passes.wgmma_parts.stores import only_rounds


@dataclass(frozen=True, kw_only=True)
class WgmmaPixels(PixelSizes):
    """Options: those of `PixelSizes`, and how a workgroup of the second kernel shares the parts."""

    name: ClassVar[str] = "wgmma-pixels"
    sum_threads: int = 256
    sum_slices: int = 1

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if there is none or more than one, or if
        ops are applied to its operands."""
        self.check()
        with module.context, ir.Location.unknown():
            nests = find_nests(module)
            if len(nests) != 1:
                raise UnsupportedStrategy(
                    f"module: {len(nests)} contractions; give it as it was built"
                )
            op = nests[0].op
            result = find_result(op.results[0])
            operands = [find_operand(operand) for operand in list(op.operands)[:2]]
            if any(_changes(step) for one in operands for step in one.steps):
                raise UnsupportedStrategy("wgmma-pixels: operands have ops; use another strategy")
            epilogue = result.epilogue
            if epilogue is not None and only_rounds(epilogue):
                epilogue = None
            accumulator = ops.element_of(op.results[0])
            with ir.InsertionPoint(result.value.owner):
                extra = result.extra() if epilogue is not None else []
                if any(by_channel for _, by_channel in extra):
                    raise UnsupportedStrategy("wgmma-pixels: a bias is added; use another strategy")
                whole = [
                    with_whole_pieces(module, one.tensor, channels, f"wgmma_{name}")
                    for one, name, channels in zip(
                        operands,
                        ("source", "weight"),
                        (self.sources, self.weight_channels),
                        strict=True,
                    )
                ]
                made = self._result(
                    module,
                    whole,
                    ir.RankedTensorType(result.value.type),
                    accumulator,
                    epilogue,
                    [tensor for tensor, _ in extra],
                )
            last = result.value.owner
            result.value.replace_all_uses_with(made)
            erase_if_dead(last)

    def _result(
        self,
        module: ir.Module,
        operands: list[ir.Value],
        type: ir.RankedTensorType,
        accumulator: ir.Type,
        epilogue: ir.Operation | None,
        extra: list[ir.Value],
    ) -> ir.Value:
        kernel = PixelKernel(self)
        if self.split_k == 1:
            return kernel.result(module, operands, type, epilogue, extra)
        partials = ir.RankedTensorType.get([self.split_k, *type.shape], accumulator)
        parts = kernel.result(module, operands, partials)
        reduction = Reduction(threads=self.sum_threads, slices=self.sum_slices)
        return reduction.result(module, parts, type, epilogue, extra)


def _changes(step: ir.Operation) -> bool:
    """Whether an op on an operand's elements does more than to copy them."""
    return [op.operation.name for op in step.regions[0].blocks[0]] != ["linalg.yield"]
