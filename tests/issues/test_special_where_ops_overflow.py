# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`verify --data special` called kernels wrong that are right where an op passes what f32 holds, or
where d is NaN and the largest value may be as well."""

from __future__ import annotations

import numpy as np
import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.special import compare_special
from conv_compiler.verification.verify import verify

SIZES = {"n": 1, "k": 2, "c": 1, "image": (2,), "filter": (1,), "dtype": "f32", "direction": "fwd"}


@pytest.mark.parametrize(("number", "wrong"), [(2.0**126, 2), (2.0**127, 0)])
def test_nan_of_an_op_that_overflowed(number, wrong):
    """-3 * 2^127 is none of f32, and 0 times what it becomes is NaN; of -3 * 2^126 it is 0."""
    problem = ConvProblem(**SIZES, elementwise="scale(-3)>leaky_relu(0)")
    first = np.array([number, 1], np.float32).reshape(problem.input_shape)
    second = np.ones(problem.weight_shape, np.float32)
    got = np.zeros(problem.result_shape, np.float32)
    got[first[..., 0] > 1] = np.nan
    found, _ = compare_special(problem, got, (first, second), (np.ones_like(first), second))
    assert found.wrong == wrong


@pytest.mark.parametrize("seed", [0, 1])
def test_the_largest_beside_a_d_that_is_nan(seed):
    problem = ConvProblem(
        n=1, k=17, c=7, image=(2,), filter=(5,), stride=(2,), pad_low=9, direction="fwd",
        weight_dtype="f32", elementwise="divide_by", input_op="scale(-0.5)", amax=True,
    )  # fmt: skip
    verify(problem, data="special", seed=seed, budget=0.0).require()
