# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Read a tagged convolution contraction back from its IR: sizes, axes, strides, dilations, pads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from iree.compiler import ir

from conv_compiler.build.bwd_weight import FILTER_LOOPS, OUTPUT_LOOPS
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import find_nests


@dataclass(frozen=True, kw_only=True)
class Contraction:
    """The weight-gradient contraction of a payload.

    Axes are (group, (batch, space...), channel) of the image before padding and of the output
    gradient; `weight_loops` is (g, k, taps..., c) and `weight_order` the same names in the order of
    the result's axes. `taps`, `pixels` and the pads run from the outermost spatial dimension;
    `pixels` starts with the batch, and `pixel_loops` names the same. Pads are per image axis.
    """

    op: ir.Operation
    image: ir.Value
    gradient: ir.Value
    image_axes: tuple[int, tuple[int, ...], int]
    gradient_axes: tuple[int, tuple[int, ...], int]
    weight_loops: tuple[str, ...]
    weight_order: tuple[str, ...]
    groups: int
    gemm_m: int
    channels: int
    taps: tuple[int, ...]
    pixels: tuple[int, ...]
    pixel_loops: tuple[str, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pad_low: tuple[int, ...]
    pad_high: tuple[int, ...]
    accumulator: ir.Type

    @property
    def weight_sizes(self) -> Mapping[str, int]:
        """Extents of `weight_loops`, in their order."""
        sizes = (self.groups, self.gemm_m, *self.taps, self.channels)
        return dict(zip(self.weight_loops, sizes, strict=True))

    @property
    def weight_steps(self) -> Mapping[str, int]:
        """Elements between neighbours of the weight, by loop."""
        extents = [self.weight_sizes[name] for name in self.weight_order]
        return {name: math.prod(extents[at + 1 :]) for at, name in enumerate(self.weight_order)}

    @property
    def ndim(self) -> int:
        """Number of spatial dimensions."""
        return len(self.taps)

    @property
    def image_pixels(self) -> tuple[int, ...]:
        """Extents of the batch and of the image's spatial axes, without pads."""
        shape = ops.shape_of(self.image)
        return tuple(shape[axis] for axis in self.image_axes[1])

    @property
    def gemm_n(self) -> int:
        """GEMM columns: taps times input channels."""
        return math.prod(self.taps) * self.channels

    @property
    def gemm_k(self) -> int:
        """GEMM depth: batch times output pixels."""
        return math.prod(self.pixels)

    @property
    def is_pointwise(self) -> bool:
        """Whether image and gradient pixels pair off one to one."""
        shape = ir.RankedTensorType(self.image.type).shape
        extents = tuple(shape[axis] for axis in self.image_axes[1])
        unit = (1,) * self.ndim
        pads = any((*self.pad_low, *self.pad_high))
        return (self.taps, self.strides, extents) == (unit, unit, self.pixels) and not pads


def find_contraction(module: ir.Module) -> Contraction:
    """The convolution the module's one contraction computes.

    Raises UnsupportedStrategy where there is none or more than one.
    """
    nests = find_nests(module)
    if len(nests) != 1:
        raise UnsupportedStrategy(f"module: {len(nests)} contractions; give it as it was built")
    nest = nests[0]
    taps = tuple(loop for loop in nest.loops if loop in FILTER_LOOPS)
    pixels = tuple(loop for loop in nest.loops if loop in OUTPUT_LOOPS)

    def axis(operand: int, loop: str) -> int:
        return next(i for i, terms in enumerate(nest.indices[operand]) if loop in terms)

    def axes(operand: int, channel: str) -> tuple[int, tuple[int, ...], int]:
        space = tuple(axis(operand, loop) for loop in ("n", *pixels))
        return axis(operand, "g"), space, axis(operand, channel)

    image, low, high = unpadded(nest.operands[0])
    windows = [nest.indices[0][a] for a in axes(0, "c")[1][1:]]
    return Contraction(
        op=nest.op,
        image=image,
        gradient=nest.operands[1],
        image_axes=axes(0, "c"),
        gradient_axes=axes(1, "k"),
        weight_loops=("g", "k", *taps, "c"),
        weight_order=tuple(loop for terms in nest.indices[2] for loop in terms),
        groups=nest.sizes["g"],
        gemm_m=nest.sizes["k"],
        channels=nest.sizes["c"],
        taps=tuple(nest.sizes[loop] for loop in taps),
        pixels=tuple(nest.sizes[loop] for loop in ("n", *pixels)),
        pixel_loops=("n", *pixels),
        strides=tuple(terms[p] for terms, p in zip(windows, pixels, strict=True)),
        dilations=tuple(terms[t] for terms, t in zip(windows, taps, strict=True)),
        pad_low=low,
        pad_high=high,
        accumulator=ir.RankedTensorType(nest.op.results[0].type).element_type,
    )


def unpadded(value: ir.Value) -> tuple[ir.Value, tuple[int, ...], tuple[int, ...]]:
    """The tensor a zero tensor.pad pads, with the pads of each axis; no pads if there is none."""
    rank = len(ir.RankedTensorType(value.type).shape)
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "tensor.pad":
        return value, (0,) * rank, (0,) * rank
    low = ir.DenseI64ArrayAttr(owner.attributes["static_low"])
    high = ir.DenseI64ArrayAttr(owner.attributes["static_high"])
    return owner.operands[0], tuple(low), tuple(high)
