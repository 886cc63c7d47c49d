"""The largest absolute value beside a result: of which numbers, and where there is none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends import parse_line
from conv_compiler.problem.amax import in_front
from conv_compiler.problem.canonical import canonical
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.layer import Layer

PROBLEM = ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), direction="fwd", amax=True)


@pytest.mark.parametrize(
    ("op", "before"),
    [
        ("", ""),
        ("scale_by", ""),
        ("scale(2)>relu>divide_by", "scale(2)>relu"),
        ("scale_by>relu", "scale_by>relu"),
        ("bias:f32>relu", "bias:f32>relu"),
    ],
)
def test_the_numbers_are_in_front_of_a_last_factor(op, before):
    problem = replace(PROBLEM, elementwise=op)
    inner = in_front(problem)
    assert (inner.elementwise, inner.weight_dtype, inner.amax) == (before, "f32", False)
    assert in_front(inner) is inner
    assert canonical(problem) == canonical(inner)
    assert problem.name == replace(problem, amax=False).name + "_amax"
    assert ConvProblem.from_json(json.loads(json.dumps(problem.to_json()))) == problem


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"direction": "bwd_bias"}, "amax of bwd_bias: it multiplies nothing; leave one out"),
        ({"dtype": "i8", "weight_dtype": ""}, "amax of i8: sums of integers are no floats"),
        ({"n": 0}, "amax of a batch of 0: there is no number"),
        ({"dynamic_batch": True}, "amax of a dynamic batch: not built"),
        ({"elementwise": "add"}, "amax of add: d is of the type of the sums then, not f16"),
        ({"amax": 1}, "amax 1: not a truth value"),
    ],
)
def test_where_there_is_none(fields, message):
    with pytest.raises(UnsupportedProblem, match=message):
        replace(PROBLEM, **fields)


def test_of_a_layer():
    """Each behind its own result; a result that is asked for by name alone has none."""
    layer = Layer.of(PROBLEM, ("d_weight", "output", "d_bias"))
    assert layer.results == ("d_weight", "output", "amax", "d_bias")
    assert layer.functions == ("d_weight", "output", "d_bias")
    assert [layer.results[layer.results_of(i)] for i in range(3)] == [
        ("d_weight",),
        ("output", "amax"),
        ("d_bias",),
    ]
    several = Layer(problems=(PROBLEM, replace(PROBLEM, direction="bwd_data")))
    assert several.results == ("output", "amax of output", "d_input", "amax of d_input")


def test_a_flag():
    (request,) = parse_line("-n 2 -k 16 -c 8 --image 9x9 --filter 3x3 --direction fwd --amax")
    assert request.problem == PROBLEM
