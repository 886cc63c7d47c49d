"""Operands in blocks of 32 with a scale each: every code, every direction, and by definition."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import conv_compiler as cc
from conv_compiler.cli import main
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import InvalidArray, UnsupportedProblem, UnsupportedStrategy
from conv_compiler.problem.block_scales import applied_by, scale_names
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import plain, reference
from conv_compiler.verification.verify import verify, verify_kernel
from tests.chips import EXECUTED, each
from tests.problems import independent, scaled_problems
from tests.turns import in_turn

DTYPES = ("f8E4M3FN", "f8E5M2")
# Odd sizes in all axes but the one of the blocks.
SIZES = {
    "fwd": {"n": 3, "k": 5, "c": 64},
    "bwd_data": {"n": 3, "k": 64, "c": 5},
    "bwd_weight": {"n": 32, "k": 5, "c": 3},
}
# Of elements and results, and the layout.
KINDS = (
    ("f8E4M3FN", "f32", "NHWGC_GKYXC_NHWGK"),
    ("f8E5M2", "f16", "NHWC"),
    ("f8E4M3FN", "bf16", "NGCHW_GKCYX_NGKHW"),
    ("f8E5M2", "f32", "NCHW"),
    ("f8E4M3FN", "f16", "GNHWC_GKYXC_GNHWK"),
)


def of(direction: str, **fields) -> ConvProblem:
    given = {
        "g": 2, "image": (7, 6), "filter": (3, 2), "pad_low": 1, "stride": (2, 1),
        "dtype": "f8E4M3FN", "block_scales": "mx", **SIZES[direction],
    }  # fmt: skip
    return ConvProblem(direction=direction, **{**given, **fields})


def every_element_with_every_scale(dtype, compute, target, strategy=None):
    """(found, what they stand for in float64, scales): 65536 channels of one pixel hold all codes
    of elements with all codes of scales; each weight is one of them times 1, for the other images
    of its block are 0."""
    problem = ConvProblem(
        n=32, k=1, c=65536, image=(1,), filter=(1,), dtype=dtype, block_scales="mx", compute=compute
    )
    numpy = problem.data_type.to_numpy()
    elements, scales = np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2)
    image = np.zeros(problem.input_shape, numpy)
    image[0] = elements.reshape(image.shape[1:]).view(numpy)
    codes, ones = (np.full(shape, 127, np.uint8) for shape in problem.scale_shapes)
    codes[:] = scales.reshape(codes.shape)
    artifact = compile(problem, target, strategy)
    kernel = load(artifact, None if target == "cpu" else "vgpu")
    found = kernel(image, np.ones(problem.output_shape, numpy), codes, ones).reshape(256, 256)
    with np.errstate(invalid="ignore"):  # NaN
        powers = np.where(scales == 255, np.nan, 2.0 ** (scales.astype(int) - 127))
        return found, elements.view(numpy).astype(np.float64) * powers


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", ["cpu", "gfx90a", "gfx950"])
def test_every_element_with_every_scale(target, dtype):
    found, want = every_element_with_every_scale(dtype, "bf16", target)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN, and what is above bf16's largest
        want = want.astype(ml_dtypes.bfloat16).astype(np.float32)
    if target != "gfx950":  # docs/numerics.md
        want[np.abs(want) < 2.0**-126] = 0
    np.testing.assert_array_equal(found, want)
    assert np.isfinite(want).mean() > 0.9


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_instruction_that_takes_scales_rounds_nothing(dtype):
    """Every element with every scale: no bf16 is in between."""
    found, want = every_element_with_every_scale(dtype, "", "gfx950", "scaled_gemm")
    with np.errstate(invalid="ignore", over="ignore"):  # NaN, and what is above f32's largest
        np.testing.assert_array_equal(found, want.astype(np.float32))


def of_instruction(direction, **fields) -> ConvProblem:
    """A problem whose result has its channels last."""
    return of(direction, **{"layout": "NHWGC_GKYXC_NHWGK", **fields})


@pytest.mark.parametrize(
    ("direction", "kind", "data"),
    in_turn(
        ["fwd", "bwd_weight"],
        [one for one in KINDS if not one[2].startswith("N") or one[2].endswith(("NHWGK", "NHWC"))],
        ["integers", "random", "special", "denormal"],
    ),
)
def test_scales_applied_by_the_instruction(direction, kind, data):
    dtype, weight_dtype, layout = kind
    problem = of_instruction(direction, dtype=dtype, weight_dtype=weight_dtype, layout=layout)
    report = verify(problem, "gfx950", "scaled_gemm", data=data, device="vgpu-checked", budget=0.0)
    report.require()
    assert list(report.artifact.main_kernel.mma) == ["v_mfma_scale_f32_16x16x128_f8f6f4"]
    assert (report.problem.compute, report.problem.block_scales) == ("", "mx")
    assert applied_by(report.problem) == "the matrix instruction"


@pytest.mark.parametrize("row_tiles", [1, 2, 4])
@pytest.mark.parametrize(("column_tiles", "waves"), in_turn([1, 2, 4], [1, 2, 4]))
@pytest.mark.parametrize("direction", ["fwd", "bwd_weight"])
def test_every_tile_of_the_instruction(direction, row_tiles, column_tiles, waves):
    """With rests of rows, columns and blocks: 5 blocks are one product of 4 and one of 1."""
    along = {"fwd": {"c": 160, "k": 57}, "bwd_weight": {"n": 160, "k": 57, "c": 23}}
    problem = of_instruction(direction, **along[direction], image=(9, 8))
    wanted = StrategyRequest(name="scaled_gemm", tile=(row_tiles, column_tiles, waves))
    verify(problem, "gfx950", wanted, budget=0.0).require()


@pytest.mark.parametrize(
    ("direction", "fields"),
    [
        ("fwd", {"elementwise": "bias>relu", "weight_dtype": "f16"}),
        ("fwd", {"elementwise": "add:f32", "k": 8, "result_operand": True}),
        ("fwd", {"elementwise": "scale_by", "amax": True, "weight_dtype": "bf16"}),
        ("fwd", {"image": (5, 4, 3), "filter": (2, 2, 1), "stride": 1, "k": 20}),
        ("fwd", {"image": (19,), "filter": (3,), "stride": 2, "dilation": 3, "pad_high": 4}),
        ("bwd_weight", {"elementwise": "bilinear(0.5,2)", "weight_dtype": "f16"}),
        ("bwd_weight", {"image": (19,), "filter": (3,), "stride": 2, "dilation": 3, "n": 64}),
    ],
)
def test_the_instruction_beside_other_features(direction, fields):
    for data in ("integers", "random"):
        problem = of_instruction(direction, **fields)
        verify(problem, "gfx950", "scaled_gemm", data=data, budget=0.0).require()


def test_what_applies_scales_is_chosen_and_said():
    """The conversion alone where `compute` asks for it; never one in the place of the other."""
    problem = of("fwd", k=64, c=256, image=(14, 14), stride=1)
    artifact = compile(problem, "gfx950")
    assert (artifact.strategy.name, artifact.problem.compute) == ("scaled_gemm", "")
    report = verify(replace(problem, compute="bf16"), "gfx950", budget=0.0).require()
    assert report.artifact.strategy.name != "scaled_gemm"
    assert (report.problem.compute, report.problem.block_scales) == ("bf16", "mx")
    for other in (replace(problem, compute="bf16"), of("bwd_data"), of("fwd", layout="NCHW")):
        with pytest.raises(UnsupportedStrategy, match="strategy scaled_gemm: has no tile"):
            compile(other, "gfx950", "scaled_gemm")
    with pytest.raises(UnsupportedStrategy, match="gfx942 has an instruction that takes scales"):
        compile(problem, "gfx942", "scaled_gemm")


@pytest.mark.parametrize(
    ("target", "direction", "kind", "data"),
    in_turn(
        ["cpu", "gfx950", "gfx942", "gfx1201"],
        list(SIZES),
        KINDS,
        ["integers", "random", "special", "denormal"],
    ),
)
def test_directions(target, direction, kind, data):
    dtype, weight_dtype, layout = kind
    problem = of(direction, dtype=dtype, weight_dtype=weight_dtype, layout=layout)
    verify(problem, target, data=data, budget=0.0).require()


@pytest.mark.parametrize("target", each(EXECUTED))
def test_on_every_chip(target):
    report = verify(of("fwd", k=40), target, budget=0.0).require()
    by_instruction = report.artifact.strategy.name == "scaled_gemm"
    assert (report.problem.compute, report.problem.block_scales) == (
        "" if by_instruction else "bf16",
        "mx",
    )
    assert target == "gfx950" or not by_instruction


@pytest.mark.parametrize("target", ["cpu", "gfx950"])
@pytest.mark.parametrize(
    ("direction", "fields"),
    [
        ("fwd", {"elementwise": "bias>relu", "input_op": "scale(0.3)"}),
        ("fwd", {"amax": True, "elementwise": "scale_by", "image": (9,), "filter": (3,),
                 "stride": 1, "dilation": 2}),
        ("bwd_data", {"elementwise": "add:f32", "weight_op": "relu"}),
        ("bwd_data", {"pad_mode": "circular", "result_operand": True}),
        ("bwd_weight", {"elementwise": "bilinear(0.5,2)", "amax": True, "weight_dtype": "f32"}),
        ("bwd_weight", {"n": 64, "image": (3, 4, 3), "filter": (2, 2, 1), "stride": 1}),
        ("fwd", {"g": 5, "k": 1, "c": 32, "filter": (1, 1), "pad_low": 0}),
        ("fwd", {"n": 0}),
        ("bwd_weight", {"n": 0}),
    ],
)  # fmt: skip
def test_beside_other_features(target, direction, fields):
    for data in ("integers", "random"):
        verify(of(direction, **fields), target, data=data, budget=0.0).require()


@pytest.mark.parametrize("parts", [2, 3])
def test_split_k(parts):
    for direction in SIZES:
        problem = of(direction, filter=(1, 1), compute="bf16")
        verify(problem, "gfx950", split_k=parts, budget=0.0).require()


# One in each run on each of these, and more with the slow tests.
DRAWN_ON = ("cpu", "gfx950", "gfx90a", "gfx942", "gfx1100", "gfx1201")


@pytest.mark.parametrize(
    ("target", "number"),
    [
        pytest.param(target, number, marks=[pytest.mark.slow] * (number > 0))
        for target in DRAWN_ON
        for number in range(12)
    ],
)
def test_drawn(target, number):
    (problem,) = independent(scaled_problems(), 1, f"scaled {target} {number}")
    data = "random"
    if number % 2 == 0:
        with suppress(UnsupportedProblem):  # integers of so many products are not exact
            inputs(problem, "integers", number)
            data = "integers"
    verify(problem, target, data=data, seed=number, budget=0.0).require()


def test_a_dot_product_of_blocks():
    """The standard's own words: of each two blocks the product of the scales times the sum of the
    products of the elements."""
    problem = of("fwd", n=2, k=3, c=96, g=1, filter=(1, 1), pad_low=0, stride=1)
    image, weight, s, t = inputs(problem, "random")
    want = np.zeros(problem.output_shape)
    for n, h, w, k in itertools.product(range(2), range(7), range(6), range(3)):
        for block in range(3):
            at = slice(32 * block, 32 * block + 32)
            a, b = (x.astype(np.float64) for x in (image[n, h, w, 0, at], weight[0, k, 0, 0, at]))
            exponent = int(s[n, h, w, 0, block]) + int(t[0, k, 0, 0, block]) - 254
            want[n, h, w, 0, k] += 2.0**exponent * (a * b).sum()
    np.testing.assert_allclose(reference(problem, image, weight, s, t), want, rtol=1e-12)
    np.testing.assert_allclose(plain(problem, image, weight, s, t), want, rtol=1e-12)


@pytest.mark.parametrize("direction", SIZES)
def test_verification_finds_another_scale(direction):
    """One scale off by a factor of two is told from the right one."""
    problem = of(direction)
    artifact = compile(problem, "cpu")

    class Wrong:
        device, virtual = "cpu", False

        def __init__(self, number):
            self.kernel, self.number = load(artifact), number

        def put(self, array):
            return array

        def __call__(self, *operands, out=None):
            given = [np.array(one) for one in operands]
            # A pixel in the middle, which outputs read.
            place = tuple(size // 2 for size in given[self.number].shape)
            given[self.number][place] += 1
            return self.kernel.put(self.kernel(*given))

    for number, data in ((2, "integers"), (3, "random")):
        report = verify_kernel(artifact, Wrong(number), data, 0, 1)
        assert not report.passed


def test_arrays():
    """Codes as uint8 or as numbers of E8M0, by `run` and by a kernel; others are refused."""
    problem = of("bwd_data")
    artifact = cc.compile(problem, "cpu")
    gradient, weight, *scales = inputs(problem, "random")
    found = cc.run(artifact, gradient, weight, scales=scales)
    numbers = [codes.view(ml_dtypes.float8_e8m0fnu) for codes in scales]
    np.testing.assert_array_equal(cc.run(artifact, gradient, weight, scales=numbers), found)
    kernel = cc.load(artifact)
    assert [one.name for one in kernel.operands] == [
        *("d_output", "weight", "d_output_scales", "weight_scales")
    ]
    placed = [kernel.put(one) for one in (gradient, weight, *scales)]
    np.testing.assert_array_equal(kernel(*placed).to_host(), found)
    with pytest.raises(InvalidArray, match="operands 2: the kernel takes 4; give d_output, weight"):
        cc.run(artifact, gradient, weight)
    with pytest.raises(InvalidArray, match="d_output_scales int8: not the kernel's type; give uin"):
        cc.run(artifact, gradient, weight, scales=[codes.view(np.int8) for codes in scales])
    with pytest.raises(InvalidArray, match=r"weight_scales .*: not the kernel's shape"):
        cc.run(artifact, gradient, weight, scales=[scales[0], scales[1][:1]])
    with pytest.raises(InvalidArray, match="weight_scales: not given"):
        reference(problem, gradient, weight, scales[0])
    with pytest.raises(InvalidArray, match=r"d_output_scales .* not the problem's; give"):
        reference(problem, gradient, weight, *reversed(scales))


def test_arrays_of_pytorch():
    torch = pytest.importorskip("torch")
    problem = of("fwd")
    artifact = cc.compile(problem, "cpu")
    operands = inputs(problem, "random")
    names = (torch.float8_e4m3fn, torch.float8_e4m3fn, torch.uint8, torch.uint8)
    given = [
        torch.from_numpy(one.view(np.uint8)).view(name)
        for one, name in zip(operands, names, strict=True)
    ]
    found = cc.load(artifact)(*given)
    np.testing.assert_array_equal(found.numpy(), cc.load(artifact)(*operands))


def test_on_the_command_line(tmp_path, capsys):
    """Scales in files, as codes or as E8M0; `inspect` says what applies them."""
    problem = of("fwd", g=1, stride=1, pad_low=0)
    operands = inputs(problem)
    names = ("input", "weight", *scale_names(problem))
    raw = (*operands[:3], operands[3].view(ml_dtypes.float8_e8m0fnu))
    words = ["-n", "3", "-k", "5", "-c", "64", "--image", "7x6", "--filter", "3x2"]
    words += ["--direction", "fwd", "--dtype", "f8E4M3FN", "--block-scales", "mx"]
    paths = [str(tmp_path / f"{name}.npy") for name in names]
    for path, array in zip(paths, raw, strict=True):
        np.save(path, array)
    files = ["--input", paths[0], "--weight", paths[1]]
    scales = ["--scales", *paths[2:]]
    assert main(["run", *words, *files, *scales, "-o", str(tmp_path / "y.npy")]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), plain(problem, *operands))
    assert main(["run", *words, *files, "-o", str(tmp_path / "z.npy")]) == 2
    assert "input_scales: not given" in capsys.readouterr().err
    plain_words = [one for one in words if one not in ("--block-scales", "mx")]
    given = ["run", *plain_words, *files, *scales, "-o", str(tmp_path / "z.npy")]
    assert main(given) == 2
    assert "not taken; give input, weight" in capsys.readouterr().err
    assert not (tmp_path / "z.npy").exists()
    assert main(["inspect", *words, "--target", "gfx942"]) == 0
    assert "scales    a conversion to bf16 in front\n" in capsys.readouterr().out
    given = ["inspect", *words, "--target", "gfx950", "--strategy", "scaled_gemm"]
    assert main(given) == 0
    assert "scales    the matrix instruction\n" in capsys.readouterr().out
    assert main([*given, "--model"]) == 0
    assert "modelled, not measured" in capsys.readouterr().out


def test_larger_problems_stay_exact():
    """So many products that integers are drawn from a narrower range."""
    verify(replace(of("bwd_weight"), n=256, image=(40, 40)), "cpu", budget=0.0).require()
