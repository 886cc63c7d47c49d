# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lengthen the k steps of an operand's tile in LDS, so that adjacent ones lie in different banks.

A tile is [k step][m or n step][row][k]. All its k steps begin in the same bank, because a step is a
multiple of 128 bytes long. Threads that copy along gemm_k write one row of several steps at a
time. Before and after, for rows of 32 bytes and two row tiles:

    memref<2x2x16x20xf16>, a step 1280 bytes      memref<1312xf16>, a step 1312 bytes
    banks of row 0: step 0 0-7, step 1 0-7        step 0 0-7, step 1 8-15

Runs on a kernel after our scripts and IREE's passes: IREE pads the innermost axis alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.main_loop.loop_ops import LDS, operation

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, kw_only=True)
class PadKSteps:
    """No options. Tiles of one k step stay as they are."""

    name: ClassVar[str] = "pad-k-steps"

    def apply(self, module: ir.Module) -> None:
        """Pad the tiles of the module in place.

        Raises UnsupportedStrategy for LDS that is not read and written through one view.
        """
        with module.context, ir.Location.unknown():
            for tile in list(_tiles(module)):
                _pad(tile)


def _tiles(module: ir.Module) -> Iterator[ir.Operation]:
    """Allocations of LDS."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.alloc" and LDS in str(op.results[0].type):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return iter(found)


def _pad(tile: ir.Operation) -> None:
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
    layout, shape = ir.StridedLayoutAttr(kind.layout), list(kind.shape)
    strides = _padded(shape, list(layout.strides))
    with ir.InsertionPoint(tile):
        flat = ir.MemRefType.get(
            [math.prod(shape[:1]) * strides[0]], kind.element_type, memory_space=kind.memory_space
        )
        padded = _again(tile, flat, [])
    with ir.InsertionPoint(view):
        long = ir.MemRefType.get(
            shape,
            kind.element_type,
            layout=ir.StridedLayoutAttr.get(layout.offset, strides),
            memory_space=kind.memory_space,
        )
        steps = _again(view, long, [padded], static_strides=ir.DenseI64ArrayAttr.get(strides))
    view.results[0].replace_all_uses_with(steps)
    for op in users:
        if op.name == "memref.dealloc":
            op.operands[0] = padded
    view.erase()
    tile.erase()


def _padded(shape: list[int], strides: list[int]) -> list[int]:
    """The strides with each k step, the outermost axis longer than one, a row longer."""
    step = next(axis for axis, size in enumerate(shape) if size > 1)
    longer = [*strides[:step], strides[step] + shape[-1], *strides[step + 1 :]]
    # Axes of one element around it stay as long as what they hold.
    for axis in reversed(range(step)):
        longer[axis] = shape[axis + 1] * longer[axis + 1]
    return longer


def _again(
    op: ir.Operation, kind: ir.Type, operands: list[ir.Value], **changed: ir.Attribute
) -> ir.Value:
    """The result of the operation with another type, other operands and attributes."""
    attributes = {name: op.attributes[name] for name in op.attributes} | changed
    made = ir.Operation.create(op.name, results=[kind], operands=operands, attributes=attributes)
    result: ir.Value = made.results[0]
    return result
