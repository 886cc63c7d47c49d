# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices of a caller's tensor along its batch or its groups, read and written by the host program.

A slice that starts where kernels may take operands to start is read where it lies (a span of the
caller's buffer). Others are copied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from iree.compiler import ir
from iree.compiler.dialects import arith, flow, hal, tensor

from conv_compiler.build.gathered import gathered
from conv_compiler.ir import ops
from conv_compiler.problem.batching import ALIGNMENT

# Known when compiling, or not.
Size: TypeAlias = "int | ir.Value"


def index(value: Size) -> ir.Value:
    """A size as an index value."""
    if isinstance(value, ir.Value):
        return value
    return arith.ConstantOp(ir.IndexType.get(), value).result


def dynamic(sizes: Sequence[Size]) -> list[ir.Value]:
    """Of some sizes those that are not known when compiling."""
    return [size for size in sizes if isinstance(size, ir.Value)]


@dataclass(frozen=True, kw_only=True)
class Group:
    """One group of a caller's tensor in which groups lie outermost."""

    value: ir.Value
    index: Size

    def read(self) -> ir.Value:
        """A tensor of it alone."""
        groups = Slices.of(self.value, 0, ops.shape_of(self.value)[0])
        return groups.read(self.index, 1, 1)


@dataclass(frozen=True, kw_only=True)
class Slices:
    """A tensor of `length` images or groups along `axis`; of an axis before it is index `group`.

    Of one that is itself a slice, `own` is the shape, and nothing beside that is read.
    """

    value: ir.Value
    axis: int
    length: Size
    group: Size = 0
    own: tuple[int, ...] | None = None

    @classmethod
    def of(
        cls,
        operand: ir.Value | Group,
        axis: int,
        length: Size,
        own: tuple[int, ...] | None = None,
    ) -> Slices:
        """Those of a whole tensor or of one group of it."""
        if isinstance(operand, Group):
            return cls(value=operand.value, axis=axis, length=length, group=operand.index)
        return cls(value=operand, axis=axis, length=length, own=own)

    @property
    def one_bytes(self) -> int:
        """Bytes of one of them."""
        inner = ops.shape_of(self.value)[self.axis + 1 :]
        return math.prod(inner) * ops.bits_of(ops.element_of(self.value)) // 8

    def shape(self, length: Size) -> list[Size]:
        """The shape of so many."""
        return [1] * self.axis + [length, *ops.shape_of(self.value)[self.axis + 1 :]]

    def type(self, length: Size) -> ir.RankedTensorType:
        """The type of so many."""
        dynamic = ir.ShapedType.get_dynamic_size()
        shape = [size if isinstance(size, int) else dynamic for size in self.shape(length)]
        return ir.RankedTensorType.get(shape, ops.element_of(self.value))

    def starts(self, first: Size, group: Size = 0) -> list[ir.Value]:
        """The index of the first element of one."""
        inner = ops.shape_of(self.value)[self.axis + 1 :]
        return [index(i) for i in (*[group] * self.axis, first, *[0] * len(inner))]

    def part(self, start: Size, count: Size) -> ir.Value:
        """A copy of so many."""
        return flow.TensorSliceOp(
            self.type(count),
            self.value,
            dynamic(self.shape(self.length)),
            self.starts(start, self.group),
            [index(size) for size in self.shape(count)],
            dynamic(self.shape(count)),
        ).result

    @property
    def group_bytes(self) -> int:
        """Bytes from one group to the next, 0 where this is in the first."""
        if self.group == 0:
            return 0
        assert isinstance(self.length, int)
        return self.length * self.one_bytes

    @property
    def starts_aligned(self) -> bool:
        """Whether the group starts where kernels may take operands to start, if it is in a loop
        wherever that is."""
        before = self.group_bytes * (self.group if isinstance(self.group, int) else 1)
        return before % ALIGNMENT == 0

    def read(self, start: Size, count: Size, whole: int) -> ir.Value:
        """Those from `start` on: `count`, and zeros behind them to make a `whole` chunk."""
        aligned = whole * self.one_bytes % ALIGNMENT == 0
        if count == whole and aligned and self.starts_aligned:
            return self._in_place(start, whole)
        if self.own is not None:
            return gathered(self.value, self.axis, self.own, start, count, self.shape(whole))
        part = self.part(start, count)
        if count == whole:
            return part
        missing = (
            whole - count if isinstance(count, int) else arith.SubIOp(index(whole), count).result
        )
        absent = self.shape(missing)
        zero = ops.zero(ops.element_of(part))
        zeros = flow.TensorSplatOp(self.type(missing), zero, dynamic(absent)).result
        found = tensor.EmptyOp(self.shape(whole), zero.type).result
        for at, piece, sizes in ((0, part, self.shape(count)), (count, zeros, absent)):
            found = flow.TensorUpdateOp(found, [], self.starts(at), piece, dynamic(sizes)).result
        return found

    def view(self, length: Size) -> ir.Value:
        """The caller's buffer, with its shape."""
        return hal.TensorExportOp(
            ir.Type.parse("!hal.buffer_view"),
            self.value,
            ir.TypeAttr.get(self.value.type),
            dynamic(self.shape(length)),
        ).result

    def _in_place(self, start: Size, count: int) -> ir.Value:
        buffer = ir.Type.parse("!hal.buffer")
        offset = arith.MulIOp(index(start), index(self.one_bytes)).result
        if self.group_bytes:
            before = arith.MulIOp(index(self.group), index(self.group_bytes)).result
            offset = arith.AddIOp(offset, before).result
        span = hal.BufferSubspanOp(
            buffer,
            hal.BufferViewBufferOp(buffer, self.view(self.length)).result,
            offset,
            index(count * self.one_bytes),
        ).result
        return hal.TensorImportOp(
            self.type(count), span, ir.TypeAttr.get(self.type(count)), []
        ).result

    def written(self, start: Size, count: Size, found: ir.Value) -> ir.Value:
        """The tensor with the first `count` of another from `start` on."""
        whole = ops.shape_of(found)[self.axis]
        part = found if count == whole else Slices.of(found, self.axis, whole).part(0, count)
        return flow.TensorUpdateOp(
            self.value,
            dynamic(self.shape(self.length)),
            self.starts(start),
            part,
            dynamic(self.shape(count)),
        ).result
