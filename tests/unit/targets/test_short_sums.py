# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an instruction loses of sums: a model of it, bit by bit, against the bound."""

from __future__ import annotations

import numpy as np
import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.targets.short_sums import HOPPER_F8
from conv_compiler.verification import inputs
from conv_compiler.verification.tolerance import tolerance

ROWS = 512


def kept(x, largest, bits):
    """Numbers with so many bits behind the leading bit of the largest, the others cut off."""
    step = np.exp2(np.floor(np.log2(np.where(largest > 0, largest, 1))) - bits)
    return np.floor(x / step) * step


def added(a, b, row=HOPPER_F8):
    """The sums of a * b along the last axis, as the instruction and f32 behind it make them."""
    total = np.zeros(a.shape[0], np.float32)
    for tile in range(0, a.shape[1], row.together):
        own = np.zeros(a.shape[0])
        for step in range(tile, tile + row.together, row.products):
            products = (a * b)[:, step : step + row.products]
            numbers = np.concatenate([products, own[:, None]], axis=1)
            largest = np.abs(numbers).max(axis=1, keepdims=True)
            own = kept(numbers, largest, row.bits).sum(axis=1)
            own = kept(own, np.abs(own), row.bits)
        total += own.astype(np.float32)
    return total.astype(np.float64)


def operands(dtype, count, seed=0):
    rng, row = np.random.default_rng(seed), DTYPES[dtype].to_numpy()
    return [(rng.random((ROWS, count)) * 2 - 1).astype(row).astype(np.float64) for _ in range(2)]


@pytest.mark.parametrize("dtype", ["f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize("count", [128, 1152, 4608])
def test_sums_of_random_data_are_within_the_bound(dtype, count):
    a, b = operands(dtype, count)
    error = np.abs(added(a, b) - (a * b).sum(axis=1)).max()
    bound = HOPPER_F8.of_products(count, 8.0, evenly=True)
    assert 0 < error < bound < HOPPER_F8.of_products(count, 8.0, evenly=False)
    # Far from what an element is, so that wrong ones are seen.
    assert bound < 0.06 * np.sqrt(count)


def test_f32_alone_would_lose_less():
    """So that the bound is needed: the model is off by more than the roundings of f32."""
    problem = ConvProblem(
        n=1, k=8, c=128, image=(6, 6), filter=(3, 3), direction="fwd", dtype="f8E4M3FN"
    )
    a, b = operands("f8E4M3FN", 1152)
    error = np.abs(added(a, b) - (a * b).sum(axis=1)).max()
    assert tolerance(problem).absolute < error < tolerance(problem, short=HOPPER_F8).absolute


def test_whole_numbers_of_verify_are_exact():
    most = inputs._WIDEST_FLOAT
    assert HOPPER_F8.together * most**2 <= HOPPER_F8.whole
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-most, most + 1, (ROWS, 1152)).astype(np.float64) for _ in range(2))
    assert np.array_equal(added(a, b), (a * b).sum(axis=1))
    problem = ConvProblem(n=1, k=8, c=128, image=(6, 6), filter=(3, 3), dtype="f8E4M3FN")
    assert tolerance(problem, "integers", HOPPER_F8).exact


def test_whole_numbers_are_exact_up_to_a_size():
    ones = np.ones((1, HOPPER_F8.together))
    side = np.zeros_like(ones)
    side[0, 0], side[0, -1] = HOPPER_F8.whole - 1, 1
    assert added(side, ones)[0] == HOPPER_F8.whole
    side[0, 0] = 4 * HOPPER_F8.whole
    assert added(side, ones)[0] != 4 * HOPPER_F8.whole + 1


def test_a_special_number_loses_a_share_of_the_sizes():
    a, b = operands("f8E5M2", 128)
    a[:, 5] = 32768.0
    error = np.abs(added(a, b) - (a * b).sum(axis=1))
    assert error.max() > 0
    assert (error <= HOPPER_F8.of_sizes() * np.abs(a * b).sum(axis=1)).all()
