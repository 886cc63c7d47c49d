"""Fused elementwise ops in random problems, on the CPU and on every virtual chip."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.elementwise import ELEMENTWISE
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.verify import verify
from tests.checks import check
from tests.chips import EXECUTED, each
from tests.problems import elementwise_texts, for_drawn, of_any_kind, problems_with_split

# On small integers with the parameters of `test_every_op`.
EXACT = ("scale", "bilinear", "add", "scale_add", "relu")
# CK's example of MultipleD, smaller: 3D, grouped, padded.
PROBLEM = ConvProblem(
    n=2, g=2, k=24, c=16, image=(3, 5, 4), filter=(3, 3, 3), pad_low=(1, 1, 1), dtype="bf16"
)


def random_problems(target, examples):
    """Check so many drawn problems on a target; the same ones every time."""

    drawn = st.tuples(problems_with_split(), elementwise_texts())

    @for_drawn(drawn, examples, f"elementwise {target}")
    def run(drawn):
        (problem, split_k), text = drawn
        check(replace(problem, elementwise=text), target, split_k)


@pytest.mark.parametrize("target", ["cpu", *each(EXECUTED)])
def test_some_random_problems(target):
    random_problems(target, 12 if target == "cpu" else 5)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", *each(EXECUTED)])
def test_many_random_problems(target):
    random_problems(target, 500 if target == "cpu" else 100)


@pytest.mark.parametrize("split_k", [1, 3])
@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1100"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_every_op(name, target, split_k):
    values = ",".join(["0.5", "-3"][: len(ELEMENTWISE[name].parameters)])
    text = f"{name}({values})" if values else name
    report = check(replace(PROBLEM, elementwise=text), target, split_k)
    assert report.tolerance.exact == (name in EXACT)


@pytest.mark.parametrize(
    ("weight", "op", "most"), [("i8", "scale(1000)", 127), ("i32", "scale(1073741824)", 2**31 - 1)]
)
@pytest.mark.parametrize("split_k", [1, 3])
@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_integers_saturate(target, split_k, weight, op, most):
    """Sums of both signs, each beyond what the weight's type holds."""
    problem = ConvProblem(
        n=4, k=32, c=32, image=(4,), filter=(1,), dtype="i8", weight_dtype=weight, elementwise=op
    )
    kernel = load(compile(problem, target, split_k=split_k), None if target == "cpu" else "vgpu")
    image = np.full(problem.input_shape, 2, np.int8)
    signs = np.resize(np.array([1, -1], np.int8), problem.output_shape)  # one sign a channel
    found = kernel(image, signs)
    want = np.where(signs.reshape(-1, problem.k)[0] > 0, most, -most - 1)
    np.testing.assert_array_equal(found.reshape(problem.k, -1), np.tile(want[:, None], problem.c))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "i8"])
@pytest.mark.parametrize("split_k", [1, 3])
def test_it_takes_no_kernel_of_its_own(dtype, split_k):
    """The op rides on the kernel that sums the parts or rounds the sums."""
    plain = replace(PROBLEM, dtype=dtype, weight_dtype="i8" if dtype == "i8" else dtype)
    fused = replace(plain, elementwise="bilinear(0.5,2):f32")
    kernels = [
        len(verify(one, "gfx942", split_k=split_k, budget=0.0).artifact.kernels)
        for one in (plain, fused)
    ]
    assert kernels[0] == kernels[1] == 2


@pytest.mark.parametrize(
    ("target", "examples"),
    [
        ("gfx942", 5),
        ("sm_80", 5),
        pytest.param("gfx942", 100, marks=pytest.mark.slow),
        pytest.param("gfx1201", 100, marks=pytest.mark.slow),
        pytest.param("sm_80", 100, marks=pytest.mark.slow),
    ],
)
def test_it_takes_no_kernel_whatever_the_problem(target, examples):
    """Weight gradients of any kind in one part: no kernel more with the op than without."""

    @for_drawn(of_any_kind("bwd_weight"), examples, "no kernel more")
    def check_count(drawn):
        problem = drawn[0]
        kernels = [
            len(compile(replace(problem, elementwise=text), target, None, 1).kernels)
            for text in ("", problem.elementwise or "scale(0.5)")
        ]
        assert kernels[1] <= kernels[0], problem.name


@pytest.mark.parametrize("weight_dtype", ["bf16", "f32"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("text", ["relu", "bilinear(0.5,2)", "add:f32"])
@pytest.mark.parametrize(
    "fields", [{"g": 2, "c": 16}, {"g": 2, "c": 15}, {"c": 16, "layout": "NHWC_KYXC_NHWK"}], ids=str
)
def test_no_kernel_more_on_the_cpu(dtype, weight_dtype, text, fields):
    if (dtype, weight_dtype) == ("f32", "bf16"):
        pytest.skip("no such pair of types")
    sizes = {"n": 4, "k": 16, "image": (9, 8), "filter": (3, 3), "pad_low": (1, 1), **fields}
    plain = ConvProblem(**sizes, dtype=dtype, weight_dtype=weight_dtype)
    with_op = check(replace(plain, elementwise=text), "cpu", 1).artifact
    assert len(with_op.kernels) == len(compile(plain, "cpu", None, 1).kernels)
