"""An op on a strided data gradient whose tiles have a rest compiles.

The kernel of the products was to store behind a mask what the kernel that puts phases in place
computes.
"""

from __future__ import annotations

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.verify import verify


@pytest.mark.parametrize(("chip", "op"), [("gfx942", "relu"), ("gfx1100", "add")])
def test_it_is_right(chip, op):
    problem = ConvProblem(
        n=3, k=4, c=31, image=(15, 13), filter=(3, 2), stride=(2, 3), pad_low=(0, 1), dtype="bf16",
        direction="bwd_data", layout="NHWC_KYXC_NHWK", elementwise=op,
    )  # fmt: skip
    verify(problem, chip, "implicit_gemm", 1, device="vgpu", budget=0.0).require()
