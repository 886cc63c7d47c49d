# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search by which constants are fitted that enter a formula in any way: one at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

# A round that makes the error smaller by less is the last.
LEAST_GAIN = 1e-5


def descended(
    table: Any,
    names: Sequence[str],
    factors: Sequence[float],
    rounds: int,
    error: Callable[[Any], float],
) -> Any:
    """A table of constants with the named ones changed by some factors as long as that makes its
    error smaller, in so many rounds at most."""
    best, least = table, error(table)
    for _ in range(rounds):
        before = least
        for name in names:
            for factor in factors:
                tried = replace(best, **{name: getattr(best, name) * factor})
                if (now := error(tried)) < least:
                    best, least = tried, now
        if before - least < LEAST_GAIN:
            break
    return best
