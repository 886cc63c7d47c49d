# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A bias's gradient as what the definition, the data and the tolerances know: a weight gradient.

It is the one of a filter of one tap over an image of ones. Whatever holds of its sums holds of the
bias's, and ones change no product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.problem.canonical import equivalent_wgrad

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.problem.conv_problem import ConvProblem

    Array = NDArray[Any]


def multiplying(
    problem: ConvProblem, operands: Sequence[Array]
) -> tuple[ConvProblem, tuple[Array, ...]]:
    """A problem that multiplies, and its operands, d last: those given, or of a bias's gradient
    those of its weight gradient."""
    if not problem.sums_alone:
        return problem, tuple(operands)
    wgrad = equivalent_wgrad(problem)
    gradient, *extra = operands
    ones = np.ones(wgrad.input_shape, problem.data_type.to_numpy())
    d = (array.reshape(wgrad.d_shape) for array in extra)
    return wgrad, (ones, gradient.reshape(wgrad.output_shape), *d)


def alone(problem: ConvProblem, operands: Sequence[Array]) -> tuple[Array, ...]:
    """The inverse: the operands of a bias's gradient of those of its weight gradient."""
    _, gradient, *extra = operands
    d = (array.reshape(problem.d_shape) for array in extra)
    return (gradient.reshape(problem.output_shape), *d)
