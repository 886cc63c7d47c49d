"""RDNA matrix instructions, by the places of the calculator (gfx11 and gfx12, wave32)."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.vgpu.program import NEG, NEG_HI, OPSEL, OPSEL_HI, PACKED
from tests.vgpu.support.formats import same
from tests.vgpu.support.instructions import Wave, instruction, vgpr
from tests.vgpu.support.matrix_registers import (
    among_zeros,
    edges,
    gather,
    half_results,
    product,
    put,
    word_results,
)

A, B, C, D = 0, 32, 64, 128
F32, F16, BF16, I8 = np.float32, np.float16, ml_dtypes.bfloat16, np.int8
FNUZ = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
OCP = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}


def rdna4_source(bits: int, depths: int) -> Callable[[int, int], tuple[int, int]]:
    """(lane, element) of A[i][k] or B[k][i]; 16-bit depths alternate between lane groups by fours."""
    if bits == 16:
        return lambda i, k: (16 * (k // 4 % 2) + i, 4 * (k // 8) + k % 4)
    return lambda i, k: (16 * (k // (depths // 2)) + i, k % (depths // 2))


WMMA = {
    "f32_16x16x16_f16": (F16, F32),
    "f32_16x16x16_bf16": (BF16, F32),
    "f16_16x16x16_f16": (F16, F16),
    "bf16_16x16x16_bf16": (BF16, BF16),
    "i32_16x16x16_iu8": (8, np.int32),
    "i32_16x16x16_iu4": (4, np.int32),
}
WMMA_CASES = [(name, chip) for name in WMMA for chip in ("gfx1100", "gfx1201")]
WMMA_CASES.append(("i32_16x16x32_iu4", "gfx1201"))
FP8_WMMA = [f"f32_16x16x16_{a}_{b}" for a in OCP for b in OCP]


def integers(
    rng: np.random.Generator, shape: tuple[int, ...], bits: int, signed: bool
) -> np.ndarray:
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    return rng.integers(low, high, shape)


def source_lanes(wave: Wave, matrix: np.ndarray, bits: int) -> np.ndarray:
    """A[i][k] (or B transposed) as [lane][element]; RDNA3 has every row in two lanes."""
    depths = matrix.shape[1]
    if wave.chip == "gfx1100":
        return np.concatenate([matrix, matrix])
    lanes = np.zeros((32, depths // 2), matrix.dtype)
    place = rdna4_source(bits, depths)
    for i, k in np.ndindex(matrix.shape):
        lanes[place(i, k)] = matrix[i, k]
    return lanes


def run_wmma(chip: str, name: str, lhs: np.ndarray, rhs: np.ndarray, acc: np.ndarray, *,
             bits: int, mods: tuple[int, int, int] = (0, 0, 0), high: bool = False) -> np.ndarray:  # fmt: skip
    """D of the instruction; `mods` are those of A, B and C beside the usual OP_SEL_HI."""
    wave = Wave(chip)
    wave.v[D : D + 8] = 0xAAAABBBB
    count = put(wave, A, source_lanes(wave, lhs, bits), bits)
    put(wave, B, source_lanes(wave, rhs.T, bits), bits)
    acc_bits = acc.dtype.itemsize * 8
    place = half_results(chip, high) if acc_bits == 16 else word_results(chip)
    registers = 4 if acc_bits == 16 and chip == "gfx1201" else 8
    c_lanes = np.zeros((32, registers * 32 // acc_bits), acc.dtype)
    for i, j in np.ndindex(16, 16):
        c_lanes[place(i, j)] = acc[i, j]
    put(wave, C, c_lanes, acc_bits)
    c_mods = mods[2] | OPSEL_HI | (OPSEL if high else 0)
    operands = {
        "d": vgpr(D, registers),
        "a": vgpr(A, count, mods[0] | OPSEL_HI),
        "b": vgpr(B, count, mods[1] | OPSEL_HI),
        "c": vgpr(C, registers, c_mods),
    }
    wave.run(instruction(f"v_wmma_{name}", flags=PACKED, **operands))
    if acc_bits == 16 and chip == "gfx1100":
        other = np.ascontiguousarray(wave.v[D : D + 8, :32].T).view(np.uint16)[
            :, int(not high) :: 2
        ]
        assert (other == (0xBBBB if high else 0xAAAA)).all()  # the other half is kept
    dwords = np.ascontiguousarray(wave.v[D : D + registers, :32].T)
    return gather((16, 16), dwords.view(acc.dtype), place)


@pytest.mark.parametrize(("name", "chip"), WMMA_CASES)
@pytest.mark.parametrize("high", [False, True])
def test_wmma(name: str, chip: str, high: bool) -> None:
    """Every result type; `high`: OP_SEL's upper halves, or for integers unsigned sources."""
    kind, acc_type = WMMA.get(name, (4, np.int32))
    depths = int(name.split("x")[2].split("_")[0])
    rng = np.random.default_rng(depths)
    mods = (0, 0, 0)
    if isinstance(kind, int):
        bits = kind
        lhs = integers(rng, (16, depths), bits, signed=not high).astype(
            np.int8 if not high else np.uint8
        )
        rhs = integers(rng, (depths, 16), bits, signed=True).astype(np.int8)
        mods = (0 if high else NEG, NEG, 0)
        acc = rng.integers(-1000, 1000, (16, 16)).astype(acc_type)
    else:
        bits = 16
        lhs = rng.integers(-3, 4, (16, depths)).astype(kind)
        rhs = rng.integers(-3, 4, (depths, 16)).astype(kind)
        acc = rng.integers(-9, 10, (16, 16)).astype(acc_type)
    upper = high and acc_type in (F16, BF16) and chip == "gfx1100"
    got = run_wmma(chip, name, lhs, rhs, acc, bits=bits, mods=mods, high=upper)
    want = lhs.astype(float) @ rhs.astype(float) + acc.astype(float)
    np.testing.assert_array_equal(got.astype(float), want.astype(acc_type).astype(float))


@pytest.mark.parametrize("name", FP8_WMMA)
def test_wmma_of_8_bit_floats(name: str) -> None:
    lhs_kind, rhs_kind = name.split("_")[2:]
    rng = np.random.default_rng(1)
    lhs = rng.integers(-3, 4, (16, 16)).astype(OCP[lhs_kind])
    rhs = rng.integers(-3, 4, (16, 16)).astype(OCP[rhs_kind])
    acc = rng.integers(-9, 10, (16, 16)).astype(F32)
    got = run_wmma("gfx1201", name, lhs, rhs, acc, bits=8)
    np.testing.assert_array_equal(got, lhs.astype(F32) @ rhs.astype(F32) + acc)


@pytest.mark.parametrize("chip", ["gfx1100", "gfx1201"])
def test_wmma_signs(chip: str) -> None:
    """NEG and NEG_HI of A and B negate even and odd depths; of C they negate and take the size."""
    rng = np.random.default_rng(4)
    lhs = rng.integers(-3, 4, (16, 16)).astype(F16)
    rhs = rng.integers(-3, 4, (16, 16)).astype(F16)
    acc = rng.integers(-9, 10, (16, 16)).astype(F32)
    mods = (NEG, NEG_HI, NEG | NEG_HI)
    got = run_wmma(chip, "f32_16x16x16_f16", lhs, rhs, acc, bits=16, mods=mods)
    even = np.where(np.arange(16) % 2 == 0, -1, 1)
    want = (lhs.astype(float) * even) @ (rhs.astype(float) * -even[:, None]) - abs(acc)
    np.testing.assert_array_equal(got, want.astype(F32))


EDGES = [
    (name, chip)
    for name, (kind, _) in WMMA.items()
    if kind in (F16, BF16)
    for chip in ("gfx1100", "gfx1201")
]
EDGES += [(name, "gfx1201") for name in FP8_WMMA]


@pytest.mark.parametrize(("name", "chip"), EDGES)
@pytest.mark.parametrize("side", ["A", "B"])
def test_wmma_of_edge_values(name: str, chip: str, side: str) -> None:
    """NaN, infinities, denormals, overflow and the signs of zeros."""
    kinds = [OCP[kind] for kind in name.split("_")[2:]] if name in FP8_WMMA else [WMMA[name][0]] * 2
    special, plain = kinds if side == "A" else reversed(kinds)
    acc_type = F32 if name.startswith("f32") else special
    for edge_name, edge in edges(special).items():
        one = among_zeros((16, 16), edge, special)
        with np.errstate(over="ignore"):
            other = np.full((16, 16), edge.other).astype(plain)
        acc = np.full((16, 16), edge.acc).astype(acc_type)
        lhs, rhs = (one, other) if side == "A" else (other, one)
        got = run_wmma(chip, name, lhs, rhs, acc, bits=8 * lhs.dtype.itemsize)
        with np.errstate(all="ignore"):
            want = product(lhs.astype(float), rhs.astype(float), acc.astype(float)).astype(acc_type)
        assert same(got, want).all(), edge_name


@pytest.mark.parametrize(
    "name", ["v_wmma_f32_16x16x16_f16", "v_wmma_f16_16x16x16_f16", "v_swmmac_f32_16x16x32_f16"]
)
def test_lanes_switched_off_are_an_error(name: str) -> None:
    """RDNA leaves the product undefined."""
    wave = Wave("gfx1201")
    wave.exec = 0xFFFF_FFFE
    operands = {"d": vgpr(D, 8), "a": vgpr(A, 4), "b": vgpr(B, 8), "c": vgpr(C, 8)}
    with pytest.raises(
        RuntimeError, match=f"lanes switched off in EXEC, 0xfffffffe at 0x0 `{name}`"
    ):
        wave.run(instruction(name, flags=PACKED, **operands))
