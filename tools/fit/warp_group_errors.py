# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit constants of one table of wave groups, and say how far predictions are off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from descent import descended


def fit_table(name: str, fitted: Sequence[str], rows: list[Any], by: str) -> None:
    """Print the constants of a table beside fitted ones, and the errors of both."""
    from warp_groups import CHIP, FACTORS, PROBLEMS, ROUNDS, key_of, strategies

    from conv_compiler.targets import find_target

    target, directions = find_target(CHIP), {row.direction for row in rows}
    tilings = {
        key_of(layer, direction, one): one.tiling
        for layer, direction in PROBLEMS
        if direction in directions
        for one in strategies(layer, direction, target, by)
    }
    errors = Errors(name, target, [row for row in rows if row.key in tilings], tilings)
    module = module_with(name, next(iter(directions)))
    table = getattr(module, name)
    layers = {row.layer for row in errors.rows}
    held = {layer for layer in layers if layer % 3 == 2}
    seen = [row for row in errors.rows if row.layer not in held]
    unseen = [row for row in errors.rows if row.layer in held]
    best = descended(table, fitted, FACTORS, ROUNDS, lambda tried: errors.apart(tried, seen))
    print(f"{name}: {len(seen)} kernels of {len(layers - held)} layers, {len(unseen)} held out")
    for one in fitted:
        print(f"    {one:26} {getattr(table, one):10.4g} {getattr(best, one):10.4g}")
    for what, values in (("table", table), ("fitted", best)):
        for which, some in (("", seen), ("held out, ", unseen)):
            print(
                f"{what}: {which}error {errors.together(values, some):.3f} (rms of logarithms), "
                f"chosen kernels slower than the fastest by {errors.regret(values, some):.1%}, "
                f"mean error {errors.mean(values, some):.1%}, rank correlation of the fastest "
                f"{errors.order(values, some):.3f}"
            )
    setattr(module, name, table)


def module_with(name: str, direction: str) -> Any:
    """The module whose costs read a table of that name."""
    from warp_groups import module_of

    from conv_compiler.strategies.gpu import stationary_weight

    return stationary_weight if name == "STATIONARY" else module_of(direction)[1]


class Errors:
    """How far predictions by a table are off, for some rows of times."""

    def __init__(self, name: str, target: Any, rows: list[Any], tilings: dict[Any, Any]) -> None:
        self.name, self.target, self.rows, self.tilings = name, target, rows, tilings

    def _cost(self, values: Any, row: Any) -> tuple[Any, Any]:
        """The module of a row's costs, with these values, and its problem."""
        from warp_group_layers import problem_of
        from warp_groups import module_of

        _, cost = module_of(row.direction)
        setattr(module_with(self.name, row.direction), self.name, values)
        return cost, problem_of(row.layer, row.direction)

    def predicted(self, values: Any, row: Any) -> float:
        """Microseconds of all kernels."""
        cost, problem = self._cost(values, row)
        return float(1e6 * cost.predict(problem, self.target, self.tilings[row.key], row.split_k))

    def apart(self, values: Any, some: list[Any]) -> float:
        """The error of products and sums by themselves, so that neither stands in for the other."""
        logs = []
        for row in some:
            cost, problem = self._cost(values, row)
            tiling = self.tilings[row.key]
            kernel = cost.kernel_seconds(problem, self.target, tiling, row.split_k)
            logs.append(math.log(1e6 * kernel / row.kernel))
            if row.split_k > 1:
                added = cost.sum_seconds(problem, self.target, row.split_k)
                logs.append(math.log(1e6 * added / row.sum))
        return _rms(logs)

    def together(self, values: Any, some: list[Any]) -> float:
        """The error of all kernels of a call together."""
        return _rms([math.log(self.predicted(values, row) / _measured(row)) for row in some])

    def mean(self, values: Any, some: list[Any]) -> float:
        """The mean error of a call's time, over the time."""
        off = [abs(self.predicted(values, row) / _measured(row) - 1) for row in some]
        return sum(off) / len(off)

    def _chosen(self, values: Any, some: list[Any]) -> list[tuple[Any, list[Any]]]:
        """Of each problem the kernel that is predicted to be fastest, and all."""
        found = []
        for of in {(row.layer, row.direction) for row in some}:
            own = [row for row in some if (row.layer, row.direction) == of]
            found.append((min(own, key=lambda row: self.predicted(values, row)), own))
        return found

    def regret(self, values: Any, some: list[Any]) -> float:
        """How much slower than the fastest measured kernel the chosen one is."""
        logs = [
            math.log(_measured(chosen) / min(map(_measured, own)))
            for chosen, own in self._chosen(values, some)
        ]
        return math.exp(sum(logs) / len(logs)) - 1

    def order(self, values: Any, some: list[Any]) -> float:
        """Rank correlation (Spearman's) of predicted and measured times of the chosen kernels."""
        chosen = [row for row, _ in self._chosen(values, some)]
        a = _ranks([self.predicted(values, row) for row in chosen])
        b = _ranks([_measured(row) for row in chosen])
        count = len(chosen)
        off = sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
        return 1 - 6 * off / (count * (count**2 - 1))


def _measured(row: Any) -> float:
    return float(row.kernel + row.sum + row.copies)


def _rms(logs: list[float]) -> float:
    return math.sqrt(sum(x * x for x in logs) / len(logs))


def _ranks(values: list[float]) -> list[int]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    for rank, at in enumerate(order):
        ranks[at] = rank
    return ranks
