"""A register tile of 48 lanes was twenty times slower: IREE 3.13 computed it element by element.

Chosen for channels of 384 and the like; found beside PyTorch, on a layer of MobileNetV2.
"""

from __future__ import annotations

import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target

PROBLEM = ConvProblem(n=2, k=64, c=384, image=(14, 14), filter=(1, 1), dtype="f32")


@pytest.mark.parametrize("lanes", ["c", "k"])
def test_lanes_are_a_power_of_two(lanes):
    sizes = {"c": {}, "k": {"k": 384, "c": 64}}[lanes]
    problem = ConvProblem.from_json(PROBLEM.to_json() | sizes)
    for one in choose(problem, find_target("cpu"), "cpu_lin"):
        assert one.tile[-1].bit_count() == 1
    assert compile(problem, "cpu", "cpu_lin").strategy.name == "cpu_lin"
