"""A direct kernel on the CPU read in front of an image of one row that had pads above it.

A filter of one row is one iteration, which was written without the test whether the row it reads is
inside.
"""

from __future__ import annotations

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.verify import verify

PROBLEMS = [
    ConvProblem(
        n=2, k=16, c=8, image=(1, 9), filter=(1, 3), pad_low=(1, 1), pad_high=(1, 0), dtype="f32",
        direction="fwd",
    ),
    ConvProblem(
        n=2, k=8, c=16, image=(1, 3, 7), filter=(1, 1, 2), pad_low=(2, 0, 1), pad_high=(0, 1, 0),
        dtype="f32", direction="fwd",
    ),
    ConvProblem(
        n=1, g=8, k=1, c=1, image=(3, 7), filter=(1, 3), stride=(3, 1), pad_low=(1, 1),
        pad_high=(1, 1), dtype="f32", direction="bwd_data",
    ),
]  # fmt: skip


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda one: one.name)
@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_pads_are_zeros(problem: ConvProblem, target: str) -> None:
    strategy = "cpu_direct" if target == "cpu" else None
    verify(problem, target, strategy, budget=0).require()
