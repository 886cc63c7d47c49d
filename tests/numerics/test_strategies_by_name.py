"""Random problems of any direction, by every strategy that applies, asked for by its name.

A choice by the model never draws most strategies for most problems; their kernels must be right
all the same. `--draws N --draw-seed S` checks so many problems a target instead of the few by
default (`docs/verification.md` has the figures):

    pytest tests/numerics/test_strategies_by_name.py -m "slow or not slow" -k gfx942 --draws 1000
"""

from __future__ import annotations

import pytest

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.strategies.registry import STRATEGIES
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.verification.verify import verify
from tests.chips import EXECUTED, each
from tests.problems import independent, of_any_kind

FEW = 2


def strategies_of(problem, target):
    """Names of the strategies that have a tile for a problem, in the table's order."""
    found = []
    for row in STRATEGIES.values():
        if target.backend not in row.backends:
            continue
        try:
            choose(problem, target, row.name)
        except UnsupportedStrategy:
            continue
        found.append(row.name)
    return found


@pytest.mark.parametrize("name", ["cpu", *each(EXECUTED)])
def test_every_strategy_that_applies(name, request):
    draws = request.config.getoption("--draws") or FEW
    seed = request.config.getoption("--draw-seed")
    target, wrong, tried = find_target(name), [], 0

    for problem, split_k in independent(of_any_kind(), draws, f"{name} {seed}"):
        for strategy in strategies_of(problem, target):
            tried += 1
            report = verify(
                problem,
                name,
                strategy,
                split_k,
                device=None if name == "cpu" else "vgpu",
                budget=0.0,
                seed=tried,
            )
            if not report.passed:
                wrong.append(report.text)

    print(f"{name}: {draws} problems, {tried} kernels, {len(wrong)} wrong, seed {seed}")
    assert not wrong, "\n".join(wrong)
