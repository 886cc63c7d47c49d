"""8-bit floats: every code as ml_dtypes reads it, and random problems, natively and emulated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from conv_compiler.compile import compile
from conv_compiler.errors import UnsupportedTarget
from conv_compiler.problem import ConvProblem
from conv_compiler.runtime import load
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.verify import verify, verify_artifact
from tests.problems import F8_TYPES, for_drawn, problems_with_split

DTYPES = tuple(dict.fromkeys(data for data, _ in F8_TYPES))
EXECUTED = [name for name, row in TARGETS.items() if row.backend != "cuda"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", EXECUTED)
def test_every_code(dtype, target):
    """256 channels of one pixel hold all codes; each weight is one of them times 1."""
    problem = ConvProblem(n=1, k=1, c=256, image=(1,), filter=(1,), dtype=dtype, weight_dtype="f32")
    artifact = compile(problem, target)
    numpy = problem.data_type.to_numpy()
    codes = np.arange(256, dtype=np.uint8).view(numpy).reshape(problem.input_shape)
    one = np.ones(problem.output_shape, numpy)
    kernel = load(artifact, None if target == "cpu" else "vgpu")
    found = kernel(codes, one).reshape(-1)
    np.testing.assert_array_equal(found, codes.astype(np.float32).reshape(-1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", EXECUTED)
def test_matrix_code_where_the_chip_has_it(dtype, target):
    problem = ConvProblem(n=4, k=32, c=32, image=(6, 6), filter=(3, 3), dtype=dtype)
    report = verify(problem, target, split_k=2, budget=0.0).require()
    native = [row.instruction for row in find_target(target).mma_for(dtype)]
    found = " ".join(report.artifact.main_kernel.mma)
    assert bool(found) == bool(native)
    if native:
        words = {"f8E4M3": "fp8", "f8E5M2": "bf8"}
        assert words[dtype[:6]] in found


@pytest.mark.parametrize("target", ["sm_80", "sm_89"])
def test_nvidia_is_refused(target):
    problem = ConvProblem(n=1, k=8, c=8, image=(4,), filter=(1,), dtype="f8E4M3FN")
    with pytest.raises(UnsupportedTarget, match=r"no strategy computes .*; see conv-compiler list"):
        compile(problem, target)


def random_problems(target, examples):
    """Check so many drawn problems on a target; the same ones every time."""

    drawn = st.sampled_from(F8_TYPES).flatmap(lambda types: problems_with_split(None, types))

    @for_drawn(drawn, examples, f"f8 {target}")
    def run(drawn):
        problem, split_k = drawn
        report = verify(problem, target, split_k=split_k, budget=0.0).require()
        verify_artifact(report.artifact, data="random", seed=1).require()


@pytest.mark.parametrize("target", EXECUTED)
def test_some_random_problems(target):
    random_problems(target, 4)


@pytest.mark.slow
@pytest.mark.parametrize("target", EXECUTED)
def test_many_random_problems(target):
    random_problems(target, 50)
