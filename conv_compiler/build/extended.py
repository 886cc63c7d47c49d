# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The payload around a problem whose pads repeat pixels: extend the image, or add up what its
extension got."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import finished, folded, grouped
from conv_compiler.problem.extended import over_extended, pixels_of, places_of
from conv_compiler.problem.layouts import axis_of

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.problem.conv_problem import ConvProblem


def build_extended(
    problem: ConvProblem, builder: Callable[..., ir.Value], *operands: ir.Value
) -> ir.Value:
    """The result of a problem by the builder of the one over the extended image."""
    inner = over_extended(problem)
    if problem.tensors[-1] != "input":
        image, *others = operands
        return builder(inner, extended(problem, image), *others)
    sums = replace(inner, weight_dtype=problem.accumulator_type.name, elementwise="")
    gradient, weight, *extra = operands
    found = added_up(problem, builder(sums, gradient, weight))
    found = finished(problem, grouped(problem, "input", found), tuple(extra))
    return folded(problem, "input", found)


def _dimensions(problem: ConvProblem) -> list[tuple[int, tuple[int, int, int]]]:
    """Of each dimension with pads its axis in the input, and its low pad, size and high pad."""
    letters = problem.layout_row.input
    first = axis_of(letters, "*", problem.ndim)
    sizes = zip(problem.pad_low, problem.image, problem.pad_high, strict=True)
    return [(first + at, one) for at, one in enumerate(sizes) if one[0] or one[2]]


def extended(problem: ConvProblem, image: ir.Value) -> ir.Value:
    """The image with its pads, by a kernel of its own."""
    tables: dict[int, list[tuple[int, ...]]] = {
        axis: [(place,) for place in pixels_of(problem.pad_mode, *sizes)]
        for axis, sizes in _dimensions(problem)
    }
    return _gathered(image, tables)


def added_up(problem: ConvProblem, value: ir.Value) -> ir.Value:
    """The image of which each pixel is the sum of its places in the extended one, its own first, by
    a kernel for each dimension."""
    for axis, sizes in _dimensions(problem):
        value = _gathered(value, {axis: list(places_of(problem.pad_mode, *sizes))})
    return value


def _gathered(value: ir.Value, tables: dict[int, list[tuple[int, ...]]]) -> ir.Value:
    """The tensor of sums of elements of another, whose indices along some axes a table has."""
    from iree.compiler import ir
    from iree.compiler.dialects import arith, linalg, tensor

    from conv_compiler.ir import dispatches, ops
    from conv_compiler.ir.attributes import EXTENSION, ROLE

    shape, element = ops.shape_of(value), ops.element_of(value)
    made = [len(tables[axis]) if axis in tables else size for axis, size in enumerate(shape)]
    index = ir.IndexType.get()

    def number(one: int) -> ir.Value:
        return arith.ConstantOp(index, one).result

    def body(zero: ir.Value) -> ir.Value:
        at = [linalg.IndexOp(axis).result for axis in range(len(made))]
        most = max(len(one) for table in tables.values() for one in table)
        total = None
        for term in range(most):
            places, there = list(at), None
            for axis, table in tables.items():
                column = [one[term] if term < len(one) else -1 for one in table]
                places[axis] = place = _of_runs(column, at[axis], number)
                if min(column) < 0:
                    there = arith.CmpIOp(arith.CmpIPredicate.sge, place, number(0)).result
                    places[axis] = arith.MaxSIOp(place, number(0)).result
            found = tensor.ExtractOp(value, places).result
            if there is not None:
                found = arith.SelectOp(there, found, zero).result
            total = found if total is None else ops.add(total, found)
        return total

    region = dispatches.dispatch_region(ir.RankedTensorType.get(made, element))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        dims = [ir.AffineDimExpr.get(i) for i in range(len(made))]
        empty = tensor.EmptyOp(made, element).result
        dispatches.dispatch_return(
            ops.generic(
                [],
                empty,
                [dims],
                len(made),
                0,
                lambda _: body(ops.zero(element)),
                {ROLE: ir.StringAttr.get(EXTENSION)},
            )
        )
    result: ir.Value = region.results[0]
    return result


def _of_runs(column: list[int], at: ir.Value, number: Callable[[int], ir.Value]) -> ir.Value:
    """The entry of a column at an index, by runs of entries that rise, fall or stay together."""
    from iree.compiler.dialects import arith

    found = None
    for start, step in _runs(column):
        moved = arith.MulIOp(arith.SubIOp(at, number(start)).result, number(step)).result
        here = arith.AddIOp(number(column[start]), moved).result
        if found is None:
            found = here
        else:
            is_here = arith.CmpIOp(arith.CmpIPredicate.sge, at, number(start)).result
            found = arith.SelectOp(is_here, here, found).result
    assert found is not None
    return found


def _runs(column: list[int]) -> list[tuple[int, int]]:
    """(start, step) of each run of a column whose entries have one difference."""
    runs: list[tuple[int, int]] = []
    start = 0
    while start < len(column):
        end = start + 1
        step = column[end] - column[start] if end < len(column) else 0
        if abs(step) > 1:
            step = 0
        else:
            while end < len(column) and column[end] - column[end - 1] == step:
                end += 1
        runs.append((start, step))
        start = end
    return runs
