# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Strided data gradients whose matrix kernel puts phases, and zeros between them, in place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.phases_in_place import zero_offsets
from tests.checks import check
from tests.turns import in_turn

CHIPS = ("gfx942", "gfx1201", "gfx1100", "gfx90a")
POINTWISE = ConvProblem(
    n=3, k=24, c=16, image=(14, 12), filter=(1, 1), stride=(2, 2), dtype="f16", direction="bwd_data"
)
WINDOW = replace(POINTWISE, filter=(3, 3), pad_low=1, pad_high=1)
LINE = ConvProblem(
    n=3, k=24, c=16, image=(41,), filter=(3,), stride=2, dtype="bf16", direction="bwd_data"
)
BOX = ConvProblem(
    n=2, k=24, c=16, image=(4, 6, 8), filter=(1, 1, 1), stride=2, dtype="bf16", direction="bwd_data"
)
IN_PLACE = {
    "1x1": POINTWISE,
    "1x1 of f32": replace(POINTWISE, weight_dtype="f32"),
    "1x1 of i8": replace(POINTWISE, dtype="i8", weight_dtype=""),
    "1x1, channels that fill no tile": replace(POINTWISE, c=130, k=40),
    "1x1, an odd number of channels": replace(POINTWISE, c=5),
    "1x1, groups outermost": replace(POINTWISE, layout="GNHWC_GKYXC_GNHWK", g=3),
    "1x1, any batch": replace(POINTWISE, dynamic_batch=True),
    "3x3": WINDOW,
    "3x3, odd sizes": replace(WINDOW, image=(13, 11)),
    "3x3, 8 channels": replace(WINDOW, c=8),
    "3x3, 3 channels": replace(WINDOW, c=3),
    "3x3, groups": replace(WINDOW, g=2),
    "3x3, strides 3 and 2": replace(WINDOW, stride=(3, 2)),
    "3x3, stride of one axis": replace(WINDOW, stride=(1, 2)),
    "3x1: zeros in one axis": replace(POINTWISE, filter=(3, 1)),
    "1d": LINE,
    "3d, one tap": BOX,
    "3d": replace(BOX, image=(4, 7, 9), filter=(3, 3, 3), pad_low=1, pad_high=1),
}
# Where a kernel of its own puts phases in place.
BEHIND = {
    "zeros beyond the image": replace(POINTWISE, image=(13, 11)),
    "zeros in front": replace(POINTWISE, pad_low=(1, 1)),
    "a slice": replace(POINTWISE, input_within=(3, 14, 12, 1, 32), result_operand=True),
    "an op on the result": replace(WINDOW, elementwise="scale(0.5)"),
    "channels first": replace(WINDOW, layout="NCHW"),
    "parts": replace(WINDOW, k=192),
}


def last_kernel(artifact):
    """The name of the kernel that is launched last, which its number tells."""
    return max((one.name for one in artifact.kernels), key=lambda name: int(name.split("_")[2]))


@pytest.mark.parametrize(("form", "chip"), in_turn(IN_PLACE, CHIPS))
def test_phases_in_place(form, chip):
    artifact = check(IN_PLACE[form], chip, 1, "implicit_gemm", device="vgpu").artifact
    assert "matmul" in last_kernel(artifact)


@pytest.mark.parametrize(("form", "chip"), in_turn(BEHIND, CHIPS))
def test_phases_put_in_place_behind(form, chip):
    parts = 2 if form == "parts" else 1
    artifact = check(BEHIND[form], chip, parts, "implicit_gemm", device="vgpu").artifact
    assert "matmul" not in last_kernel(artifact)


def test_where_zeros_stand():
    assert zero_offsets(POINTWISE) == (16, 12 * 16, 13 * 16)
    assert zero_offsets(replace(POINTWISE, g=2)) == (32, 12 * 32, 13 * 32)
    assert zero_offsets(replace(POINTWISE, filter=(3, 1))) == (16,)
    assert zero_offsets(WINDOW) == ()
