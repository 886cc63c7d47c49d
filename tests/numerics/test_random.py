"""300 random problems on the CPU: integer data exact, random data within tolerance."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings

from conv_compiler.verify import verify, verify_artifact
from tests.problems import problems_with_split


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    # No shrinking: a step compiles, and the drawn problem is small and printed already.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(problems_with_split())
def test_random_problems(drawn):
    problem, split_k = drawn
    report = verify(problem, split_k=split_k, budget=0.0).require()
    if isinstance(split_k, int):
        assert report.split_k == split_k
    verify_artifact(report.artifact, data="random", seed=1).require()
