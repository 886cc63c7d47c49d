# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""f32 data multiplied as numbers of ten bits: `compute="xf32"`, on gfx942; and what `tf32` is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import UnsupportedProblem, UnsupportedStrategy
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.dtypes import CONVERSIONS
from conv_compiler.runtime.kernel import load
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import exact_sums
from conv_compiler.verification.tolerance import after_operand_ops, tolerance
from conv_compiler.verification.verify import verify
from tests.turns import in_turn

ODD = ConvProblem(
    n=3,
    g=2,
    k=20,
    c=12,
    image=(9, 8),
    filter=(3, 2),
    stride=(2, 1),
    pad_low=(1, 0),
    dtype="f32",
    compute="xf32",
)
ROUND = replace(ODD, n=4, g=1, k=32, c=32, image=(8, 8), filter=(3, 3), stride=(1, 1))
PROBLEMS = {"odd": ODD, "round": ROUND, "first": replace(ODD, layout="NGCHW_GKCYX_NGKHW")}


def cut(array):
    """The number that the virtual instruction multiplies."""
    return (array.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.parametrize(
    ("which", "direction", "data"),
    in_turn(
        list(PROBLEMS),
        ["bwd_weight", "bwd_data", "fwd"],
        ["integers", "random", "special", "denormal"],
    ),
)
def test_verified(which, direction, data):
    problem = replace(PROBLEMS[which], direction=direction)
    report = verify(problem, "gfx942", data=data, budget=0.0).require()
    kernel = report.artifact.main_kernel
    assert list(kernel.mma) == ["v_mfma_f32_16x16x8_xf32"]


def test_products_are_those_of_ten_bits():
    """Nearer to the sums of cut numbers than to those of whole ones, and by f32's tolerance."""
    operands = inputs(ROUND, "random")
    got = load(compile(ROUND, "gfx942"))(*operands).astype(np.float64)
    plain = replace(ROUND, compute="")
    allowed = tolerance(plain)
    of_cut = exact_sums(plain, *map(cut, operands)).reshape(got.shape)
    assert (np.abs(got - of_cut) <= allowed.relative * np.abs(of_cut) + allowed.absolute).all()
    whole = exact_sums(plain, *operands).reshape(got.shape)
    assert np.abs(got - whole).max() > 100 * np.abs(got - of_cut).max()


def test_f32_is_never_multiplied_so_unasked():
    kernel = compile(replace(ROUND, compute=""), "gfx942").main_kernel
    assert list(kernel.mma) == ["v_mfma_f32_16x16x4_f32"]


@pytest.mark.parametrize("strategy", ["vector_gemm", "channels_last_gemm"])
def test_strategies_by_name(strategy):
    problem = replace(PROBLEMS["first"], direction="fwd")
    verify(problem, "gfx942", strategy, data="random", budget=0.0).require()


# Chips whose matrix instructions multiply f32 as numbers of ten bits.
TEN_BITS = ("gfx942", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")


def test_tf32_is_the_chips():
    problem = replace(ROUND, compute="TF32")
    assert problem.compute == "tf32"
    with pytest.raises(UnsupportedProblem, match="compute tf32: which types these are is"):
        _ = problem.operand_dtypes
    for name, target in TARGETS.items():
        if target.name != "cpu":
            asked = resolve(problem, target).asked
            assert asked.compute == ("xf32" if name in TEN_BITS else "bf16x3")
    verify(problem, "gfx942", data="random", budget=0.0).require()


def test_refused():
    with pytest.raises(
        UnsupportedProblem,
        match=r"^compute xf32: gfx950 has no instruction for it; use bf16x3, or tf32 for what the ",
    ):
        compile(ODD, "gfx950")
    for word in ("xf32", "tf32"):
        with pytest.raises(UnsupportedProblem, match=f"compute {word}: is for f32 data, not f16"):
            ConvProblem(n=1, k=1, c=1, image=(1,), filter=(1,), compute=word)
    with pytest.raises(UnsupportedProblem, match="dtype xf32: not a data type"):
        ConvProblem(n=1, k=1, c=1, image=(1,), filter=(1,), dtype="xf32")


def test_the_error_is_that_of_cut_numbers():
    a, b = (np.random.default_rng(i).random(10**6, dtype=np.float32) * 2 - 1 for i in range(2))
    off = cut(a).astype(np.float64) * cut(b) - a.astype(np.float64) * b
    row = CONVERSIONS["xf32"]
    assert off.std() == pytest.approx(row.deviation, rel=0.02)
    assert abs(off.mean()) < row.deviation / 100
    size = np.abs(a.astype(np.float64) * b)
    assert row.error / 4 < (np.abs(off)[size > 0] / size[size > 0]).max() < row.error


def test_numbers_of_more_bits_are_not_called_exact():
    problem = replace(ROUND, input_op="scale(1001)")
    first, second = inputs(problem)
    assert not after_operand_ops(problem, tolerance(problem, "integers"), first, second).exact
    assert tolerance(ROUND, "integers").exact


def test_tiles_have_whole_instructions():
    assert find_target("gfx942").mma_for("xf32")[0].joined == 2
    with pytest.raises(UnsupportedStrategy, match="tile"):
        compile(ROUND, "gfx942", StrategyRequest(name="implicit_gemm", tile=(32, 32, 4)))
