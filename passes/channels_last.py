# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copy operands of a contraction into a layout in which their summed channels are adjacent.

Before:                                  After, for each operand that is named:
    sums = contraction(image, weight)        a kernel, role `image-copy`: for b, s, r
                                               copied[b, s, r] = image[b, r, s]
                                             sums = contraction(copied, ...)

r runs over the channels, s over all axes behind them (pixels or taps), b over those in front. The
contraction then reads along gemm_k, whole vectors of each pixel. It is the equivalent weight
gradient of `fwd` or `bwd_data`, whose summed batch these channels are (loop `n`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import Index, find_nests, replace_nest
from conv_compiler.passes.implicit_gemm_parts.contraction import unpadded
from conv_compiler.passes.implicit_gemm_parts.transposed_copy import CopyShape, channels_last


@dataclass(frozen=True, kw_only=True)
class ChannelsLast:
    """Options: the `CopyShape` of each operand that moves, of the image and of the gradient of the
    weight gradient: (s, r, lanes, threads, padded). Empty for one that
    stays. With more channels than there were the sums have products of zeros more."""

    name: ClassVar[str] = "channels-last"
    image: tuple[int, ...] = ()
    gradient: tuple[int, ...] = ()

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if there is none or more than one."""
        with module.context, ir.Location.unknown():
            nests = find_nests(module)
            if len(nests) != 1:
                raise UnsupportedStrategy(
                    f"module: {len(nests)} contractions; give it as it was built"
                )
            nest = nests[0]
            with ir.InsertionPoint(nest.op):
                pairs = [
                    _moved(value, index, CopyShape(*shape), f"{name}-copy")
                    if shape
                    else (value, index)
                    for name, shape, value, index in zip(
                        ("image", "gradient"),
                        (self.image, self.gradient),
                        nest.operands,
                        nest.indices[:2],
                        strict=True,
                    )
                ]
                (image, of_image), (gradient, of_gradient) = pairs
                sizes = {**nest.sizes, "n": ops.shape_of(gradient)[_channels(of_gradient)]}
                replace_nest(
                    nest,
                    loops=nest.loops,
                    sizes=sizes,
                    operands=(image, gradient),
                    indices=(of_image, of_gradient, nest.indices[2]),
                )


def _channels(index: Index) -> int:
    """The axis of the summed channels."""
    return next(axis for axis, loops in enumerate(index) if "n" in loops)


def _moved(padded: ir.Value, index: Index, shape: CopyShape, role: str) -> tuple[ir.Value, Index]:
    """An operand with the axis of the summed channels last, and what indexes it."""
    at = _channels(index)
    value, low, high = unpadded(padded)
    order = [axis for axis in range(len(index)) if axis != at] + [at]
    made = channels_last(value, at, shape, role)
    made = ops.pad(made, [low[axis] for axis in order], [high[axis] for axis in order])
    return made, tuple(index[axis] for axis in order)
