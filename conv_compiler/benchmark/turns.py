# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times taken in turns, and what they come to."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Call = Callable[[], Any]
Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Some times in seconds: their median, the least and the most, and their interquartile range
    as a share of the median."""

    seconds: float
    spread: float
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, times: Sequence[float]) -> Timing:
        """What one time or more come to."""
        if len(times) == 1:
            low = median = high = times[0]
        else:
            low, median, high = statistics.quantiles(times, n=4, method="inclusive")
        return cls(
            seconds=median,
            spread=(high - low) / median if median else 0.0,
            least=min(times),
            most=max(times),
            count=len(times),
        )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How often: `rounds` in turns, of `calls` each behind `warm_up` that do not count.

    Each turn begins `pause_seconds` after the one before. Threads of OpenMP spin for several
    milliseconds when their work is done, and would take cores from the next side. A side whose
    first call says that its rounds would take longer than `most_seconds` is called no more.
    """

    rounds: int = 6
    calls: int = 6
    warm_up: int = 3
    pause_seconds: float = 0.02
    most_seconds: float = 60.0

    @property
    def calls_in_all(self) -> int:
        """Calls of a side."""
        return self.rounds * (self.calls + self.warm_up)


class Timed(Protocol):
    """What takes turns: gives the times of one round, and says how many rounds are worth while."""

    @property
    def most_rounds(self) -> int | None:
        """Rounds after which more would say no more; None for as many as the plan has."""

    def times(self, plan: Plan, clock: Clock) -> Sequence[float]:
        """The seconds of a round."""


def times_of(call: Call, plan: Plan, clock: Clock) -> list[float]:
    """The seconds of the calls of a round; the first ones warm caches and threads again."""
    found = []
    for number in range(plan.warm_up + plan.calls):
        start = clock()
        call()
        seconds = clock() - start
        if number >= plan.warm_up:
            found.append(seconds)
    return found


def in_turns(sides: Mapping[str, Timed], plan: Plan, clock: Clock) -> dict[str, Timing]:
    """Time the sides in rounds that take turns: a busy moment meets all of them.

    Every second round goes backwards, so that none is always behind the same other one.
    """
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(plan.rounds):
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        for name in order:
            most = sides[name].most_rounds
            if most is None or number < most:
                time.sleep(plan.pause_seconds)
                found[name] += sides[name].times(plan, clock)
    return {name: Timing.of(times) for name, times in found.items() if times}
