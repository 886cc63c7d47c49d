"""Read a tagged convolution contraction back from its IR: sizes, axes, strides, dilations, pads."""

from __future__ import annotations

import math
from dataclasses import dataclass

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.schedule import ops_with_role


@dataclass(frozen=True, kw_only=True)
class Contraction:
    """The weight-gradient contraction of a payload.

    Axes are (group, (batch, space...), channel) of the image before padding and of the output
    gradient; `weight_loops` is (g, k, taps..., c) and `weight_order` the same names in the order of
    the result's axes. `taps`, `pixels` and the pads run from the outermost spatial dimension;
    `pixels` starts with the batch. Pads are per image axis.
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
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pad_low: tuple[int, ...]
    pad_high: tuple[int, ...]
    accumulator: ir.Type

    @property
    def ndim(self) -> int:
        """Number of spatial dimensions."""
        return len(self.taps)

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


def coefficients(expr: ir.AffineExpr) -> dict[int, int]:
    """Loop position -> factor of a linear expression without a constant term."""
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position: 1}
    if isinstance(expr, ir.AffineAddExpr):
        return {**coefficients(expr.lhs), **coefficients(expr.rhs)}
    if isinstance(expr, ir.AffineMulExpr):
        (position, factor), constant = coefficients(expr.lhs).popitem(), expr.rhs
        return {position: factor * ir.AffineConstantExpr(constant).value}
    raise UnsupportedStrategy(f"index {expr}: not a sum of scaled loops; a convolution's are")


def find_contraction(module: ir.Module) -> Contraction:
    """The one op tagged `contraction` that still has its named convolution loops."""
    found = [op for op in ops_with_role(module, "contraction") if "conv_compiler.loops" in op.attributes]
    if len(found) != 1:
        raise UnsupportedStrategy(f"module: {len(found)} convolution contractions; one is needed")
    op = found[0]
    names = [ir.StringAttr(a).value for a in ir.ArrayAttr(op.attributes["conv_compiler.loops"])]
    maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    reads = [[coefficients(e) for e in m.results] for m in maps]
    extent = _extents(op, reads)
    taps = tuple(name for name in names if name in "zyx")
    pixels = tuple(name for name in names if name in ("do", "ho", "wo"))
    loop = {name: i for i, name in enumerate(names)}

    def axis(operand: int, name: str) -> int:
        return next(i for i, terms in enumerate(reads[operand]) if loop[name] in terms)

    def axes(operand: int, channel: str) -> tuple[int, tuple[int, ...], int]:
        space = tuple(axis(operand, name) for name in ("n", *pixels))
        return axis(operand, "g"), space, axis(operand, channel)

    image, low, high = _unpadded(op.operands[0])
    space = axes(0, "c")[1][1:]
    return Contraction(
        op=op,
        image=image,
        gradient=op.operands[1],
        image_axes=axes(0, "c"),
        gradient_axes=axes(1, "k"),
        weight_loops=("g", "k", *taps, "c"),
        weight_order=tuple(names[next(iter(terms))] for terms in reads[2]),
        groups=extent[loop["g"]],
        gemm_m=extent[loop["k"]],
        channels=extent[loop["c"]],
        taps=tuple(extent[loop[name]] for name in taps),
        pixels=tuple(extent[loop[name]] for name in ("n", *pixels)),
        strides=tuple(reads[0][a][loop[p]] for a, p in zip(space, pixels, strict=True)),
        dilations=tuple(reads[0][a][loop[t]] for a, t in zip(space, taps, strict=True)),
        pad_low=low,
        pad_high=high,
        accumulator=ir.RankedTensorType(op.results[0].type).element_type,
    )


def _extents(op: ir.Operation, reads: list[list[dict[int, int]]]) -> dict[int, int]:
    """Loop extents from the operands whose axes are single loops: gradient and weight."""
    extent: dict[int, int] = {}
    for operand in (1, 2):
        shape = ir.RankedTensorType(op.operands[operand].type).shape
        extent |= {next(iter(t)): size for t, size in zip(reads[operand], shape, strict=True)}
    # c may be in the image alone when it is not an axis of the weight; it always is in ours.
    return extent


def _unpadded(value: ir.Value) -> tuple[ir.Value, tuple[int, ...], tuple[int, ...]]:
    """The tensor a zero tensor.pad pads, with the pads of each axis; no pads if there is none."""
    rank = len(ir.RankedTensorType(value.type).shape)
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "tensor.pad":
        return value, (0,) * rank, (0,) * rank
    low = ir.DenseI64ArrayAttr(owner.attributes["static_low"])
    high = ir.DenseI64ArrayAttr(owner.attributes["static_high"])
    return owner.operands[0], tuple(low), tuple(high)
