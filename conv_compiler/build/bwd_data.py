# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The payload of a data gradient: arrange the weight by phases, contract, put the phases in place.

`conv_compiler/problem/canonical.py` says what phases are.
"""

from __future__ import annotations

from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import contracted, finished, folded, grouped
from conv_compiler.problem.canonical import equivalent_wgrad, phases

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.problem.canonical import Phases
    from conv_compiler.problem.conv_problem import ConvProblem


def build_bwd_data(
    problem: ConvProblem, gradient: ir.Value, weight: ir.Value, *extra: ir.Value
) -> ir.Value:
    """d_input of d_output and weight, and of d where the problem's elementwise op takes it."""
    from conv_compiler.ir import dispatches

    cut, letters = phases(problem), problem.layout_row.grouped
    gradient, weight = grouped(problem, "output", gradient), grouped(problem, "weight", weight)
    skipped = [max(0, one.lowest) for one in cut]
    gradient = dispatches.without_first(
        gradient, list(chain(*(skipped if x == "*" else [0] for x in letters.output)))
    )
    sums = contracted(equivalent_wgrad(problem), gradient, _arranged(problem, weight, cut))
    if problem.fused:  # which d meets in its place; without one fewer bytes are put there
        found = finished(problem, _in_place(problem, sums, cut), extra)
    else:
        found = _in_place(problem, finished(problem, sums), cut)
    return folded(problem, "input", found)


def _arranged(problem: ConvProblem, weight: ir.Value, cut: tuple[Phases, ...]) -> ir.Value:
    """The weight as [g, k, taps of the window..., (phases..., c)], 0 where a phase has no such tap.

    A kernel of its own, or the compiler puts it into the GEMM's. Of one tap that one phase meets,
    in that order of axes, it is the weight itself.
    """
    if is_read_as_it_lies(problem, cut):
        return weight
    from iree.compiler import ir
    from iree.compiler.dialects import arith, linalg, tensor

    from conv_compiler.ir import dispatches, ops
    from conv_compiler.ir.attributes import REVERSED

    index = ir.IndexType.get()
    letters, ndim = problem.layout_row.grouped.weight, problem.ndim
    shape = [
        *(problem.g, problem.k),
        *(one.taps for one in cut),
        *(one.count for one in cut),
        problem.c,
    ]

    def number(value: int) -> ir.Value:
        return arith.ConstantOp(index, value).result

    def linear(value: ir.Value, factor: int, offset: int) -> ir.Value:
        return arith.AddIOp(arith.MulIOp(value, number(factor)).result, number(offset)).result

    def tap(axis: int, at: list[ir.Value]) -> tuple[ir.Value, ir.Value]:
        """(the filter tap, whether there is one) of a place in the window and a phase."""
        one, stride, dilation = cut[axis], problem.stride[axis], problem.dilation[axis]
        phase = linear(at[2 + ndim + axis], 1, one.first + problem.pad_low[axis])
        pixel = linear(at[2 + axis], one.step * stride, one.lowest * stride)
        reach = arith.SubIOp(phase, pixel).result
        found = arith.DivSIOp(reach, number(dilation)).result
        whole = arith.CmpIOp(
            arith.CmpIPredicate.eq, arith.MulIOp(found, number(dilation)).result, reach
        ).result
        inside = [
            arith.CmpIOp(arith.CmpIPredicate.sge, reach, number(0)).result,
            arith.CmpIOp(arith.CmpIPredicate.slt, found, number(problem.filter[axis])).result,
        ]
        is_tap = reduce(lambda a, b: arith.AndIOp(a, b).result, inside, whole)
        return arith.SelectOp(is_tap, found, number(0)).result, is_tap

    def body(zero: ir.Value) -> ir.Value:
        at = [linalg.IndexOp(axis).result for axis in range(len(shape))]
        taps = [tap(axis, at) for axis in range(ndim)]
        place = {"G": [at[0]], "K": [at[1]], "C": [at[-1]], "*": [found for found, _ in taps]}
        value = tensor.ExtractOp(weight, list(chain(*(place[x] for x in letters)))).result
        is_tap = reduce(lambda a, b: arith.AndIOp(a, b).result, [there for _, there in taps])
        return arith.SelectOp(is_tap, value, zero).result

    element = ir.RankedTensorType(weight.type).element_type
    attributes: dict[str, ir.Attribute] = {}
    if only_reverses_taps(problem):
        attributes[REVERSED] = ir.UnitAttr.get()
    region = dispatches.dispatch_region(ir.RankedTensorType.get(shape, element))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        dims = [ir.AffineDimExpr.get(i) for i in range(len(shape))]
        empty = tensor.EmptyOp(shape, element).result
        zero = ops.zero(element)
        arranged = ops.generic([], empty, [dims], len(shape), 0, lambda _: body(zero), attributes)
        dispatches.dispatch_return(arranged)
    return ops.merge_axes(region.results[0], 2 + ndim, ndim + 1)


def only_reverses_taps(problem: ConvProblem) -> bool:
    """Whether the weight has its axes in the contraction's order but for that of its taps."""
    cut = phases(problem)
    reverses = (
        (one.count, one.taps, pad - one.lowest) == (1, taps, (taps - 1) * dilation)
        for one, taps, dilation, pad in zip(
            cut, problem.filter, problem.dilation, problem.pad_low, strict=True
        )
    )
    return (
        set(problem.stride) == {1} and problem.layout_row.grouped.weight == "GK*C" and all(reverses)
    )


def is_read_as_it_lies(problem: ConvProblem, cut: tuple[Phases, ...]) -> bool:
    """Whether the weight needs no arranging: one tap, its axes in the contraction's order."""
    return problem.layout_row.grouped.weight == "GK*C" and _is_one_tap(problem, cut)


def _is_one_tap(problem: ConvProblem, cut: tuple[Phases, ...]) -> bool:
    """Whether the filter has one tap, which meets the input pixels of one phase.

    With pads and a stride beyond the image it may meet none.
    """
    meets = all(
        one.first + pad == one.lowest * stride
        for one, pad, stride in zip(cut, problem.pad_low, problem.stride, strict=True)
    )
    return meets and max(problem.filter) == 1 == max(one.count * one.taps for one in cut)


def _in_place(problem: ConvProblem, found: ir.Value, cut: tuple[Phases, ...]) -> ir.Value:
    """The input gradient in its grouped axes, from [.., pixels / stride, .., phases and c, ..]."""
    from conv_compiler.ir import ops

    if set(problem.stride) == {1}:
        return found
    letters, ndim = problem.layout_row.grouped.input, problem.ndim
    names: list[int | str] = list(chain(*(range(ndim) if x == "*" else x for x in letters)))
    found = _all_phases(problem, found, cut, names)
    for axis in range(len(names)):
        found = ops.merge_axes(found, axis, 2 if isinstance(names[axis], int) else 1)
    return ops.leading(found, problem.shape(letters))


def _phase(axis: int) -> str:
    """The name of a spatial axis's phases."""
    return f"phase {axis}"


def _all_phases(
    problem: ConvProblem, found: ir.Value, cut: tuple[Phases, ...], names: list[int | str]
) -> ir.Value:
    """The input gradient with an axis of phases behind each spatial axis, zeros where none is.

    One op, so that one kernel reads what was found and writes each element once. `names` are the
    axes of what was found: spatial ones by number, others by letter.
    """
    from iree.compiler import ir
    from iree.compiler.dialects import arith, linalg, tensor

    from conv_compiler.ir import ops
    from conv_compiler.ir.attributes import FIRST_PHASES

    channel = names.index("C")
    there = [axis for axis, one in enumerate(cut) if one.count > 1]
    found = ops.split_axis(found, channel, (*(cut[axis].count for axis in there), problem.c))
    source = [*names[:channel], *map(_phase, there), *names[channel:]]
    sizes = dict(zip(source, ops.shape_of(found), strict=True))
    order: list[int | str] = []
    for name in names:
        order += [name, _phase(name)] if isinstance(name, int) else [name]
    dims = {name: ir.AffineDimExpr.get(i) for i, name in enumerate(order)}
    strides: dict[int | str, int] = {
        _phase(axis): stride for axis, stride in enumerate(problem.stride)
    }
    shape = [strides.get(name) or sizes[name] for name in order]
    absent = [
        axis for axis in range(problem.ndim) if axis not in there and problem.stride[axis] > 1
    ]

    def body(value: ir.Value, _: ir.Value) -> ir.Value:
        for axis in absent:
            phase = linalg.IndexOp(order.index(_phase(axis))).result
            first = arith.ConstantOp(ir.IndexType.get(), cut[axis].first).result
            is_found = arith.CmpIOp(arith.CmpIPredicate.eq, phase, first).result
            value = arith.SelectOp(is_found, value, ops.zero(value.type)).result
        return value

    empty = tensor.EmptyOp(shape, ops.element_of(found)).result
    maps = [[dims[name] for name in source], list(dims.values())]
    firsts: dict[int | str, int] = {_phase(axis): one.first for axis, one in enumerate(cut)}
    attribute = ir.DenseI64ArrayAttr.get([firsts.get(name, 0) for name in order])
    return ops.generic([found], empty, maps, len(order), 0, body, {FIRST_PHASES: attribute})
