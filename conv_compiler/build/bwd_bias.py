# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The payload of a bias's gradient: the output gradient summed over images and pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import axes_of_d, multiplicand, rounded_after
from conv_compiler.problem.channel_sums import axes_of_sums, kept_shape

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.problem.conv_problem import ConvProblem


def build_bwd_bias(problem: ConvProblem, gradient: ir.Value, *extra: ir.Value) -> ir.Value:
    """d_bias of d_output, and of d where the problem's elementwise op takes it."""
    from iree.compiler import ir

    from conv_compiler.ir import ops
    from conv_compiler.ir.attributes import ROLE, SUM_ROLES
    from conv_compiler.ir.views import reshaped

    accumulator = ops.element_type(problem.accumulator_type)
    axes = axes_of_sums(problem)
    kept = kept_shape(axes)
    sums = ops.filled(kept, accumulator)
    if problem.n:
        gradient = multiplicand(gradient, problem.output_fused, problem.data_type)
        value = reshaped(gradient, [axis.size for axis in axes])
        dims = iter(map(ir.AffineDimExpr.get, range(len(kept), len(axes))))
        loops = iter(map(ir.AffineDimExpr.get, range(len(kept))))
        read = [next(loops) if axis.kept else next(dims) for axis in axes]
        sums = ops.generic(
            [value],
            sums,
            [read, [ir.AffineDimExpr.get(i) for i in range(len(kept))]],
            len(axes),
            len(axes) - len(kept),
            lambda x, total: ops.add(total, ops.convert(x, total.type)),
            {ROLE: ir.StringAttr.get(SUM_ROLES[0])},
        )
    if (of_d := axes_of_d(problem)) is None:
        extra = tuple(reshaped(d, kept) for d in extra)
    return reshaped(rounded_after(problem, sums, extra, of_d), problem.bias_shape)
