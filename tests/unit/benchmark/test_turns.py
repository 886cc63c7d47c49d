"""Times in turns, by a clock that is none, and what becomes of sides that are wrong or slow."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from conv_compiler.benchmark.measure import OURS, Found, Result, means, measure, side_row
from conv_compiler.benchmark.sides import CallSide, Measured, PeerRefused, PeerWrong, ProgramSide
from conv_compiler.benchmark.turns import Plan, Timing, in_turns
from conv_compiler.errors import CompileFailed
from conv_compiler.problem.conv_problem import ConvProblem

PROBLEM = ConvProblem(n=1, k=4, c=4, image=(5, 5), filter=(3, 3))
PLAN = Plan(rounds=3, calls=2, warm_up=1)


class Clock:
    """Moves on where a side says so."""

    def __init__(self):
        self.now, self.order = 0.0, []

    def __call__(self):
        return self.now

    def side(self, name, *seconds, result=0.0):
        """A side whose calls take these seconds, over and over."""
        each = itertools.cycle(seconds)

        def call():
            self.order.append(name)
            self.now += next(each)
            return np.float64(result)

        return CallSide(detail=name, call=call, to_numpy=np.asarray)


def check(got):
    return "exact" if got == 0 else "WRONG: 1 of 1 elements"


def test_a_timing():
    found = Timing.of([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (found.seconds, found.least, found.most, found.count) == (3.0, 1.0, 5.0, 5)
    assert found.spread == pytest.approx((4 - 2) / 3)
    one = Timing.of([2.0])
    assert (one.seconds, one.spread, one.least, one.most, one.count) == (2.0, 0.0, 2.0, 2.0, 1)


def test_sides_take_turns_and_every_second_round_goes_backwards():
    clock = Clock()
    sides = {"a": clock.side("a", 2.0), "b": clock.side("b", 1.0)}
    found = in_turns(sides, PLAN, clock)
    assert clock.order == list("aaabbb" + "bbbaaa" + "aaabbb")
    assert [(one.seconds, one.count) for one in found.values()] == [(2.0, 6), (1.0, 6)]


def test_warm_up_does_not_count():
    clock = Clock()
    found = in_turns({"a": clock.side("a", 100.0, 1.0, 3.0)}, PLAN, clock)
    assert (found["a"].least, found["a"].most) == (1.0, 3.0)


def test_a_program_is_run_no_more_often_than_it_says():
    runs = iter([3e-3, 1e-3, 2e-3])
    side = ProgramSide(run=lambda: Measured(detail="k", seconds=next(runs)), most_rounds=2)
    assert side.result() is None
    found = in_turns({"p": side}, PLAN, lambda: 0.0)
    assert (found["p"].least, found["p"].most, found["p"].count) == (1e-3, 2e-3, 2)


def test_what_is_wrong_has_no_time():
    clock = Clock()
    makers = {
        OURS: lambda: clock.side(OURS, 1.0),
        "wrong": lambda: clock.side("wrong", 0.1, result=7),
        "right": lambda: clock.side("right", 3.0),
    }
    found = measure(makers, check, PLAN, clock)
    assert found["wrong"].is_wrong
    assert found["wrong"].timing is None
    assert clock.order.count("wrong") == 1  # to see that it is
    result = Result(name="p", problem=PROBLEM, target="cpu", device="cpu", sides=found)
    assert result.ratio("wrong") is None
    assert result.ratio("right") == 3.0
    row = side_row(result, "wrong")
    assert (row["seconds"], row["tflops"], row["ratio"], row["passed"]) == (None, None, None, False)


def test_ours_wrong_leaves_no_ratio():
    clock = Clock()
    makers = {
        OURS: lambda: clock.side(OURS, 1.0, result=1),
        "peer": lambda: clock.side("peer", 3.0),
    }
    found = measure(makers, check, PLAN, clock)
    result = Result(name="p", problem=PROBLEM, target="cpu", device="cpu", sides=found)
    assert found[OURS].is_wrong
    assert result.ratio("peer") is None
    assert side_row(result, OURS)["ratio"] is None
    assert means([result]) == []


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (PeerRefused("no kernel"), "REFUSED: no kernel"),
        (RuntimeError("not implemented for 'Half'\nmore"), "REFUSED: not implemented for 'Half'"),
        (CompileFailed("iree-compile: no"), "REFUSED: iree-compile: no"),
        (PeerWrong("x FAILED"), "WRONG: x FAILED"),
    ],
)
def test_a_peer_that_breaks_down_says_why(error, verdict):
    clock = Clock()

    def broken():
        raise error

    found = measure({OURS: lambda: clock.side(OURS, 1.0), "peer": broken}, check, PLAN, clock)
    assert found["peer"].verdict == verdict
    assert found["peer"].timing is None
    assert found[OURS].timing.seconds == 1.0
    if not isinstance(error, PeerWrong):
        with pytest.raises(type(error)):
            measure({OURS: broken}, check, PLAN, clock)


def test_a_side_that_would_take_over_a_minute():
    clock = Clock()
    makers = {OURS: lambda: clock.side(OURS, 1.0), "slow": lambda: clock.side("slow", 10.0)}
    found = measure(makers, check, PLAN, clock)
    assert found["slow"].verdict == "TOO SLOW: 90 s for all its calls"
    assert clock.order.count("slow") == 2


def test_speeds_are_those_of_the_median():
    clock = Clock()
    found = measure({OURS: lambda: clock.side(OURS, 1e-3)}, check, PLAN, clock)
    result = Result(name="p", problem=PROBLEM, target="cpu", device="cpu", sides=found)
    row = side_row(result, OURS)
    assert row["tflops"] == pytest.approx(PROBLEM.flops / 1e9)
    assert row["gb_per_s"] == pytest.approx(PROBLEM.bytes / 1e6)
    assert (row["ratio"], row["times"], row["times_of"]) == (1.0, 6, "calls")


def test_means_are_geometric_and_name_the_least():
    def result(name, **seconds):
        sides = {
            side: Found(verdict="exact", timing=Timing.of([time]) if time else None)
            for side, time in seconds.items()
        }
        return Result(name=name, problem=PROBLEM, target="cpu", device="cpu", sides=sides)

    rows = [
        result("a", ours=1.0, torch=4.0, iree=2.0),
        result("b", ours=4.0, torch=1.0),
        result("c", ours=1.0, torch=None, iree=8.0),
    ]
    torch, iree = means(rows)
    assert (torch.peer, torch.problems, torch.least, torch.least_name) == ("torch", 2, 0.25, "b")
    assert torch.geometric_mean == pytest.approx(1.0)
    assert iree.geometric_mean == pytest.approx(4.0)
    assert iree.text == "iree / ours: 2 problems, geometric mean 4.00, least 2.00 (a)"


def test_a_turn_waits_until_threads_of_the_other_side_spin_no_longer(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(
        "conv_compiler.benchmark.turns.time.sleep", lambda seconds: clock.order.append(seconds)
    )
    sides = {"a": clock.side("a", 2.0), "b": clock.side("b", 1.0)}
    in_turns(sides, Plan(rounds=1, calls=1, warm_up=0, pause_seconds=0.5), clock)
    assert clock.order == [0.5, "a", 0.5, "b"]
