"""Problems as text: equal problems have equal names and others have not; JSON gives them back."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem
from tests.problems import of_any_kind


@settings(max_examples=200, deadline=None, derandomize=True)
@given(of_any_kind())
def test_json_gives_the_problem_back(drawn):
    problem = drawn[0]
    assert ConvProblem.from_json(problem.to_json()) == problem


@settings(max_examples=200, deadline=None, derandomize=True)
@given(of_any_kind())
def test_a_name_is_a_file_name(drawn):
    assert re.fullmatch(r"[\w.\-+]+", drawn[0].name)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(of_any_kind(), st.data())
def test_another_size_is_another_name(drawn, data):
    """Whatever field is changed: a kernel's files are found by the name."""
    problem = drawn[0]
    name = data.draw(st.sampled_from(["n", "g", "k", "c", "pad_high", "dilation", "image"]))
    value = getattr(problem, name)
    other = value + 1 if isinstance(value, int) else (value[0] + 1, *value[1:])
    try:
        changed = replace(problem, **{name: other})
    except UnsupportedProblem:
        return
    assert changed.name != problem.name


def test_every_field_is_in_the_json():
    problem = ConvProblem(n=1, k=2, c=3, image=(4,), filter=(1,))
    assert set(problem.to_json()) == {field.name for field in fields(ConvProblem)}


@pytest.mark.parametrize("missing", ["n", "k", "c", "image", "filter"])
def test_a_size_that_is_left_out_is_named(missing):
    whole = {"n": 1, "k": 2, "c": 3, "image": [4], "filter": [1]}
    del whole[missing]
    with pytest.raises(UnsupportedProblem, match=f"problem: {missing} is missing"):
        ConvProblem.from_json(whole)
