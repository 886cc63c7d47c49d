"""Repeated runs give the same bits, whatever the split and the threads' order."""

from __future__ import annotations

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import run
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.verify import verify_artifact
from tests.turns import in_turn

PROBLEMS = (
    ConvProblem(n=16, k=48, c=40, image=(14, 14), filter=(3, 3), pad_low=(1, 1), dtype="f32"),
    ConvProblem(n=6, g=4, k=9, c=17, image=(15, 11), filter=(3, 1), stride=(2, 1), dtype="f16"),
    ConvProblem(n=8, k=64, c=64, image=(12, 12), filter=(1, 1), dtype="bf16"),
    ConvProblem(n=8, g=32, k=1, c=1, image=(20,), filter=(3,), dtype="bf16", weight_dtype="f32"),
    ConvProblem(n=3, k=8, c=5, image=(9, 8, 7), filter=(2, 3, 3), pad_low=(1, 0, 2), dtype="f32"),
    ConvProblem(n=4, k=33, c=7, image=(200,), filter=(5,), dilation=(2,), dtype="f32"),
)


@pytest.mark.parametrize(
    ("problem", "split_k"),
    in_turn(PROBLEMS, [2, 3, 8]),
    ids=lambda value: getattr(value, "name", None),
)
def test_split_k_runs_are_bitwise_equal(problem, split_k):
    artifact = compile(problem, split_k=split_k)
    assert artifact.strategy.split_k == split_k
    report = verify_artifact(artifact, data="random", runs=10).require()
    assert report.repeatable


def test_a_kernel_loaded_anew_gives_the_same_bits(tmp_path):
    problem = PROBLEMS[0]
    artifact = compile(problem, split_k=4)
    operands = inputs(problem, "random")
    again = artifact.save(tmp_path / "again.vmfb")
    assert np.array_equal(run(artifact, *operands), run(again, *operands))
