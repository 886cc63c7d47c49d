"""A result of a single element compiles.

IREE 3.13 makes a slice of one element larger in rank than what it is cut from, and refuses it, so
the one element of a tile is extracted.
"""

from __future__ import annotations

import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.verify import verify
from tests.chips import EXECUTED, each
from tests.turns import in_turn

ONE = {"n": 1, "k": 1, "c": 1, "image": (1, 1), "filter": (1, 1)}
PROBLEMS = [
    ConvProblem(**{**ONE, "n": 33}),
    ConvProblem(**{**ONE, "n": 33}, layout="NGCHW_GKCYX_NGKHW", elementwise="bilinear(0.5,2)"),
    ConvProblem(**{**ONE, "c": 33}, direction="fwd"),
    ConvProblem(**{**ONE, "n": 2, "c": 33}, direction="fwd", dynamic_batch=True),
    ConvProblem(**{**ONE, "k": 33}, direction="bwd_data", dtype="bf16"),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1100"])
def test_it_is_right(target, problem):
    verify(problem, target, device="vgpu" if target != "cpu" else None, budget=0.0).require()


@pytest.mark.parametrize(("chip", "split_k"), in_turn(each(EXECUTED), [1, 2]))
def test_split_or_not(chip, split_k):
    report = verify(PROBLEMS[0], chip, "implicit_gemm", split_k, device="vgpu", budget=0.0)
    assert report.require().artifact.main_kernel.mma


@pytest.mark.parametrize("problem", PROBLEMS[:1] + PROBLEMS[2:3], ids=lambda one: one.name)
def test_it_compiles_for_nvidia(problem):
    assert compile(problem, "sm_80", "implicit_gemm").main_kernel.mma
