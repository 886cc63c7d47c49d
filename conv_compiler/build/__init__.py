# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problem to payload: linalg on tensors, the same for every target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conv_compiler.build.amax import with_amax
from conv_compiler.build.bwd_bias import build_bwd_bias
from conv_compiler.build.bwd_data import build_bwd_data
from conv_compiler.build.bwd_weight import build_bwd_weight
from conv_compiler.build.empty import build_empty
from conv_compiler.build.extended import build_extended
from conv_compiler.build.fwd import build_fwd
from conv_compiler.problem.amax import in_front, results_of
from conv_compiler.problem.batching import chunk_problem, chunks_of, cut_axis, sums_chunks
from conv_compiler.problem.directions import (
    BIAS,
    COMPUTED,
    RESULT_MEMORY,
    STATED_DIRECTION,
    STATED_OPERANDS,
    STATED_RESULTS,
    STATED_SLICES,
)
from conv_compiler.problem.extended import is_extended
from conv_compiler.problem.slices import has_slices, whole, within_of

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.problem.conv_problem import ConvProblem

# direction -> its result, from the operands as the user holds them.
BUILDERS: MappingProxyType[str, Callable[..., ir.Value]] = MappingProxyType(
    {
        "bwd_data": build_bwd_data,
        "bwd_weight": build_bwd_weight,
        "fwd": build_fwd,
        BIAS: build_bwd_bias,
    }
)


def _builder(problem: ConvProblem) -> Callable[..., ir.Value]:
    """The builder of a problem, around which pads that repeat pixels are made."""
    builder = BUILDERS[problem.direction]
    if not is_extended(problem) or problem.sums_alone:
        return builder
    return lambda stated, *operands: build_extended(stated, builder, *operands)


def build(problem: ConvProblem, name: str = "main") -> ir.Module:
    """The payload module of a problem, in the MLIR context in force.

    Its one function is `@main`, or of another name. It takes the operands as the user holds them,
    d where the problem's elementwise op takes it, and memory for the result where the problem says
    so. It returns the result, and behind it the largest absolute value where that is asked for. The
    contraction is one linalg.generic tagged `conv_compiler.role = "contraction"`, whose loops are
    named, outermost first, by the array `conv_compiler.loops`; those of other directions as in
    `problem/canonical.py`. A problem in chunks has it in the private function `@chunk`, and `@main`
    is the host program around it.
    """
    from iree.compiler import ir
    from iree.compiler.dialects import func

    from conv_compiler.build.batching import build_chunks, chunk_function
    from conv_compiler.ir import ops
    from conv_compiler.ir.slices import sliced

    def tensor_type(
        problem: ConvProblem, name: str, shape: Sequence[int], element: ir.Type
    ) -> ir.Type:
        sizes = list(shape)
        if problem.dynamic_batch and (axis := cut_axis(problem, name, "N")) is not None:
            sizes[axis] = ir.ShapedType.get_dynamic_size()
        return ir.RankedTensorType.get(sizes, element)

    def computes(problem: ConvProblem) -> Callable[..., ir.Value]:
        cut, builder = chunks_of(problem), _builder(problem)
        if problem.n == 0 and not problem.sums_alone:
            return lambda *operands: build_empty(problem, *operands[2:])
        if cut is None:
            return lambda *operands: builder(problem, *operands)
        chunk = chunk_problem(problem, cut)
        one = (
            chunk_function(chunk, builder, sums=sums_chunks(problem, cut), name=chunks)
            if chunks_of(chunk) is None
            else computes(chunk)
        )
        return lambda *operands: build_chunks(problem, cut, one, operands)

    chunks = "chunk" if name == "main" else f"{name}_chunk"
    module = ir.Module.create(ir.Location.unknown())
    with ir.InsertionPoint(module.body), ir.Location.unknown():
        data = ops.element_type(problem.data_type)
        *operands, result = problem.tensors
        types = [tensor_type(problem, name, within_of(problem, name), data) for name in operands]
        if problem.takes_d:
            d_type = ops.element_type(problem.d_type)
            types.append(
                ir.RankedTensorType.get(list(problem.d_shape), d_type)
                if problem.d_shape != problem.result_shape
                else tensor_type(problem, result, problem.result_shape, d_type)
            )
        inner = in_front(whole(problem))
        body, attributes = computes(inner), [ir.DictAttr.get({})] * len(types)
        if problem.result_operand:
            element = ops.element_type(problem.result_type)
            types.append(ir.RankedTensorType.get(list(problem.result_shape), element))
            # IREE has the result in this argument's memory (IREE: `iree.abi.output`).
            index = ir.IntegerAttr.get(ir.IndexType.get(), 0)
            attributes.append(ir.DictAttr.get({RESULT_MEMORY: index}))
        named = len(attributes) - problem.result_operand

        def results(given: Sequence[ir.Value]) -> Any:
            shapes = problem.operand_shapes
            operands = given
            if has_slices(problem):
                cut = (sliced(*one) for one in zip(given, shapes, strict=False))
                operands = (*cut, *given[len(shapes) :])
            if not problem.amax:
                return body(*operands)
            taken = len(inner.operand_shapes) + inner.takes_d
            return with_amax(problem, body(*operands[:taken]), tuple(operands[taken:]))

        made = func.FuncOp.from_py_func(*types, name=name)(
            lambda *operands: results(operands[:named])
        ).func_op
        made.arg_attrs = attributes
        stated = {STATED_DIRECTION: problem.direction}
        if problem.amax:
            names = (*COMPUTED[problem.direction][0], *(["d"] * problem.takes_d))
            stated |= {STATED_OPERANDS: ",".join(names)}
            stated |= {STATED_RESULTS: ",".join(results_of(problem))}
        if has_slices(problem):
            parts = (
                "x".join(map(str, shape)) if getattr(problem, f"{name}_within") else ""
                for name, shape in zip(operands, problem.operand_shapes, strict=True)
            )
            stated[STATED_SLICES] = ",".join(parts)
        made.attributes["iree.reflection"] = ir.DictAttr.get(
            {name: ir.StringAttr.get(text) for name, text in stated.items()}
        )
    module.operation.verify()
    return module
