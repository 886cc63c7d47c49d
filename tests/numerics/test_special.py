"""What is not finite, too large or denormal, on every target (docs/numerics.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conv_compiler import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.verification.inputs import inputs, trials_of
from conv_compiler.verification.reference import plain, reference
from conv_compiler.verification.verify import verify
from tests.chips import EXECUTED, each
from tests.problems import for_drawn, of_any_kind, tiny_problems

FEW = ("cpu", "gfx90a", "gfx1201")
SPREAD = [
    pytest.param(name, marks=() if name in FEW else pytest.mark.slow, id=name)
    for name in ("cpu", *EXECUTED)
]
STRIDED = ConvProblem(
    n=2, g=2, k=5, c=3, image=(9, 8), filter=(3, 2), stride=(2, 3), pad_low=(2, 1)
)


def check_special(problem, target, split_k="auto", strategy=None):
    """`special` data of two seeds, and `denormal` data where f16 denormals are not taken as 0."""
    for seed in (0, 1):
        special = verify(problem, target, strategy, split_k, data="special", seed=seed, budget=0.0)
        special.require()
    flushed = special.artifact.strategy.mma.endswith("_F16") and target == "gfx90a"
    found = verify(problem, target, strategy, split_k, data="denormal", budget=0.0)
    assert flushed or found.require().passed


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("dtype", ["f16", "f32", pytest.param("bf16", marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", SPREAD)
def test_every_direction(target, dtype, direction):
    check_special(replace(STRIDED, dtype=dtype, weight_dtype="", direction=direction), target)


@pytest.mark.parametrize("target", SPREAD)
def test_pixels_that_no_output_reads(target):
    """Taps in rows multiply them by 0: of another output's pixel in the same image and group."""
    problem = ConvProblem(
        n=4, g=3, k=1, c=1, image=(6,), filter=(1,), stride=3, direction="fwd",
        layout="GNWC_GKXC_GNWK",
    )  # fmt: skip
    check_special(problem, target)


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_f64_and_integers(target):
    for dtype in ("i8", *(("f64",) if target == "cpu" else ())):
        check_special(replace(STRIDED, dtype=dtype, weight_dtype=""), target)


def random_problems(target, examples):
    @for_drawn(of_any_kind(), examples, f"special {target}")
    def run(drawn):
        check_special(drawn[0], target, drawn[1])


@pytest.mark.parametrize("target", SPREAD)
def test_some_random_problems(target):
    random_problems(target, 3)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", *each(EXECUTED)])
def test_many_random_problems(target):
    random_problems(target, 100)


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
