# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sum near the largest f16 may round to infinity or not: `verify` called either one wrong where
an instruction that keeps few bits of a sum was on the other side."""

import math

import ml_dtypes
import numpy as np
import pytest

from conv_compiler import ConvProblem
from conv_compiler.targets.short_sums import HOPPER_F8
from conv_compiler.verification.special import compare_special

LARGE, MOST = 32768.0, 65504.0
PROBLEM = ConvProblem(
    n=1, c=8, k=1, image=(1,), filter=(1,), dtype="f8E5M2", weight_dtype="f16", direction="fwd",
    layout="NWC_KXC_NWK",
)  # fmt: skip


def wrong(want, got, short):
    """Whether `got` is wrong for a sum of LARGE * 1.75 and what is left of `want`."""
    image, weight = np.ones(PROBLEM.c), np.zeros(PROBLEM.c)
    image[0], weight[0] = LARGE, 1.75
    for at in range(1, PROBLEM.c):
        rest = want - float(image @ weight)
        step = 2.0 ** (math.frexp(rest)[1] - 3)  # three bits of it are a number of the type
        weight[at] = rest // step * step
    f8 = ml_dtypes.float8_e5m2
    operands = tuple(
        array.reshape(shape).astype(f8)
        for array, shape in zip((image, weight), PROBLEM.operand_shapes, strict=True)
    )
    exact = float((operands[0].astype(float) * operands[1].astype(float)).sum())
    assert exact == want
    plain = (np.ones_like(operands[0]), operands[1])
    result = np.array(got, np.float16).reshape(PROBLEM.result_shape)
    return bool(compare_special(PROBLEM, result, operands, plain, short)[0].wrong)


@pytest.mark.parametrize(
    ("want", "got"),
    [(65512.0, np.inf), (65536.0, MOST), (65536.0, 65472.0), (64512.0, np.inf)],
)
def test_few_bits_may_end_on_the_other_side(want, got):
    assert not wrong(want, got, HOPPER_F8)
    assert wrong(want, got, None)


@pytest.mark.parametrize("short", [None, HOPPER_F8])
@pytest.mark.parametrize(
    ("want", "got"),
    [(61440.0, np.inf), (65512.0, -np.inf), (73728.0, MOST), (65536.0, np.nan)],
)
def test_what_is_far_is_wrong(want, got, short):
    assert wrong(want, got, short)


@pytest.mark.parametrize(("want", "got"), [(65512.0, MOST), (65536.0, np.inf)])
def test_what_the_definition_says_is_right(want, got):
    assert not wrong(want, got, None)
