# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dispatch regions, which IREE makes one kernel each, and operations that get one of their own."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import tensor

from conv_compiler.ir import ops

REGION = "flow.dispatch.region"


def dispatch_region(type: ir.Type) -> ir.Operation:
    """An empty `flow.dispatch.region` with one result: IREE makes one kernel of what is put in it.

    Fill the block of its first region and end it with `dispatch_return`.
    """
    region = _region(type)
    region.regions[0].blocks.append()
    return region


def retyped(region: ir.Operation, type: ir.Type) -> ir.Operation:
    """A dispatch region with a result of another type and the blocks of `region`, which keeps none.

    What the block returns is to be replaced by a value of that type.
    """
    made = _region(type)
    for kept, taken in zip(made.regions, region.regions, strict=True):
        for block in list(taken.blocks):
            block.append_to(kept)
    return made


def _region(type: ir.Type) -> ir.Operation:
    return ir.Operation.create(
        REGION,
        results=[type],
        regions=2,  # the second would count workgroups; tiling does
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
    )


def count_workgroups(region: ir.Operation) -> None:
    """Let a dispatch region of loops over workgroups have as many as these loops have iterations.

    Left to IREE it would be an error: it takes any loop for one of its own.
    """
    with ir.InsertionPoint(region.regions[1].blocks.append()):
        sizes = ir.Operation.create(
            "iree_tensor_ext.dispatch.workgroup_count_from_slice",
            results=[ir.IndexType.get()] * 3,
        )
        ir.Operation.create("flow.return", operands=list(sizes.results))


def dispatch_return(value: ir.Value) -> ir.Operation:
    """The end of a dispatch region."""
    return ir.Operation.create("flow.return", operands=[value])


def converted(value: ir.Value, to: ir.Type) -> ir.Value:
    """The tensor of floats rounded to another type of as many bits, to the nearest even.

    A kernel of its own does it. Rounded where it is read, a number would be rounded at every tap;
    and on the CPU IREE 3.13 leaves out a rounding of what is widened again.
    """
    region = dispatch_region(ir.RankedTensorType.get(ops.shape_of(value), to))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        wide = ir.F32Type.get()
        dispatch_return(
            ops.elementwise([value], to, lambda x: ops.convert(ops.convert(x, wide), to))
        )
    result: ir.Value = region.results[0]
    return result


def without_first(value: ir.Value, skipped: Sequence[int]) -> ir.Value:
    """The tensor without so many leading elements of each axis; itself where there are none.

    By a kernel of its own: IREE 3.13 gathers from a slice as if it were contiguous.
    """
    if not any(skipped):
        return value
    shape = [size - gone for size, gone in zip(ops.shape_of(value), skipped, strict=True)]
    type = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
    dims = [ir.AffineDimExpr.get(i) for i in range(len(shape))]
    offsets, sizes, ones = (
        ir.DenseI64ArrayAttr.get(list(v)) for v in (skipped, shape, [1] * len(shape))
    )
    region = dispatch_region(type)
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        part = tensor.ExtractSliceOp(type, value, [], [], [], offsets, sizes, ones).result
        empty = tensor.EmptyOp(shape, type.element_type).result
        dispatch_return(ops.generic([part], empty, [dims, dims], len(shape), 0, lambda x, _: x))
    result: ir.Value = region.results[0]
    return result
