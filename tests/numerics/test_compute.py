"""f16 data multiplied as bf16: `compute="bf16"`, in every direction, on every target."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.problem.dtypes import CONVERSIONS
from conv_compiler.runtime.kernel import load
from conv_compiler.targets.processors import host_processor
from conv_compiler.verification.verify import verify, verify_artifact
from tests.checks import check
from tests.chips import EXECUTED

FEW = ("cpu", "gfx90a")
SPREAD = [
    pytest.param(name, marks=() if name in FEW else pytest.mark.slow, id=name)
    for name in ("cpu", *EXECUTED)
]
PROBLEM = ConvProblem(
    n=5,
    g=2,
    k=6,
    c=5,
    image=(9, 8),
    filter=(3, 2),
    stride=(2, 1),
    pad_low=(1, 0),
    compute="bf16",
)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("target", SPREAD)
def test_every_direction(target, direction):
    problem = replace(PROBLEM, direction=direction)
    report = check(problem, target, strategy=None if target == "cpu" else "implicit_gemm")
    verify_artifact(report.artifact, data="denormal").require()
    found = " ".join(report.artifact.main_kernel.mma)
    if target == "cpu":
        host = host_processor()
        row = host.tile_instruction("bf16") or host.pair_instruction("bf16")
        assert row is None or "bf16" in found
    else:
        assert "bf16" in found


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("target", SPREAD)
def test_every_value(target, side):
    """All 65536 of f16, to the nearest even of bf16: denormals, infinities and NaN too."""
    codes = np.arange(2**16, dtype=np.uint16).view(np.float16)
    sizes = {"k": 2**16, "c": 1} if side == 0 else {"k": 1, "c": 2**16}
    problem = ConvProblem(
        n=1, **sizes, image=(1,), filter=(1,), dtype="f16", weight_dtype="f32", compute="bf16"
    )
    ones = np.ones((1, 1, 1, 1), np.float16)
    values = codes.reshape(problem.output_shape if side == 0 else problem.input_shape)
    operands = (ones, values) if side == 0 else (values, ones)
    kernel = load(compile(problem, target), None if target == "cpu" else "vgpu")
    with np.errstate(invalid="ignore"):  # NaN
        want = codes.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(kernel(*operands).reshape(-1), want)


@pytest.mark.parametrize(
    "fields",
    [
        {"layout": "NGCHW_GKCYX_NGKHW"},
        {"layout": "GNHWC_GKYXC_GNHWK", "elementwise": "bilinear(0.5,2)", "weight_dtype": "f32"},
        {"input_op": "scale(0.3)", "output_op": "relu"},
        {"dynamic_batch": True},
        {"g": 24, "k": 1, "c": 1, "stride": (1, 1)},
    ],
    ids=lambda fields: " ".join(fields),
)
@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_with_everything_else(target, fields):
    check(replace(PROBLEM, **fields), target, 2)


def test_products_of_f16_are_found_out():
    """A kernel that multiplied the data as they are would be wrong, and by more than a few."""
    problem = replace(PROBLEM, n=16, k=16, c=16, weight_dtype="f32")
    report = verify(problem, "cpu", data="random", budget=0.0).require()
    as_they_are = compile(replace(problem, compute=""), "cpu")
    other = replace(report.artifact, vmfb=as_they_are.vmfb, held=as_they_are.held)
    assert verify_artifact(other, data="random").comparison.wrong > report.comparison.elements / 2
    assert verify_artifact(other).passed  # small integers are the same in both


def test_what_is_refused():
    assert {name for name, row in CONVERSIONS.items() if "f16" in row.of} == {"f16", "bf16"}
    with pytest.raises(UnsupportedProblem, match=r"compute bf16: is for f16 data, not f32"):
        replace(PROBLEM, dtype="f32", weight_dtype="")
    for name in ("tf32", "xf32", "bf16x3"):
        with pytest.raises(UnsupportedProblem, match=f"compute {name}: is for f32 data, not f16"):
            replace(PROBLEM, compute=name)
    with pytest.raises(UnsupportedProblem, match=r"for f16 data f16 or bf16, or for f32 data"):
        replace(PROBLEM, compute="tf19")
