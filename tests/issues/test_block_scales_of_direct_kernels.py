"""Operands with block scales, of CPU kernels that address their operands as one run.

A kernel in front makes such an operand of elements and of scales. Direct kernels passed over it as
over any other arrangement. They were refused on CPUs that multiply no pairs, and 8-bit floats ended
the process.
"""

from __future__ import annotations

import pytest

import conv_compiler as cc
from conv_compiler.problem.conv_problem import ConvProblem

TYPES = ("f8E4M3FN", "f6E2M3FN", "f4E2M1FN")
LAST, FIRST = "NHWGC_GKYXC_NHWGK", "NGCHW_GKCYX_NGKHW"


@pytest.mark.parametrize("direction", ["fwd", "bwd_data"])
@pytest.mark.parametrize(
    ("target", "strategy", "dtype", "layout", "window"),
    [
        *(("cpu", "cpu_direct", dtype, LAST, 3) for dtype in TYPES),
        *(("cpu-x86-64-v3", None, dtype, LAST, 3) for dtype in TYPES),
        # Packed elements want rows of several bytes, which a 1x1 filter in this layout has not.
        ("cpu", "cpu_pointwise", "f8E4M3FN", FIRST, 1),
        ("cpu-x86-64-v3", None, "f8E4M3FN", FIRST, 1),
    ],
)
def test_they_are_read_behind_the_kernel_that_makes_them(
    direction, target, strategy, dtype, layout, window
):
    problem = ConvProblem(
        n=2, k=64, c=64, image=(5, 8), filter=(window, window), pad_low=window // 2, dtype=dtype,
        block_scales="mx", direction=direction, layout=layout,
    )  # fmt: skip
    cc.verify(problem, target, strategy=strategy, data="integers", budget=0).require()
