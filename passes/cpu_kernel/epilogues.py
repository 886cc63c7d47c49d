# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An elementwise op behind a contraction, taken into the contraction's kernel.

Where the result is rounded, another kernel reads the sums anyway, and IREE puts the op there. A
result that is the sums would get a kernel more for the op alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import tensor

from conv_compiler.ir import ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.ir.loop_nest import erase_if_dead
from conv_compiler.ir.views import reshaped
from conv_compiler.passes.cpu_kernel.foralls import slice_of
from conv_compiler.passes.drop_unit_loops import unit_groups

_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")


@dataclass(frozen=True, kw_only=True)
class Epilogue:
    """An op on a value of `shape`, which it sees with more axes of one element, by `groups`.

    `axes` are those of the value that each of its other operands has.
    """

    op: ir.Operation
    shape: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    axes: tuple[tuple[int, ...], ...]

    def part_of(
        self, number: int, value: ir.Value, firsts: Sequence[ir.Value], sizes: Sequence[int]
    ) -> ir.Value:
        """Of one of `inputs` what a part of the value needs."""
        axes = self.axes[number]
        extents = [sizes[axis] for axis in axes]
        return slice_of(value, [firsts[axis] for axis in axes], extents, extents) if axes else value

    def inputs(self) -> list[ir.Value]:
        """Its other operands, in their axes of the value; called in front of the kernel."""
        here = ir.InsertionPoint.current.ref_operation
        values = list(self.op.operands)[1:-1]
        for view in (view for value in values for view in _views_of(value)):
            view.move_before(here)
        return [
            ops.reshape(value, self.shape, self.groups)
            if len(axes) == len(self.shape)
            else _with_axes(value, [self.shape[axis] for axis in axes])
            for value, axes in zip(values, self.axes, strict=True)
        ]

    def applied(self, value: ir.Value, inputs: Sequence[ir.Value]) -> ir.Value:
        """The op on the value or a part of it, and on the same part of its inputs."""
        shape = ops.shape_of(value)
        dims = [ir.AffineDimExpr.get(axis) for axis in range(len(shape))]
        out = tensor.EmptyOp(shape, ops.element_of(self.op.results[0])).result
        role = {ROLE: ir.StringAttr.get("epilogue")}
        one = ir.AffineConstantExpr.get(0)
        others = ([dims[axis] for axis in axes] or [one] for axes in self.axes)
        maps = [dims, *others, dims]
        return ops.generic_like(self.op, [value, *inputs], out, maps, len(shape), role)

    def replace(self, value: ir.Value) -> None:
        """Put the finished value in place of the op's; called behind the kernel."""
        result = self.op.results[0]
        with ir.InsertionPoint(self.op):
            result.replace_all_uses_with(ops.reshape(value, ops.shape_of(result), self.groups))
        erase_if_dead(self.op)


def _with_axes(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """A tensor without its axes of one element; of one element with one axis."""
    return reshaped(value, shape or [1])


def find_epilogue(value: ir.Value) -> Epilogue | None:
    """The op that alone uses a value of its result's type, if only axes of one element are between
    them and its other operands are the program's."""
    shape, result = ops.shape_of(value), value
    while True:
        users = [use.owner for use in result.uses]
        if len(users) != 1:
            return None
        user = users[0].operation
        if user.name not in _VIEWS:
            break
        result = user.results[0]
        if _without_units(ops.shape_of(result)) != _without_units(shape):
            return None
    if ROLE not in user.attributes or ir.StringAttr(user.attributes[ROLE]).value != "epilogue":
        return None
    whole = ops.shape_of(user.results[0])
    same_type = ops.element_of(user.results[0]) == ops.element_of(value)
    others = list(user.operands)[1:-1]
    if not same_type or not all(_is_the_programs(other) for other in others):
        return None
    stays = [size > 1 for size in whole]
    if whole != shape and [size for size in whole if size > 1] != shape:
        return None
    groups = unit_groups(stays) if whole != shape else [[axis] for axis in range(len(whole))]
    place = {axis: number for number, group in enumerate(groups) for axis in group}
    return Epilogue(
        op=user,
        shape=tuple(shape),
        groups=tuple(map(tuple, groups)),
        axes=tuple(
            tuple(place[axis] for axis in ops.read_axes(user, number) if whole[axis] > 1)
            for number in range(1, len(others) + 1)
        ),
    )


def _views_of(value: ir.Value) -> list[ir.Operation]:
    """The reshapes that make it of another value, first to last."""
    views: list[ir.Operation] = []
    while not isinstance(value.owner, ir.Block) and value.owner.name in _VIEWS:
        views.insert(0, value.owner)
        value = value.owner.operands[0]
    return views


def _is_the_programs(value: ir.Value) -> bool:
    """Whether it is an argument of the program, or a view of one."""
    views = _views_of(value)
    return isinstance((views[0].operands[0] if views else value).owner, ir.Block)


def _without_units(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size > 1]
