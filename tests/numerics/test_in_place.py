"""The memory of d is that of the result: `beta * old + alpha * gradient` in the caller's array."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.inputs import inputs
from tests.problems import problems
from tests.turns import in_turn

PROBLEM = ConvProblem(
    n=4, g=2, k=16, c=12, image=(9, 8), filter=(3, 3), pad_low=1, dtype="f32",
    elementwise="bilinear(0.5,2)", result_operand=True,
)  # fmt: skip
TYPES = (("f32", "f32"), ("bf16", "f32"), ("f16", "f16"), ("i8", "i32"))


def check_in_place(problem: ConvProblem, split_k: int | str) -> None:
    """What is computed over d is what is computed beside it."""
    kernel = load(compile(problem, "cpu", split_k=split_k))
    first, second, d = inputs(problem)
    want = kernel(first, second, d)
    memory = d.copy()
    assert kernel(first, second, memory, out=memory) is memory
    assert np.array_equal(memory, want)


@pytest.mark.parametrize(
    ("direction", "types", "stride", "split_k"),
    in_turn(DIRECTIONS, TYPES, [1, 2], [1, 3]),
)
def test_over_d(direction, types, stride, split_k):
    dtype, weight_dtype = types
    problem = replace(
        PROBLEM,
        direction=direction,
        stride=(stride, stride),
        dtype=dtype,
        weight_dtype=weight_dtype,
    )
    check_in_place(problem, split_k)


@settings(max_examples=3, deadline=None)
@given(problem=problems(), direction=st.sampled_from(list(DIRECTIONS)))
def test_over_d_whatever_the_problem(problem, direction):
    check_in_place(
        replace(problem, direction=direction, elementwise="scale_add(2)", result_operand=True),
        "auto",
    )


def test_micro_batches_add_up():
    """Gradients of parts of a batch, each added to the sum of those before it."""
    whole = replace(PROBLEM, n=12, elementwise="", result_operand=False, weight_dtype="f32")
    image, gradient = inputs(whole)
    kernel = load(compile(replace(PROBLEM, elementwise="add"), "cpu"))
    sums = np.zeros(PROBLEM.result_shape, np.float32)
    for first in range(0, whole.n, PROBLEM.n):
        part = slice(first, first + PROBLEM.n)
        kernel(image[part], gradient[part], sums, out=sums)
    assert np.array_equal(sums, load(compile(whole, "cpu"))(image, gradient))
