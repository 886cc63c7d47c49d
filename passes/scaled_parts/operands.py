# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operands of `scaled-gemm`: elements and scales as the caller gave them, blocks innermost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor, vector

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import DECODED, ROLE
from conv_compiler.ir.packed import element_of_group, index, packed
from conv_compiler.ir.views import reshaped
from conv_compiler.passes.depthwise_parts.arithmetic import inside, linear, number
from conv_compiler.passes.depthwise_parts.filters import load
from conv_compiler.passes.depthwise_parts.pixels import zeros
from conv_compiler.passes.scaled_parts.sizes import BLOCK, DEPTH
from conv_compiler.problem.dtypes import DType

_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.pad")
# The code of the scale 1, for elements that are 0.
_ONE = 127


def given(value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """(elements, scales) of which an operand of the contraction is made.

    Raises UnsupportedStrategy where a kernel other than the conversion stands in between.
    """
    while not isinstance(value.owner, ir.Block):
        op = value.owner
        if op.name in _VIEWS:
            value = op.operands[0]
            continue
        if op.name == dispatches.REGION:
            *_, end = op.regions[0].blocks[0].operations
            made = end.operands[0].owner
            if ROLE in made.attributes and ir.StringAttr(made.attributes[ROLE]).value == DECODED:
                inputs = list(made.operands)[:-1]
                read = [
                    one.operands[0]
                    for one in made.regions[0].blocks[0].operations
                    if one.operation.name == "tensor.extract"
                ]
                elements, scales = inputs if len(inputs) == 2 else (read[0], *inputs)
                return _viewed(elements), _viewed(scales)
        break
    raise UnsupportedStrategy(
        "scaled-gemm: an operand that is not elements and scales; take another strategy"
    )


def _viewed(value: ir.Value) -> ir.Value:
    """The tensor that a view is of."""
    while not isinstance(value.owner, ir.Block) and value.owner.name in _VIEWS[:2]:
        value = value.owner.operands[0]
    return value


@dataclass(frozen=True, kw_only=True)
class Strides:
    """Distances of adjacent elements along the axes of a tensor, by letter; of space a tuple."""

    of: Mapping[str, int]
    space: tuple[int, ...]

    @classmethod
    def dense(cls, letters: str, sizes: Mapping[str, int], space: Sequence[int]) -> Strides:
        """Of a dense tensor with these axes."""
        found, spatial, step = {}, [0] * len(space), 1
        for letter in reversed(letters):
            if letter == "*":
                for axis in reversed(range(len(space))):
                    spatial[axis] = step
                    step *= space[axis]
            else:
                found[letter] = step
                step *= sizes[letter]
        return cls(of=found, space=tuple(spatial))


def innermost(
    value: ir.Value, letters: str, sizes: Mapping[str, int], space: Sequence[int]
) -> ir.Value:
    """The tensor, as a vector, with N as its last axis: itself where it is, else of a kernel of its
    own."""
    flat = reshaped(value, [math.prod(ops.shape_of(value))])
    if letters.endswith("N"):
        return flat
    axes = [at for letter in letters for at in (range(len(space)) if letter == "*" else letter)]
    extents = [space[at] if isinstance(at, int) else sizes[at] for at in axes]
    order = [*(at for at, name in enumerate(axes) if name != "N"), axes.index("N")]
    whole = reshaped(flat, extents)
    moved = [extents[at] for at in order]
    region = dispatches.dispatch_region(ir.RankedTensorType.get(moved, ops.element_of(value)))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        dispatches.dispatch_return(ops.transpose(whole, order))
    return reshaped(region.results[0], [math.prod(moved)])


def packed_innermost(
    value: ir.Value, letters: str, sizes: Mapping[str, int], space: Sequence[int], row: DType
) -> ir.Value:
    """`innermost` of packed elements: packed along N, read one by one where they lie otherwise."""
    flat = reshaped(value, [math.prod(ops.shape_of(value))])
    if letters.endswith("N"):
        return flat
    elements, size = row.packed
    by = Strides.dense(letters, sizes, space)
    last = letters.replace("N", "")
    axes = [at for letter in last for at in (range(len(space)) if letter == "*" else letter)]
    extents = [space[at] if isinstance(at, int) else sizes[at] for at in axes]
    steps = [by.space[at] if isinstance(at, int) else by.of[at] for at in axes]
    groups = ops.split_axis(flat, 0, (ops.shape_of(flat)[0] // size, size))

    def code(place: list[ir.Value], which: ir.Value) -> ir.Value:
        first = arith.MulIOp(place[-1], index(elements)).result
        places = [*place[:-1], arith.AddIOp(first, which).result]
        at = index(0)
        for one, step in zip(places, [*steps, by.of["N"]], strict=True):
            at = arith.AddIOp(at, arith.MulIOp(one, index(step)).result).result
        group, own = (kind(at, index(elements)).result for kind in (arith.DivUIOp, arith.RemUIOp))
        return element_of_group(groups, [group], own, row)

    shape = [*extents, sizes["N"] // elements]
    byte = ops.element_of(value)
    region = dispatches.dispatch_region(ir.RankedTensorType.get([*shape, size], byte))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        dispatches.dispatch_return(packed(shape, row, code))
    return reshaped(region.results[0], [math.prod(shape) * size])


@dataclass(frozen=True, kw_only=True)
class Packed:
    """An operand that a lane reads: vectors of elements, vectors of scales, and their strides.

    Elements of 4 and 6 bits are bytes, and their strides count these.
    """

    row: DType
    elements: ir.Value
    scales: ir.Value
    by_element: Strides
    by_scale: Strides

    @classmethod
    def of(
        cls,
        value: ir.Value,
        letters: str,
        sizes: Mapping[str, int],
        space: Sequence[int],
        row: DType,
    ) -> Packed:
        """Of an operand of the contraction with these axes, made of elements of a type."""
        elements, scales = given(value)
        blocks = {**sizes, "N": sizes["N"] // BLOCK}
        held = {**sizes, "N": row.bytes_of(sizes["N"])}
        last = letters.replace("N", "") + "N"
        return cls(
            row=row,
            elements=packed_innermost(elements, letters, sizes, space, row)
            if row.is_packed
            else innermost(elements, letters, sizes, space),
            scales=innermost(scales, letters, blocks, space),
            by_element=Strides.dense(last, held, space),
            by_scale=Strides.dense(last, blocks, space),
        )

    def fragment(self, at: ir.Value, depth: ir.Value, tests: Sequence[ir.Value | None]) -> ir.Value:
        """The 32 elements of a lane whose first depth is `depth` behind the address `at`, in as
        many runs as there are tests; those of a run whose test fails are 0."""
        found, (elements, size) = [], self.row.packed
        if elements > 1:
            depth = arith.DivUIOp(depth, number(elements)).result
        start = linear(depth, size, at)
        for nth, test in enumerate(tests):
            place = inside(linear(start, 1, self.row.bytes_of(nth * DEPTH // 2)), test)
            run = load(self.elements, place, self.row.bytes_of(BLOCK) // len(tests))
            if test is not None:
                run = arith.SelectOp(test, run, zeros(run.type)).result
            found.append(run)
        if len(found) == 2:
            return vector.ShuffleOp(found[0], found[1], list(range(BLOCK))).result
        type = ir.VectorType.get([BLOCK], ir.Type.parse(self.row.name))
        return vector.BitCastOp(type, found[0]).result

    def scale(self, at: ir.Value, block: ir.Value, test: ir.Value | None) -> ir.Value:
        """The scale of a block behind the address `at`; 1 where the test fails."""
        place = arith.IndexCastOp(ir.IndexType.get(), inside(linear(block, 1, at), test)).result
        code = tensor.ExtractOp(self.scales, [place]).result
        if test is not None:
            one = arith.ConstantOp(code.type, ir.IntegerAttr.get(code.type, _ONE)).result
            code = arith.SelectOp(test, code, one).result
        return arith.BitcastOp(ir.Type.parse("f8E8M0FNU"), code).result
