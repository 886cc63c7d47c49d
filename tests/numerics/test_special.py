"""What is not finite, too large or denormal, on every target (docs/numerics.md).

Random problems meet it in test_random.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conv_compiler import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.verification.inputs import inputs, trials_of
from conv_compiler.verification.reference import plain, reference
from conv_compiler.verification.verify import verify
from tests.checks import check_special
from tests.chips import EXECUTED
from tests.problems import for_drawn, tiny_problems

FEW = ("cpu", "gfx90a", "gfx1201")
SPREAD = [
    pytest.param(name, marks=() if name in FEW else pytest.mark.slow, id=name)
    for name in ("cpu", *EXECUTED)
]
STRIDED = ConvProblem(
    n=2, g=2, k=5, c=3, image=(9, 8), filter=(3, 2), stride=(2, 3), pad_low=(2, 1)
)


def check(problem, target):
    """One kernel on special and on denormal data."""
    check_special(verify(problem, target, budget=0.0).require().artifact, target)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("dtype", ["f16", "f32", pytest.param("bf16", marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", SPREAD)
def test_every_direction(target, dtype, direction):
    check(replace(STRIDED, dtype=dtype, weight_dtype="", direction=direction), target)


@pytest.mark.parametrize("target", SPREAD)
def test_pixels_that_no_output_reads(target):
    """Taps in rows multiply them by 0: of another output's pixel in the same image and group."""
    problem = ConvProblem(
        n=4, g=3, k=1, c=1, image=(6,), filter=(1,), stride=3, direction="fwd",
        layout="GNWC_GKXC_GNWK",
    )  # fmt: skip
    check(problem, target)


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_f64_and_integers(target):
    for dtype in ("i8", *(("f64",) if target == "cpu" else ())):
        check(replace(STRIDED, dtype=dtype, weight_dtype=""), target)


def test_both_references_agree_on_what_is_not_finite():
    """Matrix products of BLAS add nothing to what the definition multiplies."""

    @for_drawn(tiny_problems(), 30, "special references")
    def run(problem):
        for direction in DIRECTIONS:
            one = replace(problem, direction=direction)
            for trial in range(trials_of("special", one)):
                operands = inputs(one, "special", 0, trial)
                with np.errstate(all="ignore"):
                    np.testing.assert_array_equal(reference(one, *operands), plain(one, *operands))
