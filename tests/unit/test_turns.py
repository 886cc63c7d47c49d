"""Parameters that take turns: what runs by default has every value."""

from __future__ import annotations

import pytest

from tests.turns import in_turn, parameters, part_of


def default(cases):
    return [case.values for case in cases if not any(mark.name == "slow" for mark in case.marks)]


def test_each_combination_of_the_others_meets_one_value_of_the_last():
    cases = in_turn("ab", [1, 2, 3], [True, False])
    assert len(cases) == 12
    found = default(cases)
    assert len({values[:2] for values in found}) == len(found) == 6
    assert [set(column) for column in zip(*found, strict=True)] == [
        {"a", "b"},
        {1, 2, 3},
        {True, False},
    ]


def test_marks_of_a_value_stay():
    skipped = pytest.param("b", marks=pytest.mark.skip)
    marks = [{mark.name for mark in case.marks} for case in in_turn(["a", skipped], [1, 2])]
    assert marks == [set(), {"slow"}, {"skip", "slow"}, {"skip"}]


def test_a_value_that_no_run_takes_is_an_error():
    with pytest.raises(AssertionError, match="a value that no run takes"):
        in_turn("ab", [1, 2, 3])


@pytest.mark.parametrize("part", [1, 2, 3, 7])
def test_a_part_of_the_cases_has_every_shared_parameter(part):
    cases = {
        f"test[{a}-{b}]": parameters({"a": a, "b": b, "own": (a, b)})
        for a in "xyz"
        for b in range(8)
    }
    kept = part_of(cases, part)
    assert kept == part_of(dict(reversed(cases.items())), part)
    found = {one for name in kept for one in cases[name]}
    assert {("a", repr(a)) for a in "xyz"} | {("b", repr(b)) for b in range(8)} <= found
    assert len(cases) / part <= len(kept) <= max(len(cases) / part, 8 + 3) + 1


def test_a_part_of_one_case_is_that_case():
    assert part_of({"x": frozenset()}, 3) == {"x"}
