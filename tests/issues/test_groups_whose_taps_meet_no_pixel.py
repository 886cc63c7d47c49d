"""The only output pixel of an axis lay in its pad, so every product was with zero. LLVM left all of
them out, and compilation failed: the matrix instruction that `depthwise_pixels` promised was lost.
"""

from __future__ import annotations

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.verify import verify


@pytest.mark.parametrize("direction", ["fwd", "bwd_data"])
@pytest.mark.parametrize("dtype", ["f16", "i8"])
def test_groups_of_four_channels(direction, dtype):
    problem = ConvProblem(
        n=2, g=3, k=4, c=8, image=(5, 4), filter=(2, 1), stride=(1, 5), pad_low=(0, 1),
        direction=direction, dtype=dtype,
    )  # fmt: skip
    report = verify(problem, "gfx942", device="vgpu", budget=0.0).require()
    assert report.passed
    assert not report.strategy.startswith("depthwise_pixels")
