# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of a kernel's calls, as measured on a device that has a clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Times:
    """The shortest, the median and the longest of `calls` calls, in seconds.

    On a GPU a call lasts from the host's launch until the host knows that it is done.
    """

    least: float
    median: float
    most: float
    calls: int

    @classmethod
    def of_calls(cls, call: Callable[[], object], budget: float, least: int) -> Times:
        """Those of calls one after another, after one that is not timed: at least `least`, and on
        until `budget` seconds are spent."""
        call()
        times: list[float] = []
        while len(times) < least or sum(times) < budget:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return cls.of(times)

    @classmethod
    def of(cls, times: Sequence[float]) -> Times:
        """What a sequence of times in seconds comes to; it has at least one."""
        return cls(
            least=min(times),
            median=statistics.median(times),
            most=max(times),
            calls=len(times),
        )
