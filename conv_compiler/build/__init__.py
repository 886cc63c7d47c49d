# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problem to payload: linalg on tensors, the same for every target."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING

from conv_compiler.build.amax import with_amax
from conv_compiler.build.block_scales import decoded_operands
from conv_compiler.build.bwd_bias import build_bwd_bias
from conv_compiler.build.bwd_data import build_bwd_data
from conv_compiler.build.bwd_weight import build_bwd_weight
from conv_compiler.build.empty import build_empty
from conv_compiler.build.extended import build_extended
from conv_compiler.build.fwd import build_fwd
from conv_compiler.problem.amax import in_front
from conv_compiler.problem.batching import chunk_problem, chunks_of, sums_chunks
from conv_compiler.problem.decoded import decoded
from conv_compiler.problem.directions import BIAS
from conv_compiler.problem.extended import is_extended
from conv_compiler.problem.slices import of_batches

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
    block scales behind them, d where the problem's elementwise op takes it, and memory for the
    results where the problem says so. It returns the result, and behind it the largest absolute
    value where that is asked for. The
    contraction is one linalg.generic tagged `conv_compiler.role = "contraction"`, whose loops are
    named, outermost first, by the array `conv_compiler.loops`; those of other directions as in
    `problem/canonical.py`. A problem in chunks has it in the private function `@chunk`, and `@main`
    is the host program around it.
    """
    from iree.compiler import ir

    from conv_compiler.build.batching import build_chunks, chunk_function
    from conv_compiler.build.user_function import user_function

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
    inner = decoded(in_front(of_batches(problem)))
    module = ir.Module.create(ir.Location.unknown())
    with ir.InsertionPoint(module.body), ir.Location.unknown():
        body = computes(inner)

        def results(*given: ir.Value) -> tuple[ir.Value, ...]:
            operands = decoded_operands(problem, given)
            if not problem.amax:
                return (body(*operands),)
            taken = len(inner.operand_shapes) + inner.takes_d
            return with_amax(problem, body(*operands[:taken]), tuple(operands[taken:]))

        user_function(problem, name, results)
    module.operation.verify()
    return module
