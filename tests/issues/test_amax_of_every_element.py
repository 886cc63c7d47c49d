# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Of reductions over several axes IREE 3.13 leaves out elements on GPUs (`build/amax.py`)."""

from __future__ import annotations

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load


@pytest.mark.parametrize(
    ("target", "layout", "sizes"),
    [
        # The outer axes 8 x 4 x 6, and the inner ones 32 x 6.
        ("gfx942", "NHWC", {"n": 8, "k": 64, "image": (4, 6)}),
        ("gfx1100", "NCHW", {"n": 8, "k": 24, "image": (32, 6)}),
        pytest.param("gfx942", "NCHW", {"n": 8, "k": 24, "image": (32, 6)}, marks=pytest.mark.slow),
        pytest.param("gfx1100", "NHWC", {"n": 8, "k": 64, "image": (4, 6)}, marks=pytest.mark.slow),
        pytest.param("cpu", "NHWC", {"n": 8, "k": 64, "image": (4, 6)}, marks=pytest.mark.slow),
    ],
)
def test_the_largest_is_found_wherever_it_is(target, layout, sizes):
    problem = ConvProblem(
        **sizes,
        c=4,
        filter=(1, 1),
        direction="fwd",
        dtype="f32",
        elementwise="add",
        layout=layout,
        amax=True,
    )
    kernel = load(compile(problem, target))
    operands = [np.zeros(shape, np.float32) for shape in problem.operand_shapes]
    d = np.ones(problem.d_shape, np.float32)
    for place in range(0, d.size, d.size // 31):
        planted = d.copy()
        planted.reshape(-1)[place] = -5
        assert kernel(*operands, planted)[1] == 5
