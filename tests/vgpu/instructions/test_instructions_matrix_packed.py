"""CDNA4 products of packed 8-, 6- and 4-bit operands, plain and scaled."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.vgpu.program import OPSEL, OPSEL_HI, Operand
from tests.vgpu.support.instructions import Wave, instruction, vgpr
from tests.vgpu.support.matrix_registers import Cdna, gather, put

A, B, C, D = 0, 32, 64, 128
F32, F16, BF16, I8 = np.float32, np.float16, ml_dtypes.bfloat16, np.int8
FNUZ = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
OCP = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}


FORMATS = (
    (ml_dtypes.float8_e4m3fn, 8),
    (ml_dtypes.float8_e5m2, 8),
    (ml_dtypes.float6_e2m3fn, 6),
    (ml_dtypes.float6_e3m2fn, 6),
    (ml_dtypes.float4_e2m1fn, 4),
)
SHAPES = ((16, 128), (32, 64))
COMMON = np.array([0, 0.5, 1, 1.5, 2, 3, 4, -0.5, -1, -1.5, -2, -3, -4])  # in every format


def packed_place(m: int, k: int, bits: int) -> Callable[[int, int], tuple[int, int]]:
    """(lane, element) of A[i][k]: AMD's article on the matrix cores of CDNA3 and CDNA4.

    8-bit operands have runs of 16 depths a lane, in both halves of the depths; others one of 32.
    """
    groups = 64 // m
    if bits == 8:
        return lambda i, d: (d // 16 % groups * m + i, d // (16 * groups) * 16 + d % 16)
    return lambda i, d: (d // 32 * m + i, d % 32)


def spread(matrix: np.ndarray, bits: int) -> np.ndarray:
    """A[i][k] (or B transposed) as [lane][element]."""
    m, k = matrix.shape
    lanes = np.zeros((64, 32), matrix.dtype)
    place = packed_place(m, k, bits)
    for i, d in np.ndindex(m, k):
        lanes[place(i, d)] = matrix[i, d]
    return lanes


def run_packed(m: int, k: int, a_format: int, b_format: int, lhs: np.ndarray, rhs: np.ndarray,
               scales: tuple[np.ndarray, np.ndarray] | None = None, byte: int = 0) -> np.ndarray:  # fmt: skip
    """D = lhs @ rhs + 1, or with powers of two for [row][32 depths] of A and of B transposed."""
    wave = Wave("gfx950")
    counts = []
    for number, matrix, form in ((A, lhs, a_format), (B, rhs.T, b_format)):
        kind, bits = FORMATS[form]
        counts.append(put(wave, number, spread(matrix.astype(kind), bits), bits))
    wave.v[C : C + m * m // 64] = np.float32(1).view(np.uint32)
    layout = Cdna(m, k)
    shape = f"{m}x{m}x{k}_f8f6f4"
    product = instruction(
        f"v_mfma_{'scale_' if scales else ''}f32_{shape}",
        d=vgpr(D, m * m // 64),
        a=vgpr(A, counts[0]),
        b=vgpr(B, counts[1]),
        c=vgpr(C, m * m // 64),
        cbsz=a_format,
        blgp=b_format,
    )
    records = [product]
    if scales:
        select = (OPSEL if byte & 1 else 0) | (OPSEL_HI if byte & 2 else 0)
        for number, scale in zip((200, 201), scales, strict=True):
            wave.v[number] = 0x55555555  # other bytes must not matter
            value = scale.T.reshape(-1).astype(np.uint32)  # lane: row + M * (depths / 32)
            wave.v[number] = wave.v[number] & ~np.uint32(0xFF << 8 * byte) | value << 8 * byte
        operands = {"a": Operand(reg=456, dwords=1, mods=select)}
        operands["b"] = Operand(reg=457, dwords=1, mods=select)
        records.insert(0, instruction("v_mfma_ld_scale_b32", **operands))
    wave.run(*records)
    dwords = np.ascontiguousarray(wave.v[D : D + m * m // 64].T).view(F32)
    return gather((m, m), dwords, lambda i, j: layout.result(0, i, j))


@pytest.mark.parametrize(("m", "k"), SHAPES)
@pytest.mark.parametrize("a_format", range(5))
@pytest.mark.parametrize("b_format", range(5))
def test_packed_formats(m: int, k: int, a_format: int, b_format: int) -> None:
    rng = np.random.default_rng(a_format * 5 + b_format)
    lhs, rhs = rng.choice(COMMON, (m, k)), rng.choice(COMMON, (k, m))
    got = run_packed(m, k, a_format, b_format, lhs, rhs)
    np.testing.assert_array_equal(got, lhs @ rhs + 1)


@pytest.mark.parametrize("form", range(5))
def test_every_code_of_a_packed_format(form: int) -> None:
    """Column j of B picks one depth, so D shows the values of A: all codes, against ml_dtypes."""
    kind, bits = FORMATS[form]
    every = np.arange(16 * 128, dtype=np.uint8).reshape(16, 128) & ((1 << bits) - 1)
    lhs = every.view(kind).astype(float)
    finite = np.where(np.isfinite(lhs), lhs, 0)
    for first in range(0, 128, 16):
        rhs = np.zeros((128, 16))
        rhs[first : first + 16] = np.eye(16)
        got = run_packed(16, 128, form, 0, finite, rhs)
        want = (finite[:, first : first + 16] + 1).astype(F32)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("form", range(5))
@pytest.mark.parametrize("side", ["A", "B"])
def test_edge_values_of_a_packed_format(form: int, side: str) -> None:
    """NaN, infinity, the least denormal and the largest number of a format, among zeros."""
    kind, _ = FORMATS[form]
    info = ml_dtypes.finfo(kind)
    special = [np.nan, np.inf] if form < 2 else []  # the narrow formats have neither
    for element in (*special, -float(info.smallest_subnormal), float(info.max)):
        one = np.zeros((16, 128))
        one[5, 100] = float(np.float64(element).astype(kind))
        other = np.full((128, 16), 3.0)
        lhs, rhs = (one, other) if side == "A" else (other.T, one.T)
        got = run_packed(16, 128, *((form, 0) if side == "A" else (0, form)), lhs, rhs)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(got, (lhs @ rhs + 1).astype(F32))


@pytest.mark.parametrize(("m", "k"), SHAPES)
@pytest.mark.parametrize("forms", [(0, 0), (4, 4), (2, 3), (1, 4)])
@pytest.mark.parametrize("byte", range(4))
def test_scaled(m: int, k: int, forms: tuple[int, int], byte: int) -> None:
    """Every 32 depths of a row of A and a column of B have a power of two; OP_SEL picks its byte."""
    rng = np.random.default_rng(byte)
    lhs, rhs = rng.choice(COMMON, (m, k)), rng.choice(COMMON, (k, m))
    scales = tuple(rng.integers(124, 131, (m, k // 32)) for _ in range(2))
    powers = [np.repeat(2.0 ** (s - 127), 32, axis=1) for s in scales]
    got = run_packed(m, k, *forms, lhs, rhs, scales, byte)
    np.testing.assert_array_equal(got, (lhs * powers[0]) @ (rhs * powers[1].T) + 1)


def test_scale_limits() -> None:
    """0 is 2^-127, 255 is NaN."""
    ones = np.ones((16, 128)), np.ones((128, 16))
    scales = [np.full((16, 4), 127) for _ in range(2)]
    scales[0][3] = 255
    scales[0][4] = 0
    scales[1][:] = 254
    got = run_packed(16, 128, 0, 0, *ones, tuple(scales))
    assert np.isnan(got[3]).all()
    assert (got[4] == 128 + 1).all()
    assert np.isposinf(got[0]).all()  # 128 * 2^127


def test_unknown_packed_format_is_an_error() -> None:
    wave = Wave("gfx950")
    operands = {"d": vgpr(D, 4), "a": vgpr(A, 8), "b": vgpr(B, 8), "c": vgpr(C, 4)}
    with pytest.raises(RuntimeError, match="matrix source format 0x5 at 0x0"):
        wave.run(instruction("v_mfma_f32_16x16x128_f8f6f4", cbsz=5, **operands))
