"""Over 300 random problems on the CPU: integer data exact, random data within tolerance."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from conv_compiler.dtypes import TYPE_PAIRS
from conv_compiler.verify import verify, verify_artifact
from tests.problems import problems_with_split

CELLS = [(ndim, types) for ndim in (1, 2, 3) for types in TYPE_PAIRS]
EXAMPLES = 15  # of each of the 21 cells: 315 in all


@pytest.mark.parametrize(("ndim", "types"), CELLS)
def test_random_problems(ndim, types):
    @seed(zlib.crc32(repr((ndim, types)).encode()))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        # No shrinking: a step compiles, and the drawn problem is small and printed already.
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(problems_with_split(ndim, types))
    def check(drawn):
        problem, split_k = drawn
        report = verify(problem, split_k=split_k, budget=0.0).require()
        assert split_k in ("auto", report.split_k)
        verify_artifact(report.artifact, data="random", seed=1).require()

    check()
