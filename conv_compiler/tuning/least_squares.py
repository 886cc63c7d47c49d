# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the constants of a linear cost model to what was observed, starting from today's table.

Constants that no observation depends on keep their value. So do directions in which the list of
problems says nothing: of all solutions the one nearest to the table is taken. None is negative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

# Directions with a singular value below this part of the largest are left as the table has them.
SMALLEST_SHARE = 0.02

Costs = TypeVar("Costs")


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Fitted values by constant, observations, and the root mean square of relative errors."""

    table: Mapping[str, float]
    fitted: Mapping[str, float]
    observations: int
    rank: int
    table_error: float
    fitted_error: float

    @property
    def text(self) -> str:
        """Table value beside fitted value, and the residuals."""
        rows = [
            f"{name:40}{value:10.3g}{self.fitted[name]:10.3g}" for name, value in self.table.items()
        ]
        seen = f"{self.observations} observations, {self.rank} of {len(rows)} directions seen"
        table, fitted = f"{self.table_error:.1%}", f"{self.fitted_error:.1%}"
        error = f"relative error (rms): table {table}, fitted {fitted}"
        return "\n".join([f"{'constant':40}{'table':>10}{'fitted':>10}", *rows, seen, error])


def slopes(costs: Costs, names: Sequence[str], model: Callable[[Costs], float]) -> list[float]:
    """What the model grows by when each constant grows by one: exact, for it is linear."""
    before = model(costs)
    return [
        model(replace(costs, **{name: getattr(costs, name) + 1})) - before  # type: ignore[type-var]
        for name in names
    ]


def fit(
    table: Mapping[str, float],
    rows: Sequence[Sequence[float]],
    predicted: Sequence[float],
    observed: Sequence[float],
    pull: float = 0.0,
) -> Fit:
    """Constants that bring the predictions nearest to what was observed, relative to that.

    With `pull` they stay near the table (ridge regression): that a constant is changed by its own
    size weighs as much as that one prediction is off by that share of what was observed.
    """
    seen = np.asarray(observed, float)
    scale = np.array([abs(value) or 1.0 for value in table.values()])
    matrix = np.asarray(rows, float) * scale / seen[:, None]
    missing = 1 - np.asarray(predicted, float) / seen
    values = np.array(list(table.values()))
    held = pull * np.eye(len(values))
    free, change = np.ones(len(values), bool), np.zeros(len(values))
    while True:
        left = missing - matrix[:, ~free] @ change[~free]
        rows_ = np.vstack([matrix[:, free], held[:, free]])
        wanted = np.concatenate([left, np.zeros(len(values))])
        change[free], _, rank, _ = np.linalg.lstsq(rows_, wanted, rcond=SMALLEST_SHARE)
        negative = free & (values + change * scale < 0)
        if not negative.any():
            break
        change[negative] = -values[negative] / scale[negative]  # 0 is the least there is
        free &= ~negative
    values = values + change * scale
    return Fit(
        table=dict(table),
        fitted=dict(zip(table, map(float, values), strict=True)),
        observations=len(seen),
        rank=int(rank),
        table_error=float(np.sqrt(np.mean(missing**2))),
        fitted_error=float(np.sqrt(np.mean((missing - matrix @ change) ** 2))),
    )
