# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lengthen the k steps of an operand's tile in LDS, so that adjacent ones lie in different banks.

A tile is [k step][m or n step][row][k]. All its k steps begin in the same bank, because a step is a
multiple of 128 bytes long. Threads that copy along gemm_k write one row of several steps at a
time. Before and after, for rows of 32 bytes and two row tiles:

    memref<2x2x16x20xf16>, a step 1280 bytes      memref<1312xf16>, a step 1312 bytes
    banks of row 0: step 0 0-7, step 1 0-7        step 0 0-7, step 1 8-15

With `whole_row_padding` the k steps of a row lie side by side, and each row is so many bytes
longer. With 16 bytes:

    memref<1280xf16>, a row 80 bytes              row 0 banks 0-15, row 1 banks 20-31 and 0-3

Runs on a kernel after our scripts and IREE's passes: IREE pads the innermost axis alone.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.main_loop.loop_ops import LDS, operation

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, kw_only=True)
class PadKSteps:
    """`whole_row_padding` are the bytes behind a row whose k steps lie side by side.

    0 keeps the k steps apart.
    """

    name: ClassVar[str] = "pad-k-steps"
    whole_row_padding: int = 0

    def apply(self, module: ir.Module) -> None:
        """Pad the tiles of the module in place.

        Raises UnsupportedStrategy for LDS that is not read and written through one view.
        """
        with module.context, ir.Location.unknown():
            for tile in list(_tiles(module)):
                _pad(tile, self.whole_row_padding)


def _tiles(module: ir.Module) -> Iterator[ir.Operation]:
    """Allocations of LDS."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.alloc" and LDS in str(op.results[0].type):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return iter(found)


def _pad(tile: ir.Operation, whole_row_padding: int) -> None:
    users = [operation(use.owner) for use in tile.results[0].uses]
    views = [op for op in users if op.name == "memref.reinterpret_cast"]
    others = {op.name for op in users} - {"memref.reinterpret_cast", "memref.dealloc"}
    if len(views) != 1 or others:
        raise UnsupportedStrategy(
            f"LDS {tile.results[0].type}: {len(views)} views and {', '.join(sorted(others))}; its "
            "k steps are padded where it is used through one view"
        )
    (view,) = views
    kind = ir.MemRefType(view.results[0].type)
    strides = _whole_rows(kind, whole_row_padding) if whole_row_padding else _apart(kind)
    with ir.InsertionPoint(tile):
        flat = ir.MemRefType.get(
            [max(map(operator.mul, kind.shape, strides))],
            kind.element_type,
            memory_space=kind.memory_space,
        )
        padded = _again(tile, flat, [])
    with ir.InsertionPoint(view):
        long = ir.MemRefType.get(
            kind.shape,
            kind.element_type,
            layout=ir.StridedLayoutAttr.get(ir.StridedLayoutAttr(kind.layout).offset, strides),
            memory_space=kind.memory_space,
        )
        steps = _again(view, long, [padded], static_strides=ir.DenseI64ArrayAttr.get(strides))
    view.results[0].replace_all_uses_with(steps)
    for op in users:
        if op.name == "memref.dealloc":
            op.operands[0] = padded
    view.erase()
    tile.erase()


def _apart(kind: ir.MemRefType) -> list[int]:
    """The strides with each k step a row longer."""
    shape, strides = kind.shape, list(ir.StridedLayoutAttr(kind.layout).strides)
    step = _k_steps(shape)
    strides[step] += shape[-1]
    # Axes of one element around it stay as long as what they hold.
    for axis in reversed(range(step)):
        strides[axis] = shape[axis + 1] * strides[axis + 1]
    return strides


def _whole_rows(kind: ir.MemRefType, padding: int) -> list[int]:
    """The strides with the k steps of a row side by side, and each row `padding` bytes longer."""
    shape, strides = kind.shape, list(ir.StridedLayoutAttr(kind.layout).strides)
    step, row = _k_steps(shape), strides[-2]
    pitch = shape[step] * shape[-1] + 8 * padding // kind.element_type.width
    rows = [stride // row * pitch for stride in strides[step + 1 : -1]]
    whole = math.prod(shape[step + 1 : -1]) * pitch
    return [*step * [whole], shape[-1], *rows, 1]


def _k_steps(shape: list[int]) -> int:
    """The axis of the k steps: the outermost that is longer than one."""
    return next(axis for axis, size in enumerate(shape) if size > 1)


def _again(
    op: ir.Operation, kind: ir.Type, operands: list[ir.Value], **changed: ir.Attribute
) -> ir.Value:
    """The result of the operation with another type, other operands and attributes."""
    attributes = {name: op.attributes[name] for name in op.attributes} | changed
    made = ir.Operation.create(op.name, results=[kind], operands=operands, attributes=attributes)
    result: ir.Value = made.results[0]
    return result
