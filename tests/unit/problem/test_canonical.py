"""Other directions as weight gradients: the same sums over the same arrays, by the definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.problem.canonical import canonical, equivalent_wgrad, in_terms, summed_products
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import plain
from tests.problems import tiny_problems

FLOATS = {"dtype": "f32", "weight_dtype": "f32"}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tiny_problems())
def test_a_convolution_is_the_weight_gradient_of_its_roles(problem: ConvProblem) -> None:
    """On the very arrays: axes are renamed, and nothing moves in memory."""
    problem = replace(problem, direction="fwd", **FLOATS)
    image, weight = inputs(problem, "integers", 0)
    same = equivalent_wgrad(problem)
    found = plain(same, image.reshape(same.input_shape), weight.reshape(same.output_shape))
    wanted = plain(problem, image, weight)
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tiny_problems(), st.sampled_from(["fwd", "bwd_weight", "bwd_data"]))
def test_sums_are_long_enough(problem: ConvProblem, direction: str) -> None:
    """No result element sums more products than the schedule is told; zeros may be added."""
    problem = replace(problem, direction=direction, **FLOATS)
    ones = [np.ones_like(one) for one in inputs(problem, "integers", 0)]
    most = int(plain(problem, *ones).max())
    assert most <= summed_products(problem)
    if direction == "fwd" and not any((*problem.pad_low, *problem.pad_high)):
        assert most == summed_products(problem)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tiny_problems())
def test_a_weight_gradient_is_itself(problem: ConvProblem) -> None:
    assert equivalent_wgrad(problem) == problem
    assert canonical(problem) == in_terms(problem)


@pytest.mark.parametrize("direction", ["fwd", "bwd_weight", "bwd_data"])
def test_terms_are_images_more(direction: str) -> None:
    problem = ConvProblem(
        n=4, k=6, c=5, image=(7, 6), filter=(3, 2), dtype="f32", compute="bf16x3",
        direction=direction,
    )  # fmt: skip
    whole, plain_roles = canonical(problem), equivalent_wgrad(problem)
    assert problem.terms is not None
    assert whole.n == problem.terms.count * plain_roles.n
    assert (whole.dtype, whole.weight_dtype) == ("bf16", "f32")
    assert not whole.compute
