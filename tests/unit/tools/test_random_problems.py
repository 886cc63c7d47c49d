"""Random problems by hand: what is drawn, by which strategies, and what is told."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from conv_compiler.errors import CompileFailed
from conv_compiler.problem.directions import DIRECTIONS

TOOLS = Path(__file__).parents[3] / "tools"


@pytest.fixture(scope="module")
def tool():
    with pytest.MonkeyPatch.context() as patch:
        spec = importlib.util.spec_from_file_location(
            "random_problems", TOOLS / "random_problems.py"
        )
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "random_problems", module)
        patch.setattr(sys, "path", list(sys.path))
        spec.loader.exec_module(module)
        yield module


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_problems_are_of_their_direction_and_have_ops_where_asked_for(tool, direction):
    ops = set()
    for number in range(20):
        plain, full = (
            tool.Task("gfx942", direction, number, tool.Ways(ops=with_ops)).draw().problem
            for with_ops in (False, True)
        )
        assert plain.direction == full.direction == direction
        assert not any((plain.elementwise, plain.input_op, plain.weight_op, plain.output_op))
        ops |= {full.elementwise, full.input_op, full.weight_op, full.output_op}
    assert len(ops) > 3


def test_the_chosen_strategy_comes_first_and_another_one_second(tool):
    seconds = set()
    for number in range(12):
        first, *others = tool.names(tool.Task("gfx942", "fwd", number).draw(), "gfx942", number)
        assert len(others) <= 1
        assert first not in others
        seconds |= set(others)
    assert len(seconds) > 1


def test_a_problem_runs_exactly(tool):
    found = tool.run(tool.Task("gfx1100", "bwd_data", 3))
    assert [one.kind for one in found] == ["exact", "exact"]
    row = {"chip": "gfx1100", "direction": "bwd_data", "problems": 1, "kernels": 2}
    assert tool.summary(found) == [row | {"exact": 2, "rounded": 0, "wrong": 0, "failed": 0}]


def test_an_error_is_an_outcome(tool, monkeypatch):
    def fails(*_, **__):
        raise CompileFailed("iree-compile: no")

    monkeypatch.setattr(tool, "verify", fails)
    (found,) = tool.run(tool.Task("gfx942", "fwd", 0, tool.Ways(chosen=True)))
    assert found.kind == "failed"
    assert found.text.endswith("iree-compile: no")
