"""A main loop that no pass put in order was handed out without a word."""

from __future__ import annotations

import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import NotInterleaved
from conv_compiler.ir.attributes import LAST_PIXEL, ORDER, ORDERED
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage.cache import Cache
from conv_compiler.strategies.gpu import implicit_gemm_schedule
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import find_target

PROBLEM = ConvProblem(n=32, k=64, c=64, image=(9, 9), filter=(3, 3), pad_low=(1, 1))
WANTED, PARTS = StrategyRequest(name="implicit_gemm", tile=(64, 64, 32)), 5
WHY = "the operations of its main loop are not in order: an iteration has no reads, no writes"


@pytest.fixture
def other_loops(monkeypatch):
    """The first kernels, as many as told, are pipelined otherwise than their strategy says."""
    read, left = implicit_gemm_schedule.read_pipeline, []

    def other(name, conditions, *, stages, **numbers):
        return read(name, conditions, stages=left.pop() if left else stages, **numbers)

    monkeypatch.setattr(implicit_gemm_schedule, "read_pipeline", other)
    return lambda count: left.extend([2] * count)


def test_an_artifact_is_proved(tmp_path):
    found = compile(PROBLEM, "gfx942", WANTED, PARTS, cache=Cache(tmp_path))
    assert found.strategy.tiling.stages == 3
    assert found.main_kernel.marks == {ORDER: ORDERED, LAST_PIXEL: "kept"}
    assert found.rejected == ()


def test_another_loop_is_rejected(tmp_path, other_loops):
    other_loops(1)
    found = compile(PROBLEM, "gfx942", WANTED, PARTS, cache=Cache(tmp_path))
    (why,) = found.rejected
    assert WHY in why
    assert found.strategy == choose(PROBLEM, find_target("gfx942"), WANTED, PARTS)[1]


def test_another_loop_of_a_whole_strategy_is_refused(tmp_path, other_loops):
    other_loops(1)
    whole = choose(PROBLEM, find_target("gfx942"), WANTED, PARTS)[0]
    with pytest.raises(NotInterleaved, match=WHY):
        compile(PROBLEM, "gfx942", whole, PARTS, cache=Cache(tmp_path))
