"""Absolute differences, dot products of bytes and nibbles, and vector rows that compilers rarely use."""

from collections.abc import Callable

import numpy as np
import pytest

from conv_compiler.vgpu.program import CLAMP, NEG, PACKED
from tests.vgpu.support.formats import FP8, sample
from tests.vgpu.support.instructions import Wave, instruction, vgpr
from tests.vgpu.support.vector_rows import Row, big, check, wide

U, I, F, H, D, Q = "u32", "i32", "f32", "f16", "f64", "u64"  # noqa: E741
MOST = 0xFFFFFFFF


def parts(x: int, bits: int, *, sign: bool = False) -> list[int]:
    """The fields of a dword, low ones first."""
    fields = [x >> at & ((1 << bits) - 1) for at in range(0, 32, bits)]
    return [f - (1 << bits) if sign and f >> (bits - 1) else f for f in fields]


def differences(a: int, b: int, *, bits: int = 8, masked: bool = False) -> int:
    pairs = zip(parts(a, bits), parts(b, bits), strict=True)
    return sum(abs(x - y) for x, y in pairs if y or not masked)


def products(a: int, b: int, bits: int, signs: tuple[bool, bool]) -> int:
    left, right = parts(a, bits, sign=signs[0]), parts(b, bits, sign=signs[1])
    return sum(x * y for x, y in zip(left, right, strict=True))


def four(a: int, b: int, c: int, *, masked: bool) -> int:
    """The four places of b in the eight bytes of a."""
    sums = [differences(a >> 8 * k & MOST, b, masked=masked) for k in range(4)]
    return sum((s + (c >> 16 * k & 0xFFFF) & 0xFFFF) << 16 * k for k, s in enumerate(sums))


def limited(low: int, high: int, function: Callable[..., int]) -> Callable[..., np.ndarray]:
    return big(lambda *x: max(low, min(high, function(*x))))


SADS: dict[str, Callable[[int, int, int], int]] = {
    "v_sad_u8": lambda a, b, c: differences(a, b) + c,
    "v_sad_hi_u8": lambda a, b, c: (differences(a, b) << 16) + c,
    "v_sad_u16": lambda a, b, c: differences(a, b, bits=16) + c,
    "v_sad_u32": lambda a, b, c: abs(a - b) + c,
    "v_msad_u8": lambda a, b, c: differences(a, b, masked=True) + c,
}
DOTS: dict[str, tuple[int, bool]] = {
    "v_dot4_u32_u8": (8, False),
    "v_dot4_i32_i8": (8, True),
    "v_dot8_u32_u4": (4, False),
    "v_dot8_i32_i4": (4, True),
}


def dot(bits: int, sign: bool) -> Callable[[int, int, int], int]:
    return lambda a, b, c: products(a, b, bits, (sign, sign)) + c


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """IEEE 754-2019: a NaN wins, +0 is more than -0."""
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.where(np.signbit(a), b, a), np.maximum(a, b))


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.where(np.signbit(a), a, b), np.minimum(a, b))


def turns(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    def formula(a: np.ndarray) -> np.ndarray:
        x = np.where(np.isinf(a), np.nan, a.astype(np.float64))
        return function(2 * np.pi * (x - np.rint(x)))

    return formula


def fraction(a: np.ndarray) -> np.ndarray:
    x = a.astype(np.float64) - np.floor(a.astype(np.float64))
    return np.minimum(x, float(np.nextafter(np.float16(1), np.float16(0))))


def mantissa(a: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(a), np.frexp(a.astype(np.float64))[0], a)


def exponent(a: np.ndarray) -> np.ndarray:
    return np.where(
        np.isfinite(a), np.frexp(np.where(np.isfinite(a), a, 1).astype(np.float64))[1], 0
    )


def zero_wins(a: np.ndarray, b: np.ndarray, otherwise: np.ndarray, zero: np.ndarray) -> np.ndarray:
    return np.where((a == 0) | (b == 0), zero, otherwise)


def norm(low: float, scale: float) -> Callable[[np.ndarray], np.ndarray]:
    def convert(a: np.ndarray) -> np.ndarray:
        x = np.nan_to_num(a.astype(np.float32), nan=0.0, posinf=1.0, neginf=low)
        return np.rint(np.clip(x, low, 1) * np.float32(scale)).astype(np.int64)

    return convert


def truncated(low: int, high: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda a: np.clip(
        np.trunc(np.nan_to_num(a.astype(np.float64), nan=0.0, posinf=1e9, neginf=-1e9)), low, high
    ).astype(np.int64)


def pair(convert: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda a, b: (convert(a) & 0xFFFF) | (convert(b) & 0xFFFF) << 16


def bytes_of(low: int, high: int) -> Callable[[int, int, int], int]:
    def formula(a: int, b: int, c: int) -> int:
        x, y = (max(low, min(high, v >> (c & 31))) & 255 for v in (a, b))
        return x | y << 8

    return formula


ROWS = [
    *(Row(name, U, (U, U, U), big(f)) for name, f in SADS.items()),
    *(Row(name, U, (U, U, U), limited(0, MOST, f), flags=CLAMP) for name, f in SADS.items()),
    Row("v_qsad_pk_u16_u8", Q, (Q, U, Q), big(lambda a, b, c: four(a, b, c, masked=False))),
    Row("v_mqsad_pk_u16_u8", Q, (Q, U, Q), big(lambda a, b, c: four(a, b, c, masked=True))),
    *(Row(name, U, (U, U, U), big(dot(*kind))) for name, kind in DOTS.items()),
    *(
        Row(
            name,
            I if sign else U,
            (U, U, I if sign else U),
            limited(-(2**31) if sign else 0, 2**31 - 1 if sign else MOST, dot(bits, sign)),
            flags=CLAMP,
        )
        for name, (bits, sign) in DOTS.items()
    ),
    Row(
        "v_lerp_u8",
        U,
        (U, U, U),
        big(
            lambda a, b, c: sum(
                (x + y + (z & 1) >> 1) << 8 * k
                for k, (x, y, z) in enumerate(zip(*(parts(v, 8) for v in (a, b, c)), strict=True))
            )
        ),
    ),
    Row("v_sin_f16", H, (H,), turns(np.sin), error=2e-4),
    Row("v_cos_f16", H, (H,), turns(np.cos), error=2e-4),
    Row("v_fract_f16", H, (H,), fraction),
    Row("v_frexp_mant_f16", H, (H,), mantissa),
    Row("v_frexp_exp_i16_f16", "i16", (H,), exponent),
    *(
        Row(f"v_{name}_{kind}", kind, (kind,) * 3, formula, "gfx1201")
        for kind in (H, F)
        for name, formula in (
            ("maximumminimum", lambda a, b, c: minimum(maximum(a, b), c)),
            ("minimummaximum", lambda a, b, c: maximum(minimum(a, b), c)),
        )
    ),
    Row("v_maximum_f64", D, (D, D), maximum, "gfx1201"),
    Row("v_minimum_f64", D, (D, D), minimum, "gfx1201"),
    Row(
        "v_fma_dx9_zero_f32",
        F,
        (F, F, F),
        lambda a, b, c: zero_wins(
            a, b, a.astype(np.longdouble) * b.astype(np.longdouble) + c, c + np.float32(0)
        ),
        "gfx1100",
        ulps=1,  # the reference's one rounding more
    ),
    Row(
        "v_mad_legacy_f32",
        F,
        (F, F, F),
        lambda a, b, c: zero_wins(a, b, a * b + c, c + np.float32(0)),
        "gfx90a",
    ),
    Row(
        "v_sat_pk_u8_i16",
        "u16",
        (U,),
        big(
            lambda a: sum(
                max(0, min(255, h)) << 8 * k for k, h in enumerate(parts(a, 16, sign=True))
            )
        ),
    ),
    Row("v_cvt_norm_i16_f16", "i16", (H,), norm(-1, 32767)),
    Row("v_cvt_norm_u16_f16", "u16", (H,), norm(0, 65535)),
    Row("v_cvt_pknorm_i16_f16", U, (H, H), pair(norm(-1, 32767))),
    Row("v_cvt_pknorm_u16_f16", U, (H, H), pair(norm(0, 65535))),
    Row("v_cvt_pk_i16_f32", U, (F, F), pair(truncated(-32768, 32767)), "gfx1100"),
    Row("v_cvt_pk_u16_f32", U, (F, F), pair(truncated(0, 65535)), "gfx1100"),
    Row("v_cvt_off_f32_i4", F, (U,), wide(lambda a: ((a + 8) % 16 - 8) / 16)),
    Row("v_ashr_pk_i8_i32", "u16", (I, I, U), big(bytes_of(-128, 127)), "gfx950"),
    Row("v_ashr_pk_u8_i32", "u16", (I, I, U), big(bytes_of(0, 255)), "gfx950"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.flags}")
def test_vector_row(row: Row) -> None:
    check(row)


def test_four_masked_sums_of_32_bits() -> None:
    wave, rng = Wave("gfx942"), np.random.default_rng(1)
    a, b = sample(Q, 64, rng), sample(U, 64, rng) & np.uint32(0xFF00FFFF)
    wave.put(0, a)
    wave.put(2, b)
    sums = [sample(U, 64, rng) for _ in range(4)]
    for k, c in enumerate(sums):
        wave.put(4 + k, c)
    operands = {"a": vgpr(0, 2), "b": vgpr(2), "c": vgpr(4, 4)}
    wave.run(instruction("v_mqsad_u32_u8", d=vgpr(8, 4), **operands))
    for k, c in enumerate(sums):
        want = [
            (differences(int(x) >> 8 * k & MOST, int(y), masked=True) + int(z)) & MOST
            for x, y, z in zip(a, b, c, strict=True)
        ]
        assert wave.get(8 + k, np.uint32).tolist() == want


@pytest.mark.parametrize("signs", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("clamp", [False, True])
def test_dot_products_whose_signs_are_chosen(
    bits: int, clamp: bool, signs: tuple[bool, bool]
) -> None:
    wave, rng = Wave("gfx1100"), np.random.default_rng(bits)
    a, b, c = (sample(kind, 32, rng) for kind in (U, U, I))
    for number, x in enumerate((a, b, c)):
        wave.put(number, x)
    operands = {
        "a": vgpr(0, mods=NEG if signs[0] else 0),
        "b": vgpr(1, mods=NEG if signs[1] else 0),
        "c": vgpr(2),
        "flags": PACKED | (CLAMP if clamp else 0),
    }
    name = f"v_dot{32 // bits}_i32_iu{bits}"
    wave.run(instruction(name, d=vgpr(3), **operands))
    exact = [
        products(int(x), int(y), bits, signs) + int(z) for x, y, z in zip(a, b, c, strict=True)
    ]
    want = [max(-(2**31), min(2**31 - 1, x)) if clamp else x for x in exact]
    assert [int(x) for x in wave.get(3, np.uint32)] == [x & MOST for x in want]


@pytest.mark.parametrize("left", ["fp8", "bf8"])
@pytest.mark.parametrize("right", ["fp8", "bf8"])
def test_dot_products_of_8_bit_floats(left: str, right: str) -> None:
    """Products are exact in f32; the sum is rounded after each."""
    wave, rng = Wave("gfx1201"), np.random.default_rng(8)
    a, b = (rng.integers(0, 256, (32, 4), np.uint8) for _ in range(2))
    c = rng.standard_normal(32).astype(np.float32)
    wave.put(0, a.view(np.uint32)[:, 0])
    wave.put(1, b.view(np.uint32)[:, 0])
    wave.put(2, c)
    name = f"v_dot4_f32_{left}_{right}"
    wave.run(instruction(name, d=vgpr(3), a=vgpr(0), b=vgpr(1), c=vgpr(2), flags=PACKED))
    x = a.view(FP8["gfx1201", left]).astype(np.float32)
    y = b.view(FP8["gfx1201", right]).astype(np.float32)
    want = c
    with np.errstate(all="ignore"):
        for k in range(4):
            want = want + x[:, k] * y[:, k]
    np.testing.assert_array_equal(wave.get(3, np.float32), want)


@pytest.mark.parametrize("name", ["v_permlane16_var_b32", "v_permlanex16_var_b32"])
def test_lanes_of_a_row_chosen_by_each_lane(name: str) -> None:
    wave, rng = Wave("gfx1201"), np.random.default_rng(2)
    values, choice = np.arange(32, dtype=np.uint32) + 50, rng.integers(0, 1 << 32, 32, np.uint32)
    wave.put(0, values)
    wave.put(1, choice)
    wave.run(instruction(name, d=vgpr(2), a=vgpr(0), b=vgpr(1)))
    other = 16 if "x16" in name else 0
    want = [values[((lane ^ other) & ~15) + (int(choice[lane]) & 15)] for lane in range(32)]
    np.testing.assert_array_equal(wave.get(2, np.uint32), want)


def test_halves_of_a_wave_change_places() -> None:
    """Of one of 64 lanes; with 32 lanes there is one half."""
    for lanes in (64, 32):
        wave = Wave("gfx1100")
        wave.lanes, wave.exec = lanes, (1 << lanes) - 1
        wave.put(0, np.arange(64, dtype=np.uint32))
        wave.run(instruction("v_permlane64_b32", d=vgpr(1), a=vgpr(0)))
        want = np.arange(lanes) ^ (32 if lanes == 64 else 0)
        np.testing.assert_array_equal(wave.v[1, :lanes], want)
