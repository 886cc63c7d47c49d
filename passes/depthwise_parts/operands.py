# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a depthwise kernel reads and writes: the tensors behind and before a payload's steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor, vector

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.attributes import EXTENSION, ROLE
from conv_compiler.ir.reads import read_per
from conv_compiler.ir.views import reshaped

_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")
_MOVES = (*_VIEWS, "tensor.pad", "tensor.extract_slice", "linalg.generic")


@dataclass(frozen=True, kw_only=True)
class Operand:
    """A tensor of the program, and the elementwise ops it goes through before it is multiplied."""

    tensor: ir.Value
    steps: tuple[ir.Operation, ...]

    def flat(self) -> ir.Value:
        """The tensor as a vector."""
        return flat(self.tensor)

    def applied(self, value: ir.Value) -> ir.Value:
        """Some of its elements, in a vector, after these ops."""
        for step in self.steps:
            value = on_vectors(step, [value])
        return value


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A tensor, as a vector, that the op on the sums reads beside them, and what it has a number
    for: each element of the result, each channel of it, or each call."""

    tensor: ir.Value
    per: str

    def read(
        self,
        load: Callable[[ir.Value, ir.Value, int], ir.Value],
        places: Mapping[str, ir.Value],
        count: int,
    ) -> ir.Value:
        """What belongs to so many adjacent elements of the result, as a vector.

        `places` has the first one's place among elements and its channel.
        """
        if self.per in places:
            return load(self.tensor, places[self.per], count)
        first = arith.ConstantOp(ir.IndexType.get(), 0).result
        number = tensor.ExtractOp(self.tensor, [first]).result
        type = ir.VectorType.get([count], ops.element_of(self.tensor))
        return vector.BroadcastOp(type, number).result


@dataclass(frozen=True, kw_only=True)
class Result:
    """The value that a kernel is to compute in place of the contraction's, and the elementwise op
    between the two, if there is one."""

    value: ir.Value
    epilogue: ir.Operation | None

    def extra(self) -> list[Beside]:
        """Other tensors that the op reads."""
        if self.epilogue is None:
            return []
        return [
            Beside(tensor=flat(value), per=read_per(self.epilogue, number))
            for number, value in enumerate(list(self.epilogue.operands)[1:-1], start=1)
        ]

    def finished(self, sums: ir.Value, extra: Sequence[ir.Value]) -> ir.Value:
        """Sums in a vector as the result's elements, from the same elements of other tensors."""
        return on_vectors(self.epilogue, [sums, *extra]) if self.epilogue else sums


def flat(value: ir.Value) -> ir.Value:
    """A tensor as a vector."""
    return reshaped(value, [math.prod(ops.shape_of(value))])


def find_operand(value: ir.Value) -> Operand:
    """The tensor that an operand of the contraction is made of.

    Passed over is what says where elements are to lie: reshapes, pads of zeros, and kernels that
    arrange a weight by phases or leave pixels out. Whoever reads the tensor itself sees to that.
    Kernels that make elements of several tensors are not passed over, as of block scales.
    """
    steps: list[ir.Operation] = []
    inside = False
    while not isinstance(value.owner, ir.Block):
        op = value.owner
        if op.name == "flow.dispatch.region":
            *_, end = op.regions[0].blocks[0].operations
            made = end.operands[0].owner
            if _role(made) == EXTENSION or _reads_beside(made):
                break
            value, inside = end.operands[0], True
        elif op.name in _VIEWS or op.name == "tensor.pad":
            value = op.operands[0]
        elif op.name == "linalg.generic" and len(op.operands) == 2:
            steps.insert(0, op)
            value = op.operands[0]
        elif inside and op.name == "tensor.extract_slice":
            value = op.operands[0]
        elif inside and op.name == "linalg.generic" and (read := _extracted(op)):
            value = read
        else:
            break
    return Operand(tensor=value, steps=tuple(steps))


def _role(op: ir.Operation) -> str:
    return str(ir.StringAttr(op.attributes[ROLE]).value) if ROLE in op.attributes else ""


def _reads_beside(op: ir.Operation) -> bool:
    """Whether an op makes its elements of those of several tensors."""
    if op.name != "linalg.generic" or len(op.operands) < 2:
        return False
    body = op.regions[0].blocks[0]
    return len(op.operands) > 2 or any(one.operation.name == "tensor.extract" for one in body)


def _extracted(op: ir.Operation) -> ir.Value | None:
    """The tensor of which an op without inputs extracts its elements."""
    body = op.regions[0].blocks[0]
    reads = [inner.operands[0] for inner in body if inner.operation.name == "tensor.extract"]
    return reads[0] if len(op.operands) == len(reads) == 1 else None


def find_result(value: ir.Value) -> Result:
    """Where the contraction's result goes: the last value that alone is made of it."""
    epilogue = None
    while len(users := [use.owner for use in value.uses]) == 1:
        op = users[0].operation
        if op.name not in _MOVES:
            break
        if ROLE in op.attributes:
            epilogue = op
        value = op.results[0]
    return Result(value=value, epilogue=epilogue)


def on_vectors(op: ir.Operation, values: Sequence[ir.Value]) -> ir.Value:
    """The body of an elementwise op on vectors in place of its scalars.

    Raises UnsupportedStrategy where it reads anything else.
    """
    block = op.regions[0].blocks[0]
    lanes = ir.VectorType(values[0].type).shape
    found = dict(zip(block.arguments, values, strict=False))  # without that of the result
    for inner in block:
        if any(operand not in found for operand in inner.operands):
            raise UnsupportedStrategy(f"{inner.operation.name}: reads more than elements")
        operands = [found[operand] for operand in inner.operands]
        if inner.operation.name == "linalg.yield":
            return operands[0]
        types = [ir.VectorType.get(lanes, result.type) for result in inner.results]
        if inner.operation.name == "arith.constant":
            value = inner.attributes["value"]
            made = arith.ConstantOp(types[0], ir.DenseElementsAttr.get_splat(types[0], value))
            found[inner.results[0]] = made.result
            continue
        attributes = {name: inner.attributes[name] for name in inner.attributes}
        copy = ir.Operation.create(
            inner.operation.name, results=types, operands=operands, attributes=attributes
        )
        found.update(zip(inner.results, copy.results, strict=True))
    raise UnsupportedStrategy(f"{op.name}: its body yields nothing")
