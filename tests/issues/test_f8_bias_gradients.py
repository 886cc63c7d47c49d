"""Bias gradients of 8-bit floats are emulated behind the cut into levels, which widens them anew.

In front of it gfx1201 refused the types of gfx942, and the CPU read NaN as -480.
"""

from __future__ import annotations

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load


@pytest.mark.parametrize(
    ("target", "dtype"),
    [("gfx1201", "f8E5M2FNUZ"), ("gfx942", "f8E4M3FN"), ("cpu", "f8E4M3FN"), ("cpu", "f8E5M2")],
)
def test_every_code_is_what_it_stands_for(target, dtype):
    """A channel for each code, in one of two pixels."""
    problem = ConvProblem(
        n=1, k=256, c=1, image=(2,), filter=(1,), dtype=dtype, direction="bwd_bias"
    )
    numpy = problem.data_type.to_numpy()
    gradient = np.zeros(problem.output_shape, numpy)
    codes = np.arange(256, dtype=np.uint8).view(numpy)
    gradient.reshape(2, 256)[0] = codes
    kernel = load(compile(problem, target), None if target == "cpu" else "vgpu")
    np.testing.assert_array_equal(kernel(gradient).reshape(-1), codes.astype(np.float32))
