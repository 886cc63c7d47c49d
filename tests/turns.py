"""Cases of which every run takes a part: what is left out is slow."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

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


def parameters(values: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """The parameters of a case by name and text, which equal values share."""
    return frozenset((name, repr(value)) for name, value in values.items())


def part_of(cases: Mapping[str, frozenset[tuple[str, str]]], part: int) -> set[str]:
    """Names of about one case in `part`, the same in every run, and of as few as have every
    parameter that several cases share.

    Of cases that have as many parameters which no other has yet, the checksum draws one.
    """
    times = Counter(itertools.chain.from_iterable(cases.values()))
    missing = {one for one, count in times.items() if count > 1}
    drawn = sorted(cases, key=lambda name: crc32(name.encode()))
    kept = set[str]()
    while missing:
        best = max(drawn, key=lambda name: len(missing & cases[name]))
        missing -= cases[best]
        kept.add(best)
    for name in drawn:
        if len(kept) * part >= len(cases):
            break
        kept.add(name)
    return kept
