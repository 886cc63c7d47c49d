"""Tiles that reach beyond the result: operands keep what they read there, and nothing shows it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load
from conv_compiler.strategies.gpu.tail_masking import unmasked_rows
from conv_compiler.strategies.select import candidates
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import reference
from conv_compiler.verification.verify import verify
from tests.turns import in_turn

CHIPS = ("gfx942", "gfx1100", "gfx90a", "gfx950", "gfx1201")

# 105 pixels, 40 channels.
POINTWISE = ConvProblem(n=3, k=64, c=64, image=(5, 7), filter=(1, 1), direction="fwd")
CASES = {
    "pixels": (POINTWISE, "b"),
    "bf16": (replace(POINTWISE, dtype="bf16", weight_dtype=""), "b"),
    "both": (replace(POINTWISE, k=40), "ab"),
    "strided": (replace(POINTWISE, stride=(2, 2)), "b"),
    "groups": (replace(POINTWISE, g=2, layout="GNHWC_GKYXC_GNHWK"), "b"),
    "windows": (replace(POINTWISE, k=40, filter=(3, 3)), "b"),
    "weights": (replace(POINTWISE, k=40, filter=(3, 3), pad_low=(1, 1), pad_high=(1, 1)), "a"),
    "data gradient": (replace(POINTWISE, c=40, direction="bwd_data"), "ab"),
    "1d": (ConvProblem(n=3, k=40, c=64, image=(13,), filter=(3,), direction="fwd"), "ab"),
}


def unmasked(problem, chip, sides):
    """The first candidate of which just these operands are not masked."""
    target = find_target(chip)
    wgrad = resolve(problem, target).wgrad
    return next(
        one
        for one in candidates(problem, target, "implicit_gemm")
        if unmasked_rows(wgrad, target, one.tiling, one.split_k) == sides
    )


@pytest.mark.parametrize(("name", "chip"), in_turn(tuple(CASES), CHIPS))
def test_rows_beyond_the_result(name, chip):
    problem, sides = CASES[name]
    one = unmasked(problem, chip, sides)
    verify(problem, chip, one, one.split_k, device="vgpu-checked", budget=0.0).require()


def test_what_is_not_finite_stays_in_its_row():
    problem, sides = CASES["both"]
    artifact = compile(problem, "gfx942", unmasked(problem, "gfx942", sides))
    image, weight = inputs(problem, "integers", 0)
    expected = reference(problem, image, weight)
    image[-1, -1, -1], weight[:, -1] = np.inf, np.nan  # the last pixel, the last channel
    found = np.asarray(load(artifact, "vgpu")(image, weight))
    assert not np.isfinite(found[-1, -1, -1]).any()
    assert not np.isfinite(found[..., -1]).any()
    found, expected = found[..., :-1].reshape(105, -1), expected[..., :-1].reshape(105, -1)
    assert (found[:-1] == expected[:-1]).all()
