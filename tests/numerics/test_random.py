"""Random problems on the CPU, over 300 with the slow tests: integers exact, random in tolerance."""

from __future__ import annotations

import pytest

from conv_compiler.verification.verify import verify, verify_artifact
from tests.problems import TYPES, for_drawn, problems_with_split

CELLS = [(ndim, types) for ndim in (1, 2, 3) for types in (*TYPES, ("f64", "f64"))]
# Problems of each of the 24 cells: 96 by default, and 360 more.
FEW = pytest.param(4, id="few")
MANY = pytest.param(15, id="many", marks=pytest.mark.slow)


@pytest.mark.parametrize("examples", [FEW, MANY])
@pytest.mark.parametrize(("ndim", "types"), CELLS)
def test_random_problems(ndim, types, examples):
    @for_drawn(problems_with_split(ndim, types), examples, repr((ndim, types)))
    def check(drawn):
        problem, split_k = drawn
        report = verify(problem, split_k=split_k, budget=0.0).require()
        assert split_k == "auto" or 1 <= report.split_k <= split_k
        verify_artifact(report.artifact, data="random", seed=1).require()
