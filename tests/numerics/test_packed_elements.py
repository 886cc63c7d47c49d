"""Operands in blocks of 32 whose elements have 4 or 6 bits: every code, every direction, and by the
instruction of gfx950."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import conv_compiler as cc
from conv_compiler.cli import main
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import InvalidArray
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.runtime.kernel import load
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import plain, reference
from conv_compiler.verification.verdict import flushed_types
from conv_compiler.verification.verify import verify
from tests.chips import EXECUTED, each
from tests.turns import in_turn

PACKED = [row.name for row in DTYPES.values() if row.is_packed]
# Odd sizes in all axes but that of the blocks and the last one, whose elements share bytes.
SIZES = {
    "fwd": {"n": 3, "k": 5, "c": 64},
    "bwd_data": {"n": 3, "k": 64, "c": 12},
    "bwd_weight": {"n": 32, "k": 4, "c": 12},
}
# Results and the layout. Groups of channels of the second share bytes; the last axes of the third
# and fourth are columns.
KINDS = (
    ("f32", "NHWGC_GKYXC_NHWGK", {}),
    ("f16", "NHWC", {"bwd_weight": {"k": 6, "c": 2}, "bwd_data": {"c": 4}}),
    ("bf16", "NGCHW_GKCYX_NGKHW", {}),
    ("f32", "NCHW", {}),
    ("f16", "GNHWC_GKYXC_GNHWK", {}),
)
SPACE = {"image": (7, 5), "filter": (3, 2), "pad_low": 1, "stride": (2, 1)}
COLUMNS = {**SPACE, "image": (7, 16), "filter": (3, 4), "pad_high": (1, 2)}


def of(direction: str, kind=KINDS[0], **fields) -> ConvProblem:
    """A problem; of layouts with columns last these are a multiple of 4."""
    weight_dtype, layout, sizes = kind
    space = SPACE if layout.split("_")[0].endswith("C") else COLUMNS
    given = {
        "g": 2, "dtype": "f4E2M1FN", "block_scales": "mx", "layout": layout,
        "weight_dtype": weight_dtype, **space, **SIZES[direction], **sizes.get(direction, {}),
    }  # fmt: skip
    return ConvProblem(direction=direction, **{**given, **fields})


def every_element_with_every_scale(dtype, direction, compute, target, strategy=None):
    """(artifact, found, what they stand for in float64): channels of one pixel, images of `fwd`,
    hold all codes of elements with all codes of scales, each times 1."""
    codes = 2 ** DTYPES[dtype].bits
    elements, scales = np.meshgrid(*(np.arange(n, dtype=np.uint8) for n in (codes, 256)))
    sizes = (
        {"n": 32, "c": codes * 256, "k": 4}
        if direction == "bwd_weight"
        else {"n": codes * 256, "c": 32, "k": 1}
    )
    problem = ConvProblem(
        **sizes, image=(1,), filter=(1,), dtype=dtype, block_scales="mx", compute=compute,
        direction=direction,
    )  # fmt: skip
    numpy = problem.data_type.to_numpy()
    image = np.zeros(problem.input_shape, numpy)
    place = np.s_[0, 0, 0] if direction == "bwd_weight" else np.s_[:, 0, 0, 5]
    image[place] = elements.reshape(-1).view(numpy)
    ones = np.ones(problem.operand_shapes[1], numpy)
    of_image, of_ones = (np.full(shape, 127, np.uint8) for shape in problem.scale_shapes)
    of_image[:] = scales.reshape(of_image.shape)
    artifact = compile(problem, target, strategy)
    kernel = load(artifact, None if target == "cpu" else "vgpu")
    found = kernel(cc.pack(image), cc.pack(ones), of_image, of_ones)
    found = found.reshape(-1, codes * 256)[0].reshape(256, codes)
    with np.errstate(invalid="ignore"):  # NaN
        powers = np.where(scales == 255, np.nan, 2.0 ** (scales.astype(int) - 127))
        return artifact, found, elements.view(numpy).astype(np.float64) * powers


@pytest.mark.parametrize(
    ("target", "direction", "dtype"),
    in_turn(["cpu", "gfx90a", "gfx942", "gfx950"], ["fwd", "bwd_weight"], PACKED),
)
def test_every_element_with_every_scale(target, direction, dtype):
    artifact, found, want = every_element_with_every_scale(dtype, direction, "bf16", target)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN, and what is above bf16's largest
        want = want.astype(ml_dtypes.bfloat16).astype(np.float32)
    if "bf16" in flushed_types(artifact):
        want[np.abs(want) < 2.0**-126] = 0
    np.testing.assert_array_equal(found, want)
    assert np.isfinite(want).mean() > 0.9


@pytest.mark.parametrize("dtype", PACKED)
@pytest.mark.parametrize("direction", ["fwd", "bwd_weight"])
def test_an_instruction_that_takes_scales_rounds_nothing(direction, dtype):
    _, found, want = every_element_with_every_scale(dtype, direction, "", "gfx950", "scaled_gemm")
    with np.errstate(invalid="ignore", over="ignore"):  # NaN, and what is above f32's largest
        np.testing.assert_array_equal(found, want.astype(np.float32))


@pytest.mark.parametrize(
    ("target", "direction", "kind", "dtype"),
    in_turn(["cpu", "gfx90a", "gfx942", "gfx950", "gfx1201"], list(SIZES), KINDS, PACKED),
)
def test_directions(target, direction, kind, dtype):
    for data in ("integers", "random"):
        problem = of(direction, kind, dtype=dtype, compute="bf16")
        report = verify(problem, target, data=data, budget=0.0).require()
        assert (report.problem.compute, report.problem.block_scales) == ("bf16", "mx")


@pytest.mark.parametrize(
    ("direction", "data", "dtype"), in_turn(list(SIZES), ["special", "denormal"], PACKED)
)
def test_special_and_tiny_numbers(direction, data, dtype):
    for target in ("cpu", "gfx90a"):
        verify(of(direction, dtype=dtype), target, data=data, budget=0.0).require()


@pytest.mark.parametrize(("target", "dtype"), in_turn(each(EXECUTED), PACKED))
def test_on_every_chip(target, dtype):
    report = verify(of("fwd", k=40, dtype=dtype), target, budget=0.0).require()
    by_instruction = report.artifact.strategy.name == "scaled_gemm"
    assert report.problem.compute == ("" if by_instruction else "bf16")
    assert target == "gfx950" or not by_instruction


@pytest.mark.parametrize(
    ("direction", "kind", "dtype", "data"),
    in_turn(
        ["fwd", "bwd_weight"],
        [one for one in KINDS if one[1].endswith(("GK", "WK", "WC")) and one[1] != "NCHW"],
        PACKED,
        ["integers", "random", "special", "denormal"],
    ),
)
def test_scales_applied_by_the_instruction(direction, kind, dtype, data):
    problem = of(direction, kind, dtype=dtype)
    report = verify(problem, "gfx950", "scaled_gemm", data=data, device="vgpu-checked", budget=0.0)
    report.require()
    assert list(report.artifact.main_kernel.mma) == ["v_mfma_scale_f32_16x16x128_f8f6f4"]
    assert (report.problem.compute, report.problem.block_scales) == ("", "mx")


@pytest.mark.parametrize(
    ("direction", "tile", "dtype"),
    in_turn(["fwd", "bwd_weight"], [(1, 1, 4), (2, 4, 2), (4, 2, 1)], PACKED),
)
def test_tiles_of_the_instruction(direction, tile, dtype):
    """With rests of rows, columns and blocks: 5 blocks are one product of 4 and one of 1."""
    along = {"fwd": {"c": 160, "k": 57}, "bwd_weight": {"n": 160, "k": 56, "c": 20}}
    problem = of(direction, dtype=dtype, **along[direction], image=(9, 8))
    wanted = StrategyRequest(name="scaled_gemm", tile=tile)
    verify(problem, "gfx950", wanted, budget=0.0).require()


@pytest.mark.parametrize(
    ("target", "strategy"), [("cpu", None), ("gfx950", None), ("gfx950", "scaled_gemm")]
)
@pytest.mark.parametrize(
    ("direction", "fields"),
    [
        ("fwd", {"elementwise": "bias>relu", "weight_dtype": "f16", "dtype": "f6E3M2FN"}),
        ("fwd", {"amax": True, "elementwise": "scale_by", "image": (9,), "filter": (3,),
                 "stride": 1, "dilation": 2}),
        ("bwd_weight", {"n": 64, "image": (3, 4, 3), "filter": (2, 2, 1), "stride": 1,
                        "dtype": "f6E2M3FN"}),
    ],
)  # fmt: skip
def test_beside_other_features(target, strategy, direction, fields):
    for data in ("integers", "random"):
        verify(of(direction, **fields), target, strategy, data=data, budget=0.0).require()


@pytest.mark.parametrize(
    ("direction", "fields"),
    [
        ("fwd", {"input_op": "scale(0.3)", "dtype": "f6E2M3FN"}),
        ("bwd_data", {"pad_mode": "circular", "result_operand": True}),
        ("fwd", {"n": 0}),
        ("bwd_weight", {"n": 0, "dtype": "f6E3M2FN"}),
    ],
)
def test_what_the_conversion_alone_takes(direction, fields):
    verify(of(direction, **fields), "gfx950", budget=0.0).require()


def test_arrays():
    """Packed arrays in, without a copy; others are refused, and the message names what packs."""
    problem = of("bwd_data", dtype="f6E2M3FN")
    artifact = cc.compile(problem, "cpu")
    gradient, weight, *scales = inputs(problem, "random")
    assert (gradient.shape, weight.shape) == problem.held_shapes
    assert gradient.nbytes == problem.data_type.bytes_of(np.prod(problem.output_shape))
    found = cc.run(artifact, gradient, weight, scales=scales)
    elements = cc.unpack(gradient, "f6E2M3FN")
    np.testing.assert_array_equal(cc.run(artifact, cc.pack(elements), weight, scales=scales), found)
    kernel = cc.load(artifact)
    assert [(one.dtype, one.packed) for one in kernel.operands] == [
        *[(np.uint8, "f6E2M3FN")] * 2,
        *[(np.uint8, "")] * 2,
    ]
    with pytest.raises(InvalidArray, match="d_output float6_e2m3fn: a byte for each element; give"):
        cc.run(artifact, elements, weight, scales=scales)
    with pytest.raises(InvalidArray, match="weight int8: not the kernel's type; give uint8"):
        cc.run(artifact, gradient, weight.view(np.int8), scales=scales)
    with pytest.raises(InvalidArray, match=r"not the problem's packed elements; give .* uint8"):
        reference(problem, elements, weight, *scales)


@pytest.mark.parametrize("dtype", ["float4_e2m1fn_x2", "uint8"])
def test_arrays_of_pytorch(dtype):
    torch = pytest.importorskip("torch")
    problem = of("fwd")
    artifact = compile(problem, "cpu")
    operands = inputs(problem, "random")
    given = [torch.from_numpy(one) for one in operands]
    given[:2] = [one.view(getattr(torch, dtype)) for one in given[:2]]
    found = cc.load(artifact)(*given)
    np.testing.assert_array_equal(found.numpy(), cc.load(artifact)(*operands))


def test_reference_is_the_definition():
    problem = of("fwd", dtype="f6E3M2FN", n=1, k=2, c=32, g=1, filter=(1, 1), pad_low=0, stride=1)
    image, weight, s, t = inputs(problem, "random")
    a, b = (cc.unpack(one, problem.dtype).astype(np.float64) for one in (image, weight))
    a, b = a * 2.0 ** (s.astype(int) - 127), b * 2.0 ** (t.astype(int) - 127)
    want = np.einsum("nhwgc,gkyxc->nhwgk", a, b)
    np.testing.assert_allclose(reference(problem, image, weight, s, t), want, rtol=1e-12)
    np.testing.assert_allclose(plain(problem, image, weight, s, t), want, rtol=1e-12)


def test_bytes_are_those_of_packed_elements():
    wide = of("fwd", dtype="f8E4M3FN")
    elements = sum(map(np.prod, wide.operand_shapes))
    for dtype in PACKED:
        saved = elements * (8 - DTYPES[dtype].bits) // 8
        assert replace(wide, dtype=dtype).bytes == wide.bytes - saved


def test_on_the_command_line(tmp_path, capsys):
    problem = of("fwd", dtype="f4E2M1FN", g=1, stride=1, pad_low=0)
    operands = inputs(problem)
    words = ["-n", "3", "-k", "5", "-c", "64", "--image", "7x5", "--filter", "3x2"]
    words += ["--direction", "fwd", "--dtype", "float4_e2m1fn", "--block-scales", "mx"]
    paths = [str(tmp_path / f"{at}.npy") for at in range(4)]
    for path, array in zip(paths, operands, strict=True):
        np.save(path, array)
    files = ["--input", paths[0], "--weight", paths[1], "--scales", *paths[2:]]
    assert main(["run", *words, *files, "-o", str(tmp_path / "y.npy")]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), plain(problem, *operands))
    assert main(["verify", *words]) == 0
    given = ["inspect", *words, "--target", "gfx950", "--strategy", "scaled_gemm"]
    assert main(given) == 0
    assert "scales    the matrix instruction\n" in capsys.readouterr().out
    assert main([*given, "--model"]) == 0
    assert main(["inspect", *words, "--target", "gfx942"]) == 0
    assert main(["roofline", *words, "--target", "gfx950"]) == 0
    assert main(["compile", *words, "-o", str(tmp_path / "y.vmfb")]) == 0
