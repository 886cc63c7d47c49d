"""Random problems compile for every AMD chip, as promised: no scratch, no spills, no crash."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from conv_compiler import compile
from conv_compiler.targets import TARGETS
from tests.chips import COMPILED, each
from tests.problems import problems_with_split


def check(chip, example):
    problem, split_k = example
    artifact = compile(problem, chip, split_k=split_k)
    for kernel in artifact.kernels:
        assert (kernel.scratch_bytes, kernel.spills) == (0, 0)
    main = artifact.main_kernel
    assert main.role == "contraction"
    assert bool(main.mma) == bool(artifact.strategy.mma)
    assert main.lds_bytes <= TARGETS[chip].lds_bytes
    if split_k != "auto":
        assert 1 <= artifact.strategy.split_k <= split_k


def examples(count):
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        # No shrinking: a step compiles, and the drawn problem is small and printed already.
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.too_slow],
    )


@pytest.mark.parametrize("chip", each(COMPILED))
@examples(3)
@given(example=problems_with_split())
def test_a_few_random_problems_compile(chip, example):
    check(chip, example)


@pytest.mark.slow
@pytest.mark.parametrize("chip", each(COMPILED))
@examples(50)
@given(example=problems_with_split())
def test_random_problems_compile(chip, example):
    check(chip, example)
