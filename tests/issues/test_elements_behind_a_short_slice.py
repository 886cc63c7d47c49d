# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A result that is the first elements of a larger tensor, and leaves a rest of its tiles.

Rows beyond the result were stored behind the slice's end, where a buffer of its size would drop
them. The caller's buffer is larger: his elements beside the result changed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import conv_compiler as cc
from conv_compiler.verification.verify import verify

ONE_PIXEL = cc.ConvProblem(
    n=1,
    k=64,
    c=17,
    image=(1,),
    filter=(1,),
    dtype="bf16",
    layout="NWC_KXC_NWK",
    direction="bwd_data",
    result_operand=True,
    input_within=(1, 1, 20),
)
FORMS = {
    "one pixel": ONE_PIXEL,
    "one pixel, f32": replace(ONE_PIXEL, weight_dtype="f32"),
    "18 channels, which are stored by two": replace(ONE_PIXEL, c=18, input_within=(1, 1, 24)),
    "the first image": replace(ONE_PIXEL, c=20, input_within=(3, 1, 20)),
    "the first pixels": replace(ONE_PIXEL, c=4, image=(3,), input_within=(1, 9, 4)),
    "forward": replace(
        ONE_PIXEL, k=17, c=64, direction="fwd", input_within=(), output_within=(1, 1, 23)
    ),
}


@pytest.mark.parametrize("chip", ["gfx942", "gfx90a", "gfx1201"])
@pytest.mark.parametrize("form", FORMS)
def test_what_lies_behind_stays(form, chip):
    report = verify(FORMS[form], chip, "implicit_gemm", device="vgpu", runs=1)
    assert report.passed, report.text
