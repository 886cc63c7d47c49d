# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kept weight beside operands and results that are slices.

What returns the kept weight stated the module's result slices as its own, and did not load.
"""

from dataclasses import replace

import numpy as np
import pytest

import conv_compiler as cc
from conv_compiler.verification.slices import call_operands
from tests.checks import check

PROBLEM = cc.ConvProblem(
    n=3, k=5, c=6, g=2, image=(7, 5), filter=(3, 2), dtype="f32", direction="fwd", kept_weight=True
)
INTO = replace(PROBLEM, result_operand=True)
# Of the module's results, of its operands, and of both.
SLICES = {
    "fwd result": replace(INTO, output_within=(3, 2, 8, 5, 4), layout="NGCHW_GKCYX_NGKHW"),
    "fwd more images": replace(INTO, output_within=(4, 5, 4, 2, 5)),
    "fwd operand": replace(PROBLEM, input_within=(3, 7, 5, 2, 8)),
    "fwd both, amax": replace(
        INTO, input_within=(3, 8, 5, 2, 6), output_within=(3, 5, 4, 2, 11), amax=True
    ),
    "fwd with d": replace(INTO, output_within=(3, 5, 4, 2, 11), elementwise="add"),
    "bwd_data result": replace(INTO, direction="bwd_data", input_within=(3, 7, 5, 2, 7)),
    "bwd_data strided": replace(
        INTO,
        direction="bwd_data",
        stride=(2, 3),
        input_within=(3, 7, 5, 2, 7),
        output_within=(3, 3, 2, 2, 9),
    ),
}


@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1100"])
@pytest.mark.parametrize("form", SLICES)
def test_a_kept_weight_beside_slices(form, target):
    problem = SLICES[form]
    artifact = check(problem, target, device=None if target == "cpu" else "vgpu").artifact
    kernel = cc.load(artifact)
    first, weight, *d = call_operands(problem, "random")
    want, found = kernel(first, weight, *d), kernel.keep(weight)(first, *d)
    several = isinstance(want, tuple)
    for one, other in zip(*((found, want) if several else ([found], [want])), strict=True):
        assert np.array_equal(one, other)
