# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small MLIR builders the payloads and the passes share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from conv_compiler.problem.dtypes import DType

Map = Sequence[ir.AffineExpr]


def element_type(dtype: DType) -> ir.Type:
    """The MLIR type of a row of DTYPES."""
    return ir.Type.parse(dtype.mlir)


def shape_of(value: ir.Value) -> list[int]:
    """Static shape of a ranked tensor."""
    return list(ir.RankedTensorType(value.type).shape)


def element_of(value: ir.Value) -> ir.Type:
    """Element type of a ranked tensor."""
    return ir.RankedTensorType(value.type).element_type


def zero(type: ir.Type) -> ir.Value:
    """The constant 0 of a scalar type."""
    attribute = (
        ir.IntegerAttr.get(type, 0)
        if isinstance(type, ir.IntegerType)
        else ir.FloatAttr.get(type, 0.0)
    )
    return arith.ConstantOp(type, attribute).result


def filled(shape: Sequence[int], type: ir.Type) -> ir.Value:
    """A tensor of zeros."""
    empty = tensor.EmptyOp(shape, type).result
    return linalg.fill(zero(type), outs=[empty])


def generic(
    inputs: Sequence[ir.Value],
    output: ir.Value,
    maps: Sequence[Map],
    dims: int,
    reductions: int,
    body: Callable[..., ir.Value],
    attributes: dict[str, ir.Attribute] | None = None,
) -> ir.Value:
    """One linalg.generic with a single result; the last `reductions` loops are reductions.

    `maps` are the index expressions of the inputs, then of the output; `body` receives their
    scalars in the same order and returns the value to yield.
    """
    kinds = ["parallel"] * (dims - reductions) + ["reduction"] * reductions
    iterators = ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{k}>") for k in kinds])
    affine = ir.ArrayAttr.get(
        [ir.AffineMapAttr.get(ir.AffineMap.get(dims, 0, list(results))) for results in maps]
    )
    op = linalg.GenericOp([output.type], inputs, [output], affine, iterators)
    scalars = [ir.RankedTensorType(v.type).element_type for v in (*inputs, output)]
    block = op.regions[0].blocks.append(*scalars)
    with ir.InsertionPoint(block):
        linalg.YieldOp([body(*block.arguments)])
    for name, value in (attributes or {}).items():
        op.operation.attributes[name] = value
    result: ir.Value = op.results[0]
    return result


def read_axes(op: ir.Operation, number: int) -> list[int]:
    """The loops of a linalg.generic that index the axes of an operand, each by a loop alone."""
    maps = ir.ArrayAttr(op.attributes["indexing_maps"])
    return [ir.AffineDimExpr(one).position for one in ir.AffineMapAttr(maps[number]).value.results]


def generic_like(
    op: ir.Operation,
    inputs: Sequence[ir.Value],
    output: ir.Value,
    maps: Sequence[Map],
    dims: int,
    attributes: dict[str, ir.Attribute],
) -> ir.Value:
    """A linalg.generic of parallel loops with the body of another one, on tensors and by maps of
    its own."""
    affine = [ir.AffineMapAttr.get(ir.AffineMap.get(dims, 0, list(results))) for results in maps]
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    made = ir.Operation.create(
        "linalg.generic",
        results=[output.type],
        operands=[*inputs, output],
        attributes={
            "indexing_maps": ir.ArrayAttr.get(affine),
            "iterator_types": ir.ArrayAttr.get([parallel] * dims),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1]),
            **attributes,
        },
        regions=1,
    )
    copy = op.clone()
    copy.regions[0].blocks[0].append_to(made.regions[0])
    copy.erase()
    result: ir.Value = made.results[0]
    return result


def pad(value: ir.Value, low: Sequence[int], high: Sequence[int]) -> ir.Value:
    """The tensor with zeros around it; the tensor itself where there is nothing to add."""
    if not any((*low, *high)):
        return value
    type = ir.RankedTensorType(value.type)
    shape = [lo + size + hi for lo, size, hi in zip(low, type.shape, high, strict=True)]
    fill = zero(type.element_type)
    op = tensor.PadOp(
        ir.RankedTensorType.get(shape, type.element_type),
        value,
        [],
        [],
        ir.DenseI64ArrayAttr.get(list(low)),
        ir.DenseI64ArrayAttr.get(list(high)),
    )
    block = op.regions[0].blocks.append(*[ir.IndexType.get()] * len(shape))
    with ir.InsertionPoint(block):
        tensor.YieldOp(fill)
    result: ir.Value = op.result
    return result


def reshape(value: ir.Value, shape: Sequence[int], groups: Sequence[Sequence[int]]) -> ir.Value:
    """Expand or collapse by reassociation `groups`; the value itself where nothing changes."""
    type = ir.RankedTensorType(value.type)
    if list(type.shape) == list(shape):
        return value
    target = ir.RankedTensorType.get(list(shape), type.element_type)
    reassociation = ir.ArrayAttr.get(
        [
            ir.ArrayAttr.get([ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i) for i in g])
            for g in groups
        ]
    )
    if len(shape) < len(type.shape):
        return tensor.CollapseShapeOp(target, value, reassociation).result
    sizes = ir.DenseI64ArrayAttr.get(list(shape))
    return tensor.ExpandShapeOp(target, value, reassociation, [], sizes).result


def split_axis(value: ir.Value, axis: int, sizes: Sequence[int]) -> ir.Value:
    """The view in which one axis becomes several, outermost first."""
    shape = shape_of(value)
    if math.prod(sizes) != shape[axis]:
        raise ValueError(f"axis of {shape[axis]}: not the product of {sizes}")
    if len(sizes) == 1:
        return value
    extra = len(sizes) - 1
    groups = [[i] for i in range(axis)]
    groups.append(list(range(axis, axis + len(sizes))))
    groups += [[i + extra] for i in range(axis + 1, len(shape))]
    return reshape(value, [*shape[:axis], *sizes, *shape[axis + 1 :]], groups)


def merge_axes(value: ir.Value, first: int, count: int) -> ir.Value:
    """The view in which `count` neighbouring axes become one."""
    if count == 1:
        return value
    shape = shape_of(value)
    merged = math.prod(shape[first : first + count])
    groups = [[i] for i in range(first)]
    groups.append(list(range(first, first + count)))
    groups += [[i] for i in range(first + count, len(shape))]
    return reshape(value, [*shape[:first], merged, *shape[first + count :]], groups)


def convert(value: ir.Value, to: ir.Type) -> ir.Value:
    """A scalar in another type: exact when it grows; rounded to nearest even, or saturated for
    integers, when it shrinks."""
    source = value.type
    if source == to:
        return value
    if isinstance(source, ir.IntegerType):
        wide, narrow = ir.IntegerType(source).width, ir.IntegerType(to).width
        if wide < narrow:
            return arith.ExtSIOp(to, value).result
        top = 2 ** (narrow - 1)
        upper = arith.ConstantOp(source, ir.IntegerAttr.get(source, top - 1)).result
        lower = arith.ConstantOp(source, ir.IntegerAttr.get(source, -top)).result
        clamped = arith.MaxSIOp(arith.MinSIOp(value, upper).result, lower).result
        return arith.TruncIOp(to, clamped).result
    grows = _float_bits(source) < _float_bits(to)
    return (arith.ExtFOp if grows else arith.TruncFOp)(to, value).result


def _float_bits(type: ir.Type) -> int:
    return int(ir.FloatType(type).width)


def bits_of(type: ir.Type) -> int:
    """Width of a scalar type."""
    return ir.IntegerType(type).width if isinstance(type, ir.IntegerType) else _float_bits(type)


def multiply_add(a: ir.Value, b: ir.Value, accumulator: ir.Value) -> ir.Value:
    """accumulator + a * b, with a and b widened to the accumulator's type first."""
    a, b = convert(a, accumulator.type), convert(b, accumulator.type)
    if isinstance(accumulator.type, ir.IntegerType):
        return arith.AddIOp(accumulator, arith.MulIOp(a, b).result).result
    return arith.AddFOp(accumulator, arith.MulFOp(a, b).result).result


def add(a: ir.Value, b: ir.Value) -> ir.Value:
    """a + b of one scalar type."""
    is_integer = isinstance(a.type, ir.IntegerType)
    return (arith.AddIOp if is_integer else arith.AddFOp)(a, b).result


def convert_tensor(value: ir.Value, to: ir.Type) -> ir.Value:
    """The tensor in another element type, as an elementwise generic of its own."""
    if ir.RankedTensorType(value.type).element_type == to:
        return value
    return elementwise([value], to, lambda x: convert(x, to), "epilogue")


def elementwise(
    inputs: Sequence[ir.Value],
    to: ir.Type,
    body: Callable[..., ir.Value],
    role: str = "",
    axes: Mapping[int, Sequence[int]] = MappingProxyType({}),
) -> ir.Value:
    """A tensor of `body` of the inputs' elements, all of one shape but those in `axes`, which have
    some axes of the first one's; the op may have a role."""
    shape = shape_of(inputs[0])
    every = [axes.get(i, range(len(shape))) for i in range(len(inputs))]
    return mapped(inputs, every, shape, to, body, role)


def mapped(
    inputs: Sequence[ir.Value],
    axes: Sequence[Sequence[int]],
    shape: Sequence[int],
    to: ir.Type,
    body: Callable[..., ir.Value],
    role: str = "",
) -> ir.Value:
    """A tensor of a shape, of `body` of the inputs' elements; each input has the axes of the result
    that stand in `axes`. The op may have a role."""
    dims = [ir.AffineDimExpr.get(i) for i in range(len(shape))]
    return generic(
        inputs,
        tensor.EmptyOp(shape, to).result,
        [*([dims[a] for a in own] for own in axes), dims],
        len(shape),
        0,
        lambda *scalars: body(*scalars[:-1]),
        {"conv_compiler.role": ir.StringAttr.get(role)} if role else {},
    )


def string_array(names: Sequence[str]) -> Any:
    """An array attribute of strings."""
    return ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names])


def transpose(value: ir.Value, order: Sequence[int]) -> ir.Value:
    """The tensor with axis `order[i]` as its axis i; the tensor itself for the order it has."""
    if list(order) == list(range(len(order))):
        return value
    shape = shape_of(value)
    element = ir.RankedTensorType(value.type).element_type
    empty = tensor.EmptyOp([shape[i] for i in order], element).result
    dims = [ir.AffineDimExpr.get(i) for i in range(len(order))]
    source = [dims[list(order).index(axis)] for axis in range(len(order))]
    return generic([value], empty, [source, dims], len(order), 0, lambda x, _: x)


def leading(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The corner of `shape` at index 0; the tensor itself where that is all of it."""
    if shape_of(value) == list(shape):
        return value
    element = ir.RankedTensorType(value.type).element_type
    sizes, zeros, ones = (
        ir.DenseI64ArrayAttr.get(list(v)) for v in (shape, [0] * len(shape), [1] * len(shape))
    )
    type = ir.RankedTensorType.get(list(shape), element)
    return tensor.ExtractSliceOp(type, value, [], [], [], zeros, sizes, ones).result
