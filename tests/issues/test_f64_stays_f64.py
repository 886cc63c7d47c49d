"""IREE makes f32 of f64 unless told otherwise; a kernel of f64 keeps what f32 would round away."""

from __future__ import annotations

import numpy as np

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load


def test_a_sum_that_f32_would_round():
    problem = ConvProblem(n=1, k=8, c=8, image=(64,), filter=(1,), dtype="f64")
    image = np.zeros(problem.input_shape)
    image[0, 0], image[0, 1] = 1.0, 2.0**-40
    found = load(compile(problem))(image, np.ones(problem.output_shape))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.full(problem.weight_shape, 1.0 + 2.0**-40))
