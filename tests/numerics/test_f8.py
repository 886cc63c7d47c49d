"""8-bit floats: every code as ml_dtypes reads it, natively and emulated.

Random problems have them in test_random.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.dtypes import DTYPES as DTYPE_ROWS
from conv_compiler.runtime.kernel import load
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.targets.processors import host_processor
from conv_compiler.verification.verify import verify
from tests.chips import EXECUTED, each
from tests.problems import F8_TYPES
from tests.turns import in_turn

DTYPES = tuple(dict.fromkeys(data for data, _ in F8_TYPES))
# gfx942 and gfx1201 have one kind each and emulate the other; the rest is as these.
FEW = ("cpu", "gfx942", "gfx1201")
SPREAD = [
    pytest.param(name, marks=() if name in FEW else pytest.mark.slow, id=name)
    for name in ("cpu", *EXECUTED)
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", SPREAD)
def test_every_code(dtype, target):
    """256 channels of one pixel hold all codes; each weight is one of them times 1."""
    problem = ConvProblem(n=1, k=1, c=256, image=(1,), filter=(1,), dtype=dtype, weight_dtype="f32")
    artifact = compile(problem, target)
    numpy = problem.data_type.to_numpy()
    codes = np.arange(256, dtype=np.uint8).view(numpy).reshape(problem.input_shape)
    one = np.ones(problem.output_shape, numpy)
    kernel = load(artifact, None if target == "cpu" else "vgpu")
    found = kernel(codes, one).reshape(-1)
    np.testing.assert_array_equal(found, codes.astype(np.float32).reshape(-1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", SPREAD)
def test_results_of_8_bits(target, dtype):
    """Each code times a scale of the call, as ml_dtypes rounds it once saturated: halfway cases,
    denormals, numbers beyond the largest."""
    problem = ConvProblem(
        n=1, k=1, c=256, image=(1,), filter=(1,), dtype=dtype, weight_dtype=dtype,
        elementwise="scale_by",
    )  # fmt: skip
    numpy, largest = problem.data_type.to_numpy(), np.float32(problem.data_type.largest)
    codes = np.arange(256, dtype=np.uint8).view(numpy)
    kernel = load(compile(problem, target), None if target == "cpu" else "vgpu")
    one = np.ones(problem.output_shape, numpy)
    for scale in (1.0, 0.5, 0.37, 2.0**-6, 1000.0, -1.25):
        got = kernel(codes.reshape(problem.input_shape), one, np.float32(scale)).reshape(-1)
        with np.errstate(invalid="ignore"):  # NaN
            want = (codes.astype(np.float32) * np.float32(scale)).clip(-largest, largest)
        np.testing.assert_array_equal(
            got.astype(np.float32), want.astype(numpy).astype(np.float32), str(scale)
        )


@pytest.mark.parametrize(
    ("target", "dtype", "compute"),
    in_turn(SPREAD, ["f16", "bf16"], ["f8E5M2,f8E4M3FN", "f8E5M2FNUZ,f8E4M3FNUZ"]),
)
def test_every_value_narrowed(target, dtype, compute):
    """All values of 16 bits, as ml_dtypes converts them once saturated: input, output gradient.

    Numbers, infinities, NaN and halfway cases; each weight is one of them times 1.
    """
    codes = np.arange(2**16, dtype=np.uint16).view(DTYPE_ROWS[dtype].to_numpy())
    for side, name in enumerate(compute.split(",")):
        sizes = {"k": 2**16, "c": 1} if side == 0 else {"k": 1, "c": 2**16}
        problem = ConvProblem(
            n=1, **sizes, image=(1,), filter=(1,), dtype=dtype, weight_dtype="f32", compute=compute
        )
        row = DTYPE_ROWS[name]
        largest = np.float32(row.largest)
        with np.errstate(invalid="ignore"):  # NaN
            want = codes.astype(np.float32).clip(-largest, largest).astype(row.to_numpy())
        ones = np.ones((1, 1, 1, 1), codes.dtype)
        values = codes.reshape(problem.output_shape if side == 0 else problem.input_shape)
        operands = (ones, values) if side == 0 else (values, ones)
        kernel = load(compile(problem, target), None if target == "cpu" else "vgpu")
        np.testing.assert_array_equal(kernel(*operands).reshape(-1), want.astype(np.float32))


@pytest.mark.parametrize(("target", "dtype"), in_turn(["cpu", *each(EXECUTED)], DTYPES))
def test_matrix_code_of_the_type_or_of_bf16(dtype, target):
    problem = ConvProblem(n=4, k=32, c=32, image=(6, 6), filter=(3, 3), dtype=dtype)
    report = verify(problem, target, split_k=2, budget=0.0).require()
    found = " ".join(report.artifact.main_kernel.mma)
    if target == "cpu":
        host = host_processor()
        row = host.tile_instruction("bf16") or host.pair_instruction("bf16")
        assert found == (row.name if row else "")
    elif find_target(target).mma_for(dtype):
        assert {"f8E4M3": "fp8", "f8E5M2": "bf8"}[dtype[:6]] in found
    else:
        assert "bf16" in found


@pytest.mark.parametrize(
    ("target", "words"),
    [("gfx942", "bf8_fp8"), ("gfx950", "bf8_fp8"), ("gfx1201", "bf8_fp8"), ("gfx90a", "bf16")],
)
def test_composable_kernels_compute(target, words):
    """f16 data, output gradient as bf8, input as fp8, of the chip's own kind."""
    problem = ConvProblem(n=4, k=32, c=32, image=(6, 6), filter=(3, 3), compute="bf8,fp8")
    report = verify(problem, target, data="random", budget=0.0).require()
    assert words in " ".join(report.artifact.main_kernel.mma)
    kind = "FNUZ" if target == "gfx942" else ""
    assert report.problem.compute == f"f8E5M2{kind},f8E4M3FN{'UZ' if kind else ''}"


@pytest.mark.parametrize("target", ["sm_80", "sm_89"])
def test_nvidia_takes_bf16(target):
    problem = ConvProblem(n=16, k=64, c=64, image=(8, 8), filter=(3, 3), dtype="f8E4M3FN")
    assert "bf16" in " ".join(compile(problem, target).main_kernel.mma)


@pytest.mark.parametrize(
    ("types", "instruction"),
    in_turn(
        [
            {"dtype": "f8E4M3FN"},
            {"dtype": "f8E5M2"},
            {"dtype": "f16", "compute": "f8E5M2,f8E4M3FN"},
            {"dtype": "bf16", "compute": "f8E4M3FN,f8E5M2"},
        ],
        ["16x16x128", "32x32x64"],
    ),
)
def test_the_long_instructions_of_gfx950(types, instruction):
    """Exact sums, with rests of tiles and windows: fields of the instruction tell both types."""
    problem = ConvProblem(
        n=8, k=60, c=72, image=(9, 8), filter=(3, 3), pad_low=(1, 1), stride=(2, 1), **types
    )
    wanted = StrategyRequest(name="implicit_gemm", tile=(64, 64, 128))
    strategy = next(
        one
        for one in choose(problem, find_target("gfx950"), wanted, 2)
        if f"_{instruction}_" in one.mma
    )
    report = verify(problem, "gfx950", strategy, device="vgpu-checked").require()
    assert list(report.artifact.main_kernel.mma) == [f"v_mfma_f32_{instruction}_f8f6f4"]
