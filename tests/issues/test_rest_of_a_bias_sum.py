"""Bias gradients whose rows leave a rest kept the tests of that rest in scalar registers.

On gfx1201 one of a single channel had more of them than there are, so no kernel was compiled.
"""

from __future__ import annotations

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from tests.checks import check


@pytest.mark.parametrize("last", [13, 17, 39])
@pytest.mark.parametrize("target", ["gfx1201", pytest.param("gfx942", marks=pytest.mark.slow)])
def test_no_kernel_spills(last, target):
    problem = ConvProblem(
        direction="bwd_bias", n=2, k=1, c=3, image=(3, 5, last), filter=(1, 2, 1),
        layout="NDHWC_KZYXC_NDHWK", dtype="f16",
    )  # fmt: skip
    artifact = check(problem, target, device="vgpu").artifact
    assert [one.spills for one in artifact.kernels] == [0] * len(artifact.kernels)
