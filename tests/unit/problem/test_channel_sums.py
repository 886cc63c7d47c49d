"""How levels cut the sums of a bias's gradient: every element is summed once, in each level."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conv_compiler.problem.channel_sums import (
    Axis,
    Cut,
    axes_of_sums,
    cuts_of,
    joined,
    kept_shape,
    level_loops,
    levels_of,
    summed_of,
)
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.layouts import LAYOUTS
from conv_compiler.strategies.sum_levels import MOST_LEVELS, levels
from conv_compiler.targets import find_target


def _axes(text):
    """`3k 4s` as axes: 3 kept, 4 summed elements."""
    return [Axis(size=int(word[:-1]), kept=word[-1] == "k") for word in text.split()]


@pytest.mark.parametrize(
    ("axes", "found"),
    [
        ("2s 3s 5k", "6s 5k"),
        ("2s 1k 3s", "6s 1k"),
        ("1s 1s 4k", "4k"),
        ("2k 3s 1s 4k", "2k 3s 4k"),
        ("1s", "1k"),
    ],
)
def test_neighbours_are_one_axis(axes, found):
    assert joined(_axes(axes)) == tuple(_axes(found))


def test_axes_of_layouts():
    sizes = {"n": 2, "g": 3, "k": 4, "c": 1, "image": (5, 6), "filter": (1, 1)}
    found = {
        row.output: axes_of_sums(ConvProblem(direction="bwd_bias", layout=row.spell(2), **sizes))
        for row in LAYOUTS
    }
    assert found["N*GK"] == found["N*K"] == tuple(_axes("60s 12k"))
    assert found["NGK*"] == found["NK*"] == tuple(_axes("2s 12k 30s"))
    assert found["GN*K"] == tuple(_axes("3k 60s 4k"))


def test_a_level():
    level = level_loops(_axes("6s 5k 12s"), [Cut(parts=2, inner=1), Cut(parts=1, inner=4)])
    assert level.loops == tuple(_axes("2k 3s 5k 3s 4k"))
    assert level.result == tuple(_axes("2s 5k 4s"))
    with pytest.raises(ValueError, match="do not divide"):
        level_loops(_axes("6s 5k"), [Cut(parts=4, inner=1)])


@given(
    n=st.integers(1, 40),
    g=st.integers(1, 4),
    k=st.integers(1, 80),
    image=st.lists(st.integers(1, 120), min_size=1, max_size=2).map(tuple),
    row=st.sampled_from(LAYOUTS),
    target=st.sampled_from(["cpu", "cpu-x86-64-v4", "gfx942", "gfx1100", "sm_90a"]),
)
def test_levels_end_in_the_channels(n, g, k, image, row, target):
    ndim = len(image)
    problem = ConvProblem(
        **{"n": n, "g": g, "k": k, "c": 1, "image": image, "filter": (1,) * ndim},
        direction="bwd_bias",
        layout=row.spell(ndim),
    )
    axes = axes_of_sums(problem)
    found = levels(problem, find_target(target))
    assert len(found) <= MOST_LEVELS
    assert bool(found) == bool(summed_of(axes))
    for level, _ in levels_of(axes, cuts_of(found)):
        assert math.prod(level.parallel) * math.prod(level.summed) == math.prod(
            axis.size for axis in axes
        )
        axes = level.result
    if found:
        assert kept_shape(axes) == kept_shape(joined(axes))
        assert not summed_of(axes)
        assert math.prod(kept_shape(axes)) == g * k
