# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fwd` and `bwd_data`, channels first: operands copied channels last, pixels stored together."""

from __future__ import annotations

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from tests.checks import check
from tests.turns import in_turn

CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
NAME, LAYOUT = "channels_last_gemm", "NGCHW_GKCYX_NGKHW"
SIZES = {
    "whole tiles": {"n": 2, "k": 64, "c": 32, "image": (8, 16), "filter": (3, 3), "pad_low": 1},
    "odd sizes": {"n": 3, "k": 17, "c": 13, "image": (7, 11), "filter": (3, 2), "pad_low": (1, 0)},
    "groups": {"n": 2, "k": 24, "c": 16, "g": 3, "image": (6, 9), "filter": (3, 3), "pad_low": 1},
    "a stride": {"n": 2, "k": 16, "c": 24, "image": (9, 12), "filter": (3, 3), "stride": (2, 2)},
    "a stride and one tap": {
        "n": 2,
        "k": 32,
        "c": 16,
        "image": (9, 9),
        "filter": (1, 1),
        "stride": (2, 2),
    },
    "a dilation": {
        "n": 1,
        "k": 33,
        "c": 9,
        "image": (11, 13),
        "filter": (3, 3),
        "dilation": (2, 2),
    },
    "one tap": {"n": 2, "k": 48, "c": 40, "image": (7, 7), "filter": (1, 1)},
    "one dimension": {"n": 2, "k": 32, "c": 16, "image": (37,), "filter": (5,), "pad_low": 2},
    "three dimensions": {"n": 1, "k": 16, "c": 8, "image": (3, 5, 6), "filter": (2, 3, 3)},
    "a stem": {"n": 2, "k": 24, "c": 3, "image": (21, 17), "filter": (7, 7), "stride": (2, 2)},
    "a pixel": {"n": 3, "k": 16, "c": 16, "image": (3, 3), "filter": (3, 3)},
}


@pytest.mark.parametrize(("what", "direction", "chip"), in_turn(SIZES, ("fwd", "bwd_data"), CHIPS))
def test_exact(what, direction, chip):
    check(ConvProblem(direction=direction, **SIZES[what], layout=LAYOUT), chip, strategy=NAME)


# Of fwd problems with few channels, in any layout: they are copied with zeros.
FEW = {
    "three": {"c": 3, "layout": "NHWGC_GKYXC_NHWGK"},
    "six in groups": {"c": 6, "g": 2, "layout": "GNHWC_GKYXC_GNHWK"},
    "five, weight channels first": {"c": 5, "layout": "NHWGC_GKCYX_NHWGK"},
}


@pytest.mark.parametrize(("what", "chip"), in_turn(FEW, ("gfx90a", "gfx942", "gfx1100")))
def test_few_channels(what, chip):
    sizes = {"n": 2, "k": 20, "image": (16, 19), "filter": (5, 4), "pad_low": (2, 1)}
    check(ConvProblem(direction="fwd", **sizes, **FEW[what]), chip, strategy=NAME)


@pytest.mark.parametrize(
    ("dtype", "op"), [("bf16", "relu"), ("f32", ""), ("i8", ""), ("f16", "add")]
)
def test_types_and_ops(dtype, op):
    problem = ConvProblem(
        direction="fwd",
        **{"n": 2, "k": 20, "c": 16, "image": (9, 7), "filter": (3, 3), "pad_low": (1, 1)},
        dtype=dtype,
        elementwise=op,
        layout=LAYOUT,
    )
    for split_k in (1, 2):
        check(problem, "gfx942", split_k, strategy=NAME)
