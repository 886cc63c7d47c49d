# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results whose rows leave a rest of their tiles, into a larger tensor with more of the outermost
axis.

`implicit_gemm` was refused there. Between the masked store and that of the slice was a reshape.
IREE 3.13 made a store of its own of it, and the schedule has no place for one.
"""

from __future__ import annotations

import pytest

import conv_compiler as cc
from conv_compiler.verification.verify import verify

ROW = {"n": 1, "k": 16, "c": 16, "image": (43,), "filter": (7,), "pad_low": (1,), "pad_high": (2,)}
SQUARE = {"n": 1, "k": 16, "c": 16, "image": (9, 9), "filter": (3, 3), "pad_low": (1, 1)}
WIDE, HIGH = "NWC_KXC_NWK", "NHWC_KYXC_NHWK"
FORMS = {
    "columns": {**ROW, "layout": WIDE, "output_within": (1, 43, 16)},
    "rows": {**SQUARE, "layout": HIGH, "output_within": (1, 12, 9, 16)},
    "images": {**SQUARE, "n": 4, "layout": HIGH, "output_within": (6, 9, 9, 16)},
    "channels": {**ROW, "layout": WIDE, "output_within": (1, 40, 20)},
    "groups": {**ROW, "g": 4, "layout": "NWGC_GKXC_NWGK", "output_within": (1, 43, 4, 16)},
    "f32": {**SQUARE, "layout": HIGH, "weight_dtype": "f32", "output_within": (1, 12, 9, 16)},
    "an op with d": {
        **SQUARE,
        "layout": HIGH,
        "elementwise": "add",
        "output_within": (1, 12, 9, 16),
    },
    "a data gradient": {
        **ROW,
        "layout": WIDE,
        "direction": "bwd_data",
        "input_within": (1, 50, 16),
    },
}


@pytest.mark.parametrize("chip", ["gfx942", "gfx90a", "gfx1201"])
@pytest.mark.parametrize("form", FORMS)
def test_the_matrix_kernel_stores_it(form, chip):
    problem = cc.ConvProblem(**{"direction": "fwd", "result_operand": True, **FORMS[form]})
    report = verify(problem, chip, "implicit_gemm", device="vgpu", runs=1)
    assert report.passed, report.text
    assert report.strategy.startswith("implicit_gemm")
