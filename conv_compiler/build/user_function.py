# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The function that a user calls: what it takes, gives and states of itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import func

from conv_compiler.ir import ops
from conv_compiler.ir.slices import sliced, stored
from conv_compiler.problem.amax import results_of
from conv_compiler.problem.batching import cut_axis
from conv_compiler.problem.block_scales import scale_names
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import (
    COMPUTED,
    RESULT_MEMORY,
    STATED_DIRECTION,
    STATED_OPERANDS,
    STATED_PACKED,
    STATED_RESULT_SLICES,
    STATED_RESULTS,
    STATED_SLICES,
)
from conv_compiler.problem.slices import has_slices, is_sliced, taken_shapes, within_of


def user_function(
    problem: ConvProblem, name: str, results: Callable[..., tuple[ir.Value, ...]]
) -> None:
    """Put the function of a problem into the module.

    It takes the operands as the user holds them, and memory for results behind them where the
    problem says so. `results` makes these of the operands alone. Slices are cut out, but those of a
    batch of any size, of which each chunk cuts its own.
    """
    operands, memory = _operand_types(problem), _memory_types(problem)

    def body(*given: ir.Value) -> tuple[ir.Value, ...]:
        every = zip(given[: len(operands)], taken_shapes(problem), strict=True)
        taken = [
            sliced(value, own) if larger != own and _is_static(value.type) else value
            for value, (larger, own) in every
        ]
        first, *others = results(*taken)
        if is_sliced(problem, problem.tensors[-1]):
            first = stored(first, given[len(operands)])
        return (first, *others)

    made = func.FuncOp.from_py_func(*operands, *memory, name=name)(body).func_op
    made.arg_attrs = [
        *(ir.DictAttr.get({}) for _ in operands),
        *(ir.DictAttr.get({RESULT_MEMORY: _index(number)}) for number in range(len(memory))),
    ]
    made.attributes["iree.reflection"] = ir.DictAttr.get(
        {name: ir.StringAttr.get(text) for name, text in _stated(problem).items()}
    )


def _index(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IndexType.get(), number)


def _operand_types(problem: ConvProblem) -> list[ir.Type]:
    """Of the operands, their scales behind them and d last."""
    data, d = (ops.element_type(row) for row in (problem.data_type, problem.d_type))
    *names, result = problem.tensors
    shapes = [whole for whole, _ in taken_shapes(problem)]
    found = [_type(problem, *one, data) for one in zip(names, shapes, strict=False)]
    scales = len(names) + len(problem.scale_shapes)
    code = ir.IntegerType.get_signless(8)
    found += [ir.RankedTensorType.get(shape, code) for shape in shapes[len(names) : scales]]
    for shape in shapes[scales:]:
        of_result = problem.d_shape == problem.result_shape
        found.append(_type(problem, result if of_result else "", shape, d))
    return found


def _memory_types(problem: ConvProblem) -> list[ir.Type]:
    """Of the memory for each result, which IREE has in it (IREE: `iree.abi.output`)."""
    if not problem.result_operand:
        return []
    result = problem.tensors[-1]
    shape, element = within_of(problem, result), ops.element_type(problem.result_type)
    amax = ir.RankedTensorType.get([], ops.element_type(problem.accumulator_type))
    return [_type(problem, result, shape, element), *([amax] * problem.amax)]


def _type(problem: ConvProblem, name: str, shape: Sequence[int], element: ir.Type) -> ir.Type:
    """Of a tensor by its name, which has a batch of any size where the problem has."""
    sizes = list(shape)
    if name and problem.dynamic_batch and (axis := cut_axis(problem, name, "N")) is not None:
        sizes[axis] = ir.ShapedType.get_dynamic_size()
    return ir.RankedTensorType.get(sizes, element)


def _stated(problem: ConvProblem) -> dict[str, str]:
    """What the function states of itself."""
    found = {STATED_DIRECTION: problem.direction}
    if problem.amax or problem.block_scales:
        operands = COMPUTED[problem.direction][0]
        names = (*operands, *scale_names(problem), *(["d"] * problem.takes_d))
        found |= {STATED_OPERANDS: ",".join(names)}
        found |= {STATED_RESULTS: ",".join(results_of(problem))}
        if problem.data_type.is_packed:
            packed = [problem.dtype if name in operands else "" for name in names]
            found |= {STATED_PACKED: ",".join(packed)}
    if has_slices(problem):
        every = zip(_operand_types(problem), taken_shapes(problem), strict=True)
        parts = ["" if own == larger else _text(type, own) for type, (larger, own) in every]
        found |= {STATED_SLICES: ",".join(parts)}
    if is_sliced(problem, problem.tensors[-1]):
        amax = [""] * problem.amax
        part = _text(_memory_types(problem)[0], problem.result_shape)
        found |= {STATED_RESULT_SLICES: ",".join([part, *amax])}
    return found


def _text(type: ir.Type, part: Sequence[int]) -> str:
    """The shape of a slice of a tensor, with `?` for a size that is known at run time."""
    every = zip(ir.RankedTensorType(type).shape, part, strict=True)
    of_any = ir.ShapedType.get_dynamic_size()
    return "x".join("?" if size == of_any else str(own) for size, own in every)


def _is_static(type: ir.Type) -> bool:
    found: bool = ir.RankedTensorType(type).has_static_shape
    return found
