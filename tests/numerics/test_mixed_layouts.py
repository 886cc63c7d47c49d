"""Tensors whose orders are not those of one framework, in every direction."""

from __future__ import annotations

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.problem.layouts import MIXED
from tests.checks import check
from tests.turns import in_turn

PROBLEM = {
    **{"n": 3, "g": 2, "k": 20, "c": 12, "image": (7, 6), "filter": (3, 2)},
    **{"stride": (2, 1), "pad_low": (1, 0), "pad_high": (1, 1)},
}


@pytest.mark.parametrize(
    ("row", "direction", "target"),
    in_turn(MIXED, DIRECTIONS, ["cpu", "gfx942", "gfx1201"]),
    ids=lambda value: value if isinstance(value, str) else value.spell(2),
)
def test_exact(row, direction, target):
    problem = ConvProblem(layout=row.spell(2), direction=direction, **PROBLEM)
    assert check(problem, target).tolerance.exact
