# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data gradients whose matrix kernel reads the weight as it lies, the last tap first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from tests.checks import check
from tests.turns import in_turn

CHIPS = ("gfx942", "gfx1201", "gfx1100", "gfx950", "gfx90a")
WINDOW = ConvProblem(
    n=3,
    k=40,
    c=24,
    image=(14, 12),
    filter=(3, 3),
    pad_low=1,
    pad_high=1,
    dtype="bf16",
    direction="bwd_data",
)
AS_IT_LIES = {
    "3x3": WINDOW,
    "no pads": replace(WINDOW, pad_low=(0, 0), pad_high=(0, 0)),
    "dilations": replace(WINDOW, dilation=(2, 3), pad_low=(2, 3), pad_high=(2, 3)),
    "an even filter": replace(WINDOW, filter=(5, 2)),
    "groups": replace(WINDOW, g=2),
    "groups outermost": replace(WINDOW, g=2, layout="GNHWC_GKYXC_GNHWK"),
    "5 channels": replace(WINDOW, c=5),
    "an image smaller than the filter": replace(WINDOW, image=(2, 2)),
    "i8": replace(WINDOW, dtype="i8", weight_dtype="", k=256, c=64),
    "any batch": replace(WINDOW, dynamic_batch=True),
    "a kept weight": replace(WINDOW, kept_weight=True),
    "several k tiles a tap": replace(WINDOW, k=136, c=64),
    "1d": ConvProblem(
        n=3, k=24, c=16, image=(40,), filter=(3,), pad_low=1, dtype="bf16", direction="bwd_data"
    ),
    "3d": ConvProblem(
        n=2,
        k=64,
        c=16,
        image=(4, 6, 8),
        filter=(3, 2, 3),
        pad_low=1,
        dtype="bf16",
        direction="bwd_data",
    ),
}
ARRANGED = {
    "an op on the weight": replace(WINDOW, weight_op="scale(0.5)"),
    "products of several terms": replace(WINDOW, dtype="f32", weight_dtype="", compute="bf16x3"),
    "channels outside the taps": replace(WINDOW, layout="NHWC_KCYX_NHWK"),
    "a stride": replace(WINDOW, stride=(2, 1)),
    "8-bit floats by bf16": replace(WINDOW, dtype="f8E4M3FN", weight_dtype=""),
}
# That have an instruction for these floats.
NATIVE = ("gfx950", "gfx1201")


@pytest.mark.parametrize("parts", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("form", "chip"), in_turn(AS_IT_LIES, CHIPS))
def test_taps_in_reverse_order(form, chip, parts):
    artifact = check(AS_IT_LIES[form], chip, parts, "implicit_gemm", device="vgpu").artifact
    roles = [one.role for one in artifact.kernels]
    assert roles in (["contraction"], ["contraction", "reduction"])


@pytest.mark.parametrize(("form", "chip"), in_turn(ARRANGED, CHIPS))
def test_an_arranged_weight(form, chip):
    if "8-bit" in form and chip in NATIVE:
        chip = "gfx90a"
    artifact = check(ARRANGED[form], chip, 1, "implicit_gemm", device="vgpu").artifact
    assert len(artifact.kernels) > 1
