# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of the pass `load-to-lds`: the pieces that a thread copies to LDS in one iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.main_loop.loop_ops import (
    GLOBAL,
    LDS,
    WRITES,
    memory,
    operation,
    root,
)

# What one load brings to LDS for a lane.
LOAD_BYTES = 16
# What holds the elements of a vector in the same order.
_SAME_ELEMENTS = ("vector.shape_cast", "vector.broadcast")


class Piece(NamedTuple):
    """A piece of an operand's tile: the `read` that brings it, what must hold for it to be pixels
    (`tests`), and the `tile` of LDS with the place (`at`) that it is written to."""

    read: ir.Operation
    tests: tuple[ir.Value, ...]
    tile: ir.Value
    at: tuple[ir.Value | int, ...]

    @property
    def indices(self) -> list[ir.Value]:
        """The place in the operand that it is read from."""
        return list(self.read.operands)[1:-1]

    @property
    def needs(self) -> tuple[ir.Value, ...]:
        """What an iteration computes for it."""
        return *self.indices, *self.tests


def pieces_of(ops: Sequence[ir.Operation]) -> list[Piece]:
    """The pieces that a loop's operations copy to LDS, in order.

    Raises UnsupportedStrategy for a copy that is more than whole loads and tests whether they are
    pixels.
    """
    return [_piece(ops, i) for i, op in enumerate(ops) if op.name in WRITES and memory(op) == LDS]


def _piece(ops: Sequence[ir.Operation], place: int) -> Piece:
    write = ops[place]
    value, tests = write.operands[0], list[ir.Value]()
    while isinstance(value.owner, ir.OpView | ir.Operation):
        op = operation(value.owner)
        if _keeps_order(op):
            value = op.operands[0]
        elif op.name == "arith.select" and _is_zero(op.operands[2]):
            tests.append(op.operands[0])
            value = op.operands[1]
        elif op.name == "vector.transfer_read" and not memory(op):
            value = _kept(ops[: list(ops).index(op)], op)
        else:
            break
    else:
        raise _unlike("a value of another iteration")
    if op.name != "vector.transfer_read" or memory(op) != GLOBAL:
        raise _unlike(op.name)
    if any(isinstance(test.type, ir.VectorType) for test in tests) or _has_mask(op):
        raise _unlike("a mask of single elements")
    if _elements(value) * _bits(value) != 8 * LOAD_BYTES:
        raise _unlike(f"reads of {_elements(value) * _bits(value) // 8} bytes")
    tile, at = _place(write)
    return Piece(op, tuple(tests), tile, at)


def _unlike(found: str) -> UnsupportedStrategy:
    return UnsupportedStrategy(
        f"copy to LDS: it holds {found}, where whole reads of {LOAD_BYTES} bytes are expected; "
        "use a tile that goes through registers"
    )


def _kept(before: Sequence[ir.Operation], read: ir.Operation) -> ir.Value:
    """What was last written to the registers that an operation reads as memory."""
    kept = root(read.operands[0])
    for op in reversed(before):
        if op.name in WRITES and root(op.operands[1]) == kept:
            found: ir.Value = op.operands[0]
            if _elements(found) == _elements(read.results[0]):
                return found
            break
    raise _unlike("registers that were filled elsewhere")


def _place(write: ir.Operation) -> tuple[ir.Value, tuple[ir.Value | int, ...]]:
    """The allocation that an operation writes to, and the place in it."""
    view = operation(write.operands[1].owner)
    starts = list(write.operands)[2:]
    if view.name == "memref.alloc":
        return view.results[0], tuple(starts)
    if view.name != "memref.subview" or any(_number(one) != 0 for one in starts):
        raise _unlike(f"{view.name} of LDS")
    offsets, dynamic = [], iter(list(view.operands)[1:])
    for static in ir.DenseI64ArrayAttr(view.attributes["static_offsets"]):
        offsets.append(next(dynamic) if static == _DYNAMIC else static)
    if operation(view.operands[0].owner).name != "memref.alloc":
        raise _unlike("a view of a view of LDS")
    return view.operands[0], tuple(offsets)


_DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()


def _number(value: ir.Value) -> int | None:
    if not isinstance(value.owner, ir.OpView | ir.Operation):
        return None
    op = operation(value.owner)
    return ir.IntegerAttr(op.attributes["value"]).value if op.name == "arith.constant" else None


def _elements(value: ir.Value) -> int:
    count = 1
    for size in ir.VectorType(value.type).shape:
        count *= size
    return count


def _keeps_order(op: ir.Operation) -> bool:
    """Whether a vector has the elements of another one, in the same order."""
    if op.name == "vector.transpose":  # of one axis, beside those of one element
        value = op.results[0]
        return bool(max(ir.VectorType(value.type).shape) == _elements(value))
    return op.name in _SAME_ELEMENTS and _elements(op.operands[0]) == _elements(op.results[0])


def _bits(value: ir.Value) -> int:
    return int(ir.VectorType(value.type).element_type.width)


def _is_zero(value: ir.Value) -> bool:
    if not isinstance(value.owner, ir.OpView | ir.Operation):
        return False
    op = operation(value.owner)
    if op.name != "arith.constant":
        return False
    text = str(op.attributes["value"])
    return text.startswith(("dense<0.0", "dense<0>"))


def _has_mask(read: ir.Operation) -> bool:
    """Whether a read has a mask: an operand behind its source, indices and padding."""
    rank = len(ir.MemRefType(read.operands[0].type).shape)
    return len(read.operands) > rank + 2
