# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands that are slices: what a problem takes as the larger shape."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends import parse_line
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
            {"input_within": (3, 9, 9, 1, 8), "dynamic_batch": True},
            "input within (3, 9, 9, 1, 8): of a dynamic batch a slice has all images; "
            "give it (2,) in front",
        ),
        (
            {"input_within": 12},
            "input within 12: not a shape; give a size for each axis of its layout",
        ),
        (
            {"input_within": (2, 9, "12", 1, 8)},
            "input within '12': not a size; use an integer from 0 to 2147483647",
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


def test_other_batches_have_other_larger_tensors():
    problem = ConvProblem(**SIZES, input_within=WITHIN, dynamic_batch=True)
    assert problem.with_batch(5).input_within == (5, 9, 12, 1, 8)
    assert problem.called_with(3).input_within == (3, 9, 12, 1, 8)
    crop = ConvProblem(**SIZES, input_within=(4, 9, 9, 1, 8))
    assert crop.with_batch(1).input_within == (4, 9, 9, 1, 8)


def test_of_a_layer():
    """Problems that read one tensor read one slice; the others' tensors are not slices."""
    problem = ConvProblem(**SIZES, input_within=WITHIN, output_within=(2, 9, 9, 1, 20))
    layer = Layer.of(problem, ("d_weight", "d_input", "output", "d_bias"))
    found = [(one.input_within, one.output_within) for one in layer.problems]
    output = problem.output_within
    assert found == [(WITHIN, output), ((), output), (WITHIN, ()), ((), output)]
    weight, data = layer.problems[:2]
    with pytest.raises(UnsupportedProblem) as caught:
        Layer(problems=(weight, replace(data, output_within=())))
    assert str(caught.value) == (
        "layer d_output within (2, 9, 9, 1, 16): of another tensor than (2, 9, 9, 1, 20); "
        "give all problems one"
    )


def test_not_of_several_sizes():
    problem = ConvProblem(**SIZES, input_within=WITHIN)
    with pytest.raises(UnsupportedProblem, match="sizes of slices: sizes are told apart by shapes"):
        Sizes.of(problem)


def test_flags():
    line = "-n 2 -k 16 -c 8 --image 9x9 --filter 3x3 --pad 1 --input-within 2x9x12x1x8"
    several = parse_line(f"{line} --direction bwd_weight,bwd_data,fwd")
    assert [one.problem.input_within for one in several] == [WITHIN, (), WITHIN]
    (into,) = parse_line(f"{line} --direction bwd_data --result-operand")
    assert (into.problem.input_within, into.problem.result_operand) == (WITHIN, True)
    with pytest.raises(UnsupportedProblem, match="set result_operand too"):
        parse_line(f"{line} --direction bwd_data")
