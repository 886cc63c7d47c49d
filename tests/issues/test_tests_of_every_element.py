"""On gfx90a every candidate of a small 3D problem in bf16 spilled scalar registers.

With one channel an element of the image has a test of its own, which takes two scalar registers of
a wave of 64; the eight fastest tilings gave a thread 16 elements of each operand or more. Found
among Composable Kernel's problems with the split left to the model.
"""

from __future__ import annotations

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from tests.checks import check

PROBLEM = ConvProblem(
    n=1, k=1, c=1, image=(18, 18, 18), filter=(3, 3, 3), pad_low=1, dtype="bf16", weight_dtype="f32"
)


@pytest.mark.parametrize("split_k", [1, 2, "auto"])
def test_one_channel_in_3d(split_k):
    report = check(PROBLEM, "gfx90a", split_k)
    assert report.artifact.strategy.mma
    assert {kernel.spills for kernel in report.artifact.kernels} == {0}
