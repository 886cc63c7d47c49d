"""Sizes are planned or refused at once: phases were listed one by one, groups tried one by one."""

import itertools
import math
import random

import pytest

from conv_compiler import ConvProblem
from conv_compiler.cli import main
from conv_compiler.errors import InvalidArray, UnsupportedProblem
from conv_compiler.problem import phases
from conv_compiler.problem.batching import chunks_of, divisors
from conv_compiler.problem.phases import Line, Met
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.verification.verify import MOST_RUNS, check_size
from tests.steps import lines_of

# Most take 0.5 million, 720720 groups 1.9 million.
MOST_LINES = 3 * 10**6


def listed(line: Line) -> Met:
    """Every pair of a phase and a tap, as the definition has it."""
    found = set()
    for a, f in itertools.product(range(min(line.stride, line.size)), range(line.filter)):
        reach = a + line.pad - f * line.dilation
        last = -(-line.size // line.stride) - 1
        if reach % line.stride == 0 and -last <= reach // line.stride < line.outs:
            found.add((reach // line.stride, a))
    if not found:
        return Met()
    offsets, met = sorted({one for one, _ in found}), {one for _, one in found}
    return Met(
        phases=len(met),
        first=met.pop() if len(met) == 1 else 0,
        lowest=offsets[0],
        highest=offsets[-1],
        step=math.gcd(*(one - offsets[0] for one in offsets)),
    )


@pytest.mark.parametrize("most_listed", [phases.MOST_LISTED, 3])
def test_phases_are_those_of_the_list(most_listed, monkeypatch):
    monkeypatch.setattr(phases, "MOST_LISTED", most_listed)
    rng = random.Random(1)
    for _ in range(3000):
        line = Line(
            size=rng.randint(1, 12),
            outs=rng.randint(1, 12 if most_listed > 3 else 3),
            filter=rng.randint(1, 9),
            stride=rng.randint(1, 9),
            dilation=rng.randint(1, 9),
            pad=rng.randint(0, 12),
        )
        found = Met.of(line)
        wanted = listed(line)
        if most_listed == 3 and line.size < line.stride and wanted.phases > 1:
            assert found.phases > 1  # of the taps of a pixel two are looked at
            found = wanted if found.phases < wanted.phases else found
        assert found == wanted, line


HUGE = {
    "one phase after another": {
        **{"n": 1, "k": 4, "c": 4, "image": (60000,), "filter": (50000,), "stride": 50000},
        "direction": "bwd_data",
    },
    "a stride beyond the image": {
        **{"n": 1, "k": 4, "c": 4, "image": (3,), "filter": (10**9,), "stride": 5 * 10**8},
        **{"pad_low": 2**30, "pad_high": 2**30, "direction": "bwd_data"},
    },
    "a dilation": {
        **{"n": 1, "k": 4, "c": 4, "image": (2**30,), "filter": (2**12,), "stride": 7},
        **{"dilation": 2**17, "direction": "bwd_data"},
    },
    "prime groups": {
        **{"n": 1, "g": 2**31 - 1, "k": 4, "c": 4, "image": (64,), "filter": (3,)},
        "layout": "GNWC_GKXC_GNWK",
    },
    "many divisors": {
        **{"n": 1, "g": 720720, "k": 8, "c": 720720, "image": (83160, 7), "filter": (3, 3)},
        **{"dtype": "f32", "direction": "bwd_data"},
    },
    "images": {"n": 10**9, "k": 4, "c": 4, "image": (8, 8), "filter": (3, 3)},
    "any batch": {
        **{"n": 10**9, "k": 4, "c": 4, "image": (8, 8), "filter": (3, 3)},
        "dynamic_batch": True,
    },
    "channels": {"n": 2, "k": 2**31 - 1, "c": 4, "image": (8,), "filter": (3,)},
}


@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1100", "sm_80"])
@pytest.mark.parametrize("name", HUGE)
def test_a_size_is_planned_without_a_list(name, target):
    problem, row = ConvProblem(**HUGE[name]), find_target(target)
    assert lines_of(lambda: choose(problem, row)) < MOST_LINES


def test_what_cannot_be_listed_is_refused():
    line = Line(size=3, outs=2**30, filter=2**30, stride=2**20, dilation=1, pad=2**30)
    with pytest.raises(UnsupportedProblem, match="use a stride within the image"):
        Met.of(line)


def test_what_the_roles_have_no_room_for_is_said_of_the_problem():
    problem = ConvProblem(**HUGE["a stride beyond the image"] | {"stride": 10**9})
    with pytest.raises(UnsupportedProblem, match="too large as the weight gradient"):
        choose(problem, find_target("cpu"))


def test_divisors():
    for number in (1, 2, 12, 36, 97, 5040):
        assert divisors(number) == [n for n in range(1, number + 1) if number % n == 0]
    problem = ConvProblem(
        n=1, g=2**31 - 1, k=4, c=4, image=(64,), filter=(3,), layout="GNWC_GKXC_GNWK"
    )
    assert chunks_of(problem).count == problem.g  # a prime


@pytest.mark.parametrize("runs", [0, MOST_RUNS + 1, 10**12, True])
def test_runs_are_bounded(runs):
    problem = ConvProblem(n=1, k=4, c=4, image=(5,), filter=(3,))
    with pytest.raises(InvalidArray, match=f"use 1 to {MOST_RUNS}"):
        check_size(problem, runs)
    check_size(problem, MOST_RUNS)


@pytest.mark.parametrize("more", [["--runs", "1000000000"], ["--batch", "1000000000"]])
def test_verify_refuses_at_once(more, capsys):
    words = ["verify", "-n", "1", "-k", "64", "-c", "64", "--image", "8x8", "--filter", "3x3"]
    found = []
    assert lines_of(lambda: found.append(main([*words, *more]))) < MOST_LINES
    assert found == [2]
    assert capsys.readouterr().err.count("\n") == 1
