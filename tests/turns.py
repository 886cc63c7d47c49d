"""Products of parameters of which every run takes a part: what is left out is slow."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest


def in_turn(*axes: Iterable[Any]) -> list[Any]:
    """Parameters of a test: all combinations, of which one value of the last axis runs by default.

    That value changes with each combination of the others, so that every value of every axis is in
    every run. A value may be a `pytest.param` with marks of its own.
    """
    rows = [
        [one if hasattr(one, "marks") else pytest.param(one) for one in values] for values in axes
    ]
    cases, ran = [], set()
    for places in itertools.product(*(range(len(row)) for row in rows)):
        chosen = [row[place] for row, place in zip(rows, places, strict=True)]
        waits = sum(places) % len(rows[-1]) > 0
        ran |= set() if waits else set(enumerate(places))
        marks = [mark for one in chosen for mark in one.marks] + [pytest.mark.slow] * waits
        cases.append(pytest.param(*(value for one in chosen for value in one.values), marks=marks))
    assert len(ran) == sum(map(len, rows)), "a value that no run takes: the last axis is too long"
    return cases
