"""More vector rows: IEEE-2019 and three-input forms, saturation, 16-bit integers, dot products, conversions."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.vgpu.program import (
    CLAMP,
    OPSEL,
)
from tests.vgpu.support.formats import FP8, larger, maximum, minimum, same, sample, smaller
from tests.vgpu.support.instructions import Wave, instruction, vgpr
from tests.vgpu.support.vector_rows import Row, big, check, middle

F, H, D, U, I = "f32", "f16", "f64", "u32", "i32"  # noqa: E741


def median(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The larger of what is not the largest, as the guides write it: `==` finds the largest, to which
    the zeros are one; with a NaN among them the smallest number.
    """
    any_nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
    most = larger(larger(a, b), c)
    rest = np.where(most == b, larger(a, c), larger(a, b))
    value = np.where(most == a, larger(b, c), rest)
    return np.where(any_nan, smaller(smaller(a, b), c), value)


def exponent_field(x: np.ndarray) -> np.ndarray:
    """The exponent's bits: 0 for denormals and zeros."""
    info = ml_dtypes.finfo(x.dtype)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return (np.abs(x).view(unsigned) >> unsigned.type(info.nmant)).astype(np.int64)


def fix_up(q: np.ndarray, d: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The special cases of n / d, and quotients below every denormal; else q with the right sign."""
    signs = np.copysign(1, d.astype(float)) * np.copysign(1, n.astype(float))
    special = np.isnan(n) | np.isnan(d) | np.isinf(n) | np.isinf(d) | (n == 0) | (d == 0)
    lowest = {2: -1000, 4: -150, 8: -1075}[q.dtype.itemsize]  # f16 has no such rule
    tiny = exponent_field(n) - exponent_field(d) < lowest
    quotient = abs(q.astype(float))
    # Only an overflow of the steps before makes a quotient of numbers NaN.
    quotient = np.where(np.isnan(quotient) & (q.dtype.itemsize > 2), np.inf, quotient)
    value = np.where(tiny, 0.0, quotient)
    return np.where(special, n.astype(float) / d.astype(float), signs * value)


def turns(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """A trigonometric function of turns: exact reduction to half a turn first."""

    def formula(a: np.ndarray) -> np.ndarray:
        x = np.where(np.isinf(a), np.nan, a).astype(np.float64)
        return function(2 * np.pi * (x - np.rint(x)))

    return formula


def shifted(a: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """a * 2^exponent, exact in f64 for narrower types."""
    return np.ldexp(a.astype(np.float64), np.clip(exponent.astype(np.int64), -2200, 2200))


def table(imm: int, width: int) -> Callable[..., np.ndarray]:
    """Bit by bit: bit (4a + 2b + c) of `imm`."""

    def of_bits(a: int, b: int, c: int) -> int:
        picks = ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1 for i in range(width))
        return sum((imm >> pick & 1) << i for i, pick in enumerate(picks))

    return big(of_bits)


def dot(count: int, width: int, *, sign: bool) -> Callable[..., np.ndarray]:
    """Sum of products of the parts of two dwords and a third operand."""

    def part(x: int, i: int) -> int:
        value = x >> width * i & ((1 << width) - 1)
        return value - (1 << width) if sign and value >> (width - 1) else value

    return big(lambda a, b, c: sum(part(a, i) * part(b, i) for i in range(count)) + c)


def limited(low: int, high: int, function: Callable[..., int]) -> Callable[..., np.ndarray]:
    """Saturates an exact integer result."""
    return big(lambda *x: max(low, min(high, function(*x))))


def low24(x: int) -> int:
    x &= 0xFFFFFF
    return x - (1 << 24) if x >> 23 else x


def differences(width: int) -> Callable[..., np.ndarray]:
    mask = (1 << width) - 1
    return big(
        lambda a, b, c: c + sum(abs((a >> i & mask) - (b >> i & mask)) for i in range(0, 32, width))
    )


def towards_zero(x: np.ndarray) -> np.ndarray:
    """f32 to f16 without rounding away from zero; infinities stay, the largest number stays."""
    nearest = x.astype(np.float16)
    away = (abs(nearest.astype(np.float32)) > abs(x)) & np.isfinite(x)
    code = nearest.view(np.uint16)
    return np.where(away, code - np.uint16(1), code).astype(np.uint16)


def pair(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    low, high = (np.asarray(x).astype(np.int64) & 0xFFFF for x in (low, high))
    return (low | high << 16).astype(np.uint32)


def halves(convert: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    def formula(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return pair(convert(a), convert(b))

    return formula


def normalised(low: float, scale: float) -> Callable[[np.ndarray], np.ndarray]:
    """A number of [low, 1] to an integer, NaN to 0; the product is rounded to f32 first."""

    def convert(a: np.ndarray) -> np.ndarray:
        clipped = np.clip(np.nan_to_num(a, nan=0.0, posinf=1.0, neginf=low), low, 1)
        return np.rint(clipped * np.float32(scale))

    return convert


I32_MIN, I32_MAX, U32_MAX = -(2**31), 2**31 - 1, 2**32 - 1
FLOAT_ROWS = [
    row
    for kind in (F, H)
    for row in (
        Row(f"v_maximum_{kind}", kind, (kind, kind), maximum, "gfx1201"),
        Row(f"v_minimum_{kind}", kind, (kind, kind), minimum, "gfx1201"),
        Row(f"v_maximum3_{kind}", kind, (kind,) * 3, lambda a, b, c: maximum(maximum(a, b), c), "gfx1201"),
        Row(f"v_minimum3_{kind}", kind, (kind,) * 3, lambda a, b, c: minimum(minimum(a, b), c), "gfx1201"),
        Row(f"v_max3_{kind}", kind, (kind,) * 3, lambda a, b, c: larger(larger(a, b), c)),
        Row(f"v_min3_{kind}", kind, (kind,) * 3, lambda a, b, c: smaller(smaller(a, b), c)),
        Row(f"v_med3_{kind}", kind, (kind,) * 3, median),
        Row(f"v_mad_{kind}", kind, (kind,) * 3, lambda a, b, c: a * b + c, "gfx90a"),
        Row(f"v_subrev_{kind}", kind, (kind, kind), lambda a, b: b - a),
        Row(f"v_ldexp_{kind}", kind, (kind, "i32" if kind == F else "i16"), shifted),
        Row(f"v_div_fixup_{kind}", kind, (kind,) * 3, fix_up),
    )
]  # fmt: skip
ROWS = [
    *FLOAT_ROWS,
    Row("v_div_fixup_f64", D, (D, D, D), fix_up),
    Row("v_mul_legacy_f32", F, (F, F), lambda a, b: np.where((a == 0) | (b == 0), 0, a * b)),
    Row("v_maxmin_f32", F, (F, F, F), lambda a, b, c: smaller(larger(a, b), c), "gfx1100"),
    Row("v_minmax_f32", F, (F, F, F), lambda a, b, c: larger(smaller(a, b), c), "gfx1100"),
    Row("v_sin_f32", F, (F,), turns(np.sin), ulps=1, error=2e-15),
    Row("v_cos_f32", F, (F,), turns(np.cos), ulps=1, error=2e-15),
    Row("v_fract_f32", F, (F,), lambda a: np.minimum(a - np.floor(a), np.float32(1 - 2**-24))),
    Row("v_fract_f64", D, (D,), lambda a: np.minimum(a - np.floor(a), 1 - 2.0**-53)),
    Row("v_frexp_mant_f32", F, (F,), lambda a: np.where(np.isfinite(a), np.frexp(a)[0], a)),
    Row("v_frexp_mant_f64", D, (D,), lambda a: np.where(np.isfinite(a), np.frexp(a)[0], a)),
    Row("v_frexp_exp_i32_f32", I, (F,), lambda a: np.where(np.isfinite(a), np.frexp(a)[1], 0)),
    Row("v_frexp_exp_i32_f64", I, (D,), lambda a: np.where(np.isfinite(a), np.frexp(a)[1], 0)),
    Row("v_ldexp_f64", D, (D, I), shifted),
    Row("v_min3_u32", U, (U, U, U), lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    Row("v_max3_i32", I, (I, I, I), lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    Row("v_maxmin_i32", I, (I, I, I), lambda a, b, c: np.minimum(np.maximum(a, b), c), "gfx1100"),
    Row("v_minmax_i32", I, (I, I, I), lambda a, b, c: np.maximum(np.minimum(a, b), c), "gfx1100"),
    Row("v_maxmin_u32", U, (U, U, U), lambda a, b, c: np.minimum(np.maximum(a, b), c), "gfx1100"),
    Row("v_minmax_u32", U, (U, U, U), lambda a, b, c: np.maximum(np.minimum(a, b), c), "gfx1100"),
    Row("v_mul_hi_i32_i24", U, (U, U), big(lambda a, b: low24(a) * low24(b) >> 32)),
    Row("v_xor3_b32", U, (U, U, U), lambda a, b, c: a ^ b ^ c, "gfx1100"),
    Row("v_bfm_b32", U, (U, U), big(lambda a, b: ((1 << (a & 31)) - 1) << (b & 31))),
    Row("v_sad_u8", U, (U, U, U), differences(8)),
    Row("v_sad_u32", U, (U, U, U), differences(32)),
    *(Row("v_bitop3_b32", U, (U, U, U), table(imm, 32), "gfx950", imm=imm) for imm in (0x01, 0x96, 0xCA, 0xE8, 0x2B)),
    *(Row("v_bitop3_b16", "u16", ("u16",) * 3, table(imm, 16), "gfx950", imm=imm) for imm in (0x35, 0xD8)),
    Row("v_dot4_u32_u8", U, (U, U, U), dot(4, 8, sign=False)),
    Row("v_dot4_i32_i8", U, (U, U, U), dot(4, 8, sign=True)),
    Row("v_mov_b16", "u16", ("u16",), lambda a: a, "gfx1100"),
    Row("v_not_b16", "u16", ("u16",), lambda a: ~a, "gfx1100"),
    Row("v_and_b16", "u16", ("u16", "u16"), lambda a, b: a & b, "gfx1100"),
    Row("v_or_b16", "u16", ("u16", "u16"), lambda a, b: a | b, "gfx1100"),
    Row("v_xor_b16", "u16", ("u16", "u16"), lambda a, b: a ^ b, "gfx1100"),
    Row("v_subrev_u16", "u16", ("u16", "u16"), lambda a, b: b - a),
    Row("v_max_u16", "u16", ("u16", "u16"), np.maximum),
    Row("v_min_i16", "i16", ("i16", "i16"), np.minimum),
    *(
        Row(f"v_{name}_{kind}", kind, (kind,) * 3, formula)
        for kind in ("i16", "u16")
        for name, formula in (
            ("med3", middle),
            ("max3", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
            ("min3", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
        )
    ),
    Row("v_mad_u32_u16", U, ("u16", "u16", U), big(lambda a, b, c: a * b + c)),
    Row("v_mad_i32_i16", I, ("i16", "i16", U), big(lambda a, b, c: a * b + c)),
    Row("v_mov_b64", "u64", ("u64",), lambda a: a),
    Row("v_lshl_add_u64", "u64", ("u64", U, "u64"), big(lambda a, b, c: (a << (b & 7)) + c)),
    Row("v_accvgpr_mov_b32", U, (U,), lambda a: a),
    Row("v_cvt_rpi_i32_f32", I, (F,), limited(I32_MIN, I32_MAX, lambda a: whole(np.floor(np.float32(a) + np.float32(0.5))))),
    Row("v_cvt_flr_i32_f32", I, (F,), limited(I32_MIN, I32_MAX, lambda a: whole(np.floor(a)))),
    Row("v_cvt_f32_ubyte1", F, (U,), lambda a: (a >> 8 & 255).astype(np.float32)),
    Row("v_cvt_f32_ubyte2", F, (U,), lambda a: (a >> 16 & 255).astype(np.float32)),
    Row("v_cvt_u32_u16", U, ("u16",), lambda a: a.astype(np.uint32), "gfx1100"),
    Row("v_cvt_i32_i16", I, ("i16",), lambda a: a.astype(np.int32), "gfx1100"),
    Row("v_cvt_pkrtz_f16_f32", U, (F, F), halves(towards_zero)),
    Row("v_cvt_pknorm_i16_f32", U, (F, F), halves(normalised(-1, 32767))),
    Row("v_cvt_pknorm_u16_f32", U, (F, F), halves(normalised(0, 65535))),
    Row("v_cvt_pk_u16_u32", U, (U, U), halves(lambda a: np.minimum(a, 65535))),
    Row("v_cvt_pk_i16_i32", U, (I, I), halves(lambda a: np.clip(a, -32768, 32767))),
]  # fmt: skip


def whole(x: float) -> int:
    """A float as an integer, NaN as 0, infinities as something out of range."""
    return 0 if np.isnan(x) else int(np.clip(x, -1e30, 1e30))


SATURATING = {
    "v_add_u32": (U, 2, lambda a, b: a + b, 0, U32_MAX),
    "v_sub_u32": (U, 2, lambda a, b: a - b, 0, U32_MAX),
    "v_subrev_u32": (U, 2, lambda a, b: b - a, 0, U32_MAX),
    "v_add_i32": (I, 2, lambda a, b: a + b, I32_MIN, I32_MAX),
    "v_sub_i32": (I, 2, lambda a, b: a - b, I32_MIN, I32_MAX),
    "v_mul_u32_u24": (U, 2, lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF), 0, U32_MAX),
    "v_mul_i32_i24": (I, 2, lambda a, b: low24(a) * low24(b), I32_MIN, I32_MAX),
    "v_mad_u32_u24": (U, 3, lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c, 0, U32_MAX),
    "v_mad_i32_i24": (I, 3, lambda a, b, c: low24(a) * low24(b) + c, I32_MIN, I32_MAX),
    "v_add_u16": ("u16", 2, lambda a, b: a + b, 0, 65535),
    "v_sub_u16": ("u16", 2, lambda a, b: a - b, 0, 65535),
    "v_subrev_u16": ("u16", 2, lambda a, b: b - a, 0, 65535),
    "v_add_i16": ("i16", 2, lambda a, b: a + b, -32768, 32767),
    "v_sub_i16": ("i16", 2, lambda a, b: a - b, -32768, 32767),
    "v_mad_u16": ("u16", 3, lambda a, b, c: a * b + c, 0, 65535),
    "v_mad_i16": ("i16", 3, lambda a, b, c: a * b + c, -32768, 32767),
}
ROWS += [
    Row(name, kind, (kind,) * count, limited(low, high, formula), flags=CLAMP)
    for name, (kind, count, formula, low, high) in SATURATING.items()
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.chip}-{row.flags}")
def test_vector_row(row: Row) -> None:
    check(row)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_pairs_of_halves_from_f32(kind: str) -> None:
    rng = np.random.default_rng(1)
    dtype = np.float16 if kind == "f16" else ml_dtypes.bfloat16
    for _ in range(6):
        wave = Wave("gfx950")
        a, b = (sample(F, 64, rng) for _ in range(2))
        wave.put(0, a)
        wave.put(1, b)
        wave.run(instruction(f"v_cvt_pk_{kind}_f32", d=vgpr(2), a=vgpr(0), b=vgpr(1)))
        got = np.ascontiguousarray(wave.get(2, np.uint32)).view(dtype).reshape(64, 2)
        with np.errstate(all="ignore"):
            for column, source in enumerate((a, b)):
                want = source.astype(dtype)
                assert same(np.ascontiguousarray(got[:, column]), want).all()


@pytest.mark.parametrize(("chip", "kind"), FP8)
@pytest.mark.parametrize("high", [False, True])
def test_two_fp8_values_at_once(chip: str, kind: str, high: bool) -> None:
    """OP_SEL picks the half of the source that has the two codes."""
    codes = np.arange(256, dtype=np.uint32)
    other = (codes * 7 + 3) & 255
    values = [x.astype(np.uint8).view(FP8[chip, kind]).astype(np.float32) for x in (codes, other)]
    lanes = Wave(chip).lanes
    for start in range(0, 256, lanes):
        part = slice(start, start + lanes)
        wave = Wave(chip)
        wave.put(0, (codes[part] | other[part] << 8) << (16 if high else 0))
        source = vgpr(0, 1, OPSEL if high else 0)
        wave.run(instruction(f"v_cvt_pk_f32_{kind}", d=vgpr(2, 2), a=source))
        for column in range(2):
            assert same(wave.get(2 + column, np.float32), values[column][part]).all()
