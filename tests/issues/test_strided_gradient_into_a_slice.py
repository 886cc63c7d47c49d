# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A strided data gradient is a slice of its phases, which was copied as slices of operands are.

Where the result has one pixel along the stride, IREE 3.13 made of that copy a kernel that copies a
tensor to itself, and failed: "LLVM Translation failed for operation:
builtin.unrealized_conversion_cast" (docs/upstream/iree-copy-in-a-region-on-gpus.md). Elsewhere it
was a kernel too many.
"""

from __future__ import annotations

import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.slices import whole
from conv_compiler.verification.verify import verify

ONE_PIXEL = {"n": 8, "image": (1, 1), "filter": (2, 1), "stride": (2, 1), "pad_high": (1, 1)}
CASES = {
    "gfx1100": {"layout": "GNHWC_GKCYX_GNHWK", "g": 16, "input_within": (16, 8, 1, 4, 1)},
    "gfx90a": {
        "layout": "NHWGC_GKYXC_NHWGK",
        "k": 48,
        "c": 32,
        "filter": (3, 4),
        "stride": (3, 1),
        "dilation": (2, 2),
        "pad_low": (11, 9),
        "pad_high": (8, 7),
        "dtype": "bf16",
        "input_within": (8, 1, 4, 1, 32),
    },
    "gfx1201": {
        "layout": "GNHWC_GKYXC_GNHWK",
        "g": 8,
        "k": 8,
        "c": 17,
        "image": (4, 1),
        "filter": (3, 2),
        "stride": (1, 5),
        "pad_low": (3, 0),
        "pad_high": (2, 2),
        "input_within": (8, 8, 4, 4, 17),
    },
    "gfx942": {
        "layout": "NHWGC_GKYXC_NHWGK",
        "n": 4,
        "k": 32,
        "c": 32,
        "image": (9, 9),
        "filter": (3, 3),
        "stride": (2, 2),
        "dtype": "f16",
        "input_within": (4, 9, 12, 1, 32),
    },
}


# Kernels more than without the slice: the store. Where the matrix kernel puts phases in place, also
# the one that does so into a slice; one cuts the phases where these are more than the image, and is
# the store.
MORE = {"gfx1100": 1, "gfx90a": 1, "gfx1201": 1, "gfx942": 2}


@pytest.mark.parametrize("target", CASES)
def test_exact_and_no_copy_more(target):
    fields = {"k": 1, "c": 1, "pad_low": (1, 1), "dtype": "f32", **ONE_PIXEL, **CASES[target]}
    problem = ConvProblem(**fields, direction="bwd_data", result_operand=True)
    report = verify(problem, target, budget=0.0).require()
    plain = compile(whole(problem), target)
    assert len(report.artifact.kernels) == len(plain.kernels) + MORE[target]
