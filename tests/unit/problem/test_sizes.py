# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of one convolution: what they may differ in, and what tells them apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.sizes import Sizes, called_shapes

PROBLEM = ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)


def test_every_image_with_every_batch():
    sizes = Sizes.of(PROBLEM, [(9, 9), (14, 7)], [1, 4])
    assert sizes.functions == ("n1_9x9", "n4_9x9", "n1_14x7", "n4_14x7")
    assert sizes.telling == tuple((operand, axis) for operand in (0, 1) for axis in (0, 1, 2))
    assert Sizes.of(PROBLEM).problems == (PROBLEM,)
    assert Sizes.of(PROBLEM).telling == ()


def test_pads_may_follow_the_image():
    strided = replace(PROBLEM, stride=(2, 2), pad_low="same", pad_high="same")
    other = replace(strided, image=(14, 14), pad_low="same", pad_high="same")
    assert other.pad_low != strided.pad_low
    assert len(Sizes(problems=(strided, other)).problems) == 2


@pytest.mark.parametrize(
    ("problems", "message"),
    [
        ((), "sizes: of no problem; give one for each size"),
        ((PROBLEM, replace(PROBLEM, k=8)), "sizes k 8: another than 16; compile them apart"),
        (
            (PROBLEM, PROBLEM),
            "sizes 9x9 in batches of 2: operands of the same shapes as of 9x9 in batches of 2; "
            "leave one out, or compile it apart",
        ),
    ],
)
def test_what_is_no_set_of_sizes(problems, message):
    with pytest.raises(UnsupportedProblem) as caught:
        Sizes(problems=problems)
    assert str(caught.value) == message


def test_images_of_one_gradient_are_not_told_apart():
    """With a stride two images have outputs of one size; the operands of a data gradient do not say
    which image it is of."""
    strided = replace(PROBLEM, stride=(2, 2), direction="bwd_data")
    with pytest.raises(UnsupportedProblem, match="operands of the same shapes as of 10x10"):
        Sizes.of(strided, [(9, 9), (10, 10)])
    Sizes.of(replace(strided, direction="bwd_weight"), [(9, 9), (10, 10)])


def test_dynamic_batches_differ_in_images_alone():
    dynamic = replace(PROBLEM, dynamic_batch=True)
    with pytest.raises(UnsupportedProblem, match="operands of the same shapes"):
        Sizes.of(dynamic, batches=[1, 4])
    found = Sizes(problems=(dynamic, replace(dynamic, n=4, image=(7, 7))))
    assert found.functions == ("nany2_9x9", "nany4_7x7")
    assert (0, 0) not in found.telling


@given(
    st.lists(st.tuples(st.integers(3, 6), st.integers(3, 6)), min_size=1, max_size=5, unique=True),
    st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True),
    st.sampled_from(["bwd_weight", "bwd_data", "fwd"]),
)
def test_a_call_is_of_one_size_alone(images, batches, direction):
    sizes = Sizes.of(replace(PROBLEM, direction=direction), images, batches)
    found = {
        tuple(called_shapes(one)[operand][axis] for operand, axis in sizes.telling)
        for one in sizes.problems
    }
    assert len(found) == len(sizes.problems)
