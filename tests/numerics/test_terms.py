"""f32 data multiplied as sums of bf16 numbers: `compute="bf16x3"`."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.batching import chunks_of
from conv_compiler.problem.canonical import canonical
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.problem.dtypes import TERMS
from conv_compiler.runtime.kernel import load
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import reference
from conv_compiler.verification.tolerance import after_operand_ops, tolerance
from conv_compiler.verification.verify import compare
from tests.checks import check
from tests.chips import EXECUTED

PROBLEM = ConvProblem(
    n=5,
    g=2,
    k=6,
    c=5,
    image=(9, 8),
    filter=(3, 2),
    stride=(2, 1),
    pad_low=(1, 0),
    dtype="f32",
    compute="bf16x3",
)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    "target",
    [
        "cpu",
        "gfx1100",
        *(pytest.param(c, marks=pytest.mark.slow) for c in EXECUTED if c != "gfx1100"),
    ],
)
def test_every_direction(target, direction):
    strategy = None if target == "cpu" else "implicit_gemm"
    report = check(replace(PROBLEM, direction=direction), target, strategy=strategy)
    if target != "cpu":  # gfx1100 and gfx1201 have no matrix instruction for f32
        assert any("bf16" in name for name in report.artifact.main_kernel.mma)


@pytest.mark.parametrize(
    "fields",
    [
        {"layout": "NGCHW_GKCYX_NGKHW", "split_k": 3},
        {"layout": "GNHWC_GKYXC_GNHWK", "elementwise": "bilinear(0.5,2)"},
        {"input_op": "scale(0.3)", "output_op": "relu"},
        {"dynamic_batch": True},
        {"g": 1, "k": 64, "c": 64, "filter": (1, 1), "stride": (1, 1), "pad_low": (0, 0)},
        {"strategy": "vector_gemm"},
    ],
    ids=lambda fields: " ".join(fields),
)
def test_with_everything_else(fields):
    split_k, name = fields.pop("split_k", "auto"), fields.pop("strategy", None)
    problem = replace(PROBLEM, pad_high=(), **fields)
    check(problem, "gfx942", split_k, name)


def test_three_products_are_closer_than_tf32_and_two_are_found_out():
    """The kernel against products by numbers of 10 bits, and against leaving a term out."""
    problem = replace(PROBLEM, n=16, k=16, c=16)
    first, second = inputs(problem, "random")
    want = reference(problem, first, second)
    allowed = tolerance(problem)
    got = load(compile(problem, "gfx942"))(first, second)
    error = compare(problem, got, want, allowed)
    assert error.wrong == 0

    def rounded(array, bits):
        """To so many bits of mantissa, ties upwards in size."""
        drop = 23 - bits
        whole = array.view(np.uint32) + np.uint32(1 << drop - 1)
        return (whole & np.uint32(0xFFFFFFFF << drop & 0xFFFFFFFF)).view(np.float32)

    tf32 = reference(problem, rounded(first, 10), rounded(second, 10)).astype(np.float32)
    found = compare(problem, tf32, want, allowed)
    assert found.max_error > 8 * error.max_error
    assert found.wrong > 0.1 * want.size
    high = first.astype(ml_dtypes.bfloat16).astype(np.float32)
    two = reference(problem, high, second).astype(np.float32)
    assert compare(problem, two, want, allowed).wrong > want.size / 2


def test_numbers_with_low_parts_are_not_called_exact():
    problem = replace(PROBLEM, input_op="scale(1001)")
    first, second = inputs(problem)
    assert not after_operand_ops(problem, tolerance(problem, "integers"), first, second).exact
    assert tolerance(PROBLEM, "integers").exact


def parts(x):
    """High and low parts of f32 numbers."""
    high = x.astype(ml_dtypes.bfloat16).astype(np.float64)
    return {"high": high, "low": (x - high).astype(ml_dtypes.bfloat16).astype(np.float64)}


def test_the_error_is_that_of_the_parts():
    rng = np.random.default_rng(0)
    a, b = (rng.random(100000, dtype=np.float32) + 1 for _ in range(2))
    of_a, of_b = parts(a), parts(b)
    row = TERMS["bf16x3"]
    product = sum(of_a[x] * of_b[y] for x, y in row.parts)
    exact = a.astype(np.float64) * b
    assert row.error / 16 < np.abs(product / exact - 1).max() < row.error


def test_the_deviation_is_that_of_random_data():
    a, b = (np.random.default_rng(i).random(10**6, dtype=np.float32) * 2 - 1 for i in range(2))
    of_a, of_b = parts(a), parts(b)
    row = TERMS["bf16x3"]
    off = sum(of_a[x] * of_b[y] for x, y in row.parts) - a.astype(np.float64) * b
    assert off.std() == pytest.approx(row.deviation, rel=0.02)
    assert abs(off.mean()) < row.deviation / 100


def test_what_a_schedule_is_for_is_found_once():
    """One image below the limit in bf16 but not in three terms: no chunks, no matrix kernel."""
    large = ConvProblem(
        n=1, k=4, c=4, image=(10240, 10240), filter=(1, 1), stride=(100, 100), dtype="f32",
        compute="bf16x3",
    )  # fmt: skip
    assert chunks_of(large) is None
    assert choose(large, find_target("gfx942"))[0].name == "vector_gemm"
    assert canonical(large).n == 3


def test_what_is_refused():
    with pytest.raises(UnsupportedProblem, match=r"compute bf16x3: is for f32 data, not f16"):
        replace(PROBLEM, dtype="f16", weight_dtype="f16")
    with pytest.raises(UnsupportedProblem, match=r"or for f32 data bf16x3, xf32, tf32"):
        replace(PROBLEM, compute="f32x3")
