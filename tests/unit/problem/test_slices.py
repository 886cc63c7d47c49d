# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands that are slices: what a problem takes as the larger shape."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.layer import Layer
from conv_compiler.problem.sizes import Sizes
from conv_compiler.problem.slices import taken_shapes, whole
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

SIZES = {"n": 2, "k": 16, "c": 8, "image": (9, 9), "filter": (3, 3), "pad_low": 1}
WITHIN = (2, 9, 12, 1, 8)


def test_named_and_read_back():
    problem = ConvProblem(**SIZES, input_within=WITHIN)
    assert problem.name.endswith("input-in-2x9x12x1x8")
    assert ConvProblem.from_json(problem.to_json()) == problem
    assert problem.input_shape == (2, 9, 9, 1, 8)
    assert whole(problem) == ConvProblem(**SIZES)
    assert whole(whole(problem)) is whole(problem)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"input_within": (2, 9, 8, 1, 8)},
            "input within (2, 9, 8, 1, 8): (2, 9, 9, 1, 8) is no slice of it; "
            "give the larger tensor's shape",
        ),
        (
            {"input_within": (2, 9, 9, 8)},
            "input within (2, 9, 9, 8): (2, 9, 9, 1, 8) is no slice of it; "
            "give the larger tensor's shape",
        ),
        (
            {"input_within": (2, 9, 9, 1, 8)},
            "input within (2, 9, 9, 1, 8): the tensor's own shape; leave it out",
        ),
        (
            {"weight_within": (1, 16, 3, 3, 9)},
            "weight within (1, 16, 3, 3, 9): a result is a slice of the caller's memory alone; "
            "set result_operand too",
        ),
        (
            {"direction": "bwd_bias", "input_within": WITHIN},
            "input within (2, 9, 12, 1, 8): bwd_bias has no such tensor; leave it out",
        ),
        (
            {"input_within": WITHIN, "dynamic_batch": True},
            "input within (2, 9, 12, 1, 8): not built for a dynamic batch; leave one out",
        ),
        (
            {"input_within": 12},
            "input within 12: not a shape; give a size for each axis of its layout",
        ),
        (
            {"input_within": (2, 9, "12", 1, 8)},
            "input within '12': not a size; use an integer from 1 to 2147483647",
        ),
    ],
)
def test_refused(given, message):
    with pytest.raises(UnsupportedProblem) as caught:
        ConvProblem(**SIZES, **given)
    assert str(caught.value) == message


def test_a_result_and_its_d():
    """d lies as the result does; a bias is a tensor of its own."""
    problem = ConvProblem(
        **SIZES, direction="bwd_data", input_within=WITHIN, result_operand=True, elementwise="add"
    )
    assert problem.name.endswith("input-in-2x9x12x1x8_into")
    *_, d = taken_shapes(problem)
    assert d == (WITHIN, problem.input_shape)
    *_, bias = taken_shapes(replace(problem, elementwise="bias"))
    assert bias == ((1, 8), (1, 8))
    assert whole(problem) == replace(problem, input_within=())


@pytest.mark.parametrize(
    ("part", "larger", "shape", "room"),
    [
        ((2, 9, 10, 1, 12), (2, 9, 10, 1, 16), (180, 12), [180, 16]),
        ((2, 9, 10, 1, 12), (2, 9, 10, 1, 16), (2, 1, 9, 10, 12), [2, 1, 9, 10, 16]),
        ((2, 9, 10, 2, 12), (2, 9, 13, 2, 12), (18, 10, 24), [18, 13, 24]),
        ((2, 9, 10, 2, 12), (2, 9, 10, 2, 16), (180, 24), None),  # groups and channels lie apart
        ((2, 9, 10, 2, 12), (2, 9, 13, 2, 12), (180, 24), None),  # rows and pixels
        ((4, 6), (4, 8), (3, 8), None),  # axes that share no steps
        ((4, 1), (4, 3), (4,), None),  # steps between elements
    ],
)
def test_rooms_of_results(part, larger, shape, room):
    from conv_compiler.ir.slices import room_of

    assert room_of(part, larger, shape) == room


def test_no_chunks_of_slices():
    problem = ConvProblem(**SIZES, input_within=(2, 9, 2**26, 1, 8))
    with pytest.raises(UnsupportedProblem, match="slices are not built where a tensor has 2 GiB"):
        resolve(problem, find_target("gfx942"))


def test_not_in_modules_of_several():
    problem = ConvProblem(**SIZES, input_within=WITHIN)
    with pytest.raises(UnsupportedProblem, match="layer of slices: not built"):
        Layer(problems=(problem,))
    with pytest.raises(UnsupportedProblem, match="sizes of slices: not built"):
        Sizes.of(problem)
