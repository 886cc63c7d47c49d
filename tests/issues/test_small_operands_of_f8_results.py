"""8-bit results of operands that an op made smaller: a result is rounded below its normal range as
ever, and the tolerance of that was made smaller with the operands."""

from __future__ import annotations

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.tolerance import scaled_to, tolerance
from conv_compiler.verification.verify import inputs, verify

SMALL = {
    "direction": "fwd", "n": 5, "k": 64, "c": 48, "image": (1, 4, 1), "filter": (1, 1, 1),
    "layout": "NCDHW_KZYXC_NDHWK", "dtype": "f8E4M3FN", "weight_dtype": "f8E4M3FN",
}  # fmt: skip


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("factor", [-0.5, 0.01])
def test_small_results_are_right(factor, dynamic):
    problem = ConvProblem(**SMALL, input_op=f"scale({factor})", dynamic_batch=dynamic)
    assert verify(problem, "cpu", data="random", budget=0.0).require().passed


@pytest.mark.parametrize("factor", [-0.5, 2])
def test_the_sums_tolerance_alone_follows_the_operands(factor):
    plain = ConvProblem(**SMALL)
    problem = ConvProblem(**SMALL, input_op=f"scale({factor})")
    usual, scaled = tolerance(plain), scaled_to(problem, *inputs(problem, "random", 0)[:2])
    half_denormal = 2.0**-10
    assert scaled.absolute > half_denormal
    assert (scaled.absolute > usual.absolute) == (abs(factor) > 1)
