"""More vector rows: IEEE-2019 and three-input forms, saturation, 16-bit integers, dot products, conversions."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from formats import FP8, edges, fused, same, sample
from instructions import Wave, instruction, sgpr, vgpr
from vector_rows import Row, big, check, middle, signed32

from conv_compiler.vgpu.program import (
    CLAMP,
    KEEP_HALF,
    NEG,
    NEG_HI,
    OPSEL,
    OPSEL_HI,
    PACKED,
    VCC,
)

F, H, D, U, I = "f32", "f16", "f64", "u32", "i32"  # noqa: E741


def median(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The middle value; with a NaN among them the smallest number."""
    any_nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
    return np.where(any_nan, np.fmin(np.fmin(a, b), c), middle(a, b, c))


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
        Row(f"v_maximum_{kind}", kind, (kind, kind), np.maximum, "gfx1201", zero_sign=False),
        Row(f"v_minimum_{kind}", kind, (kind, kind), np.minimum, "gfx1201", zero_sign=False),
        Row(f"v_maximum3_{kind}", kind, (kind,) * 3, lambda a, b, c: np.maximum(np.maximum(a, b), c), "gfx1201", zero_sign=False),
        Row(f"v_minimum3_{kind}", kind, (kind,) * 3, lambda a, b, c: np.minimum(np.minimum(a, b), c), "gfx1201", zero_sign=False),
        Row(f"v_max3_{kind}", kind, (kind,) * 3, lambda a, b, c: np.fmax(np.fmax(a, b), c), zero_sign=False),
        Row(f"v_min3_{kind}", kind, (kind,) * 3, lambda a, b, c: np.fmin(np.fmin(a, b), c), zero_sign=False),
        Row(f"v_med3_{kind}", kind, (kind,) * 3, median, zero_sign=False),
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
    Row("v_maxmin_f32", F, (F, F, F), lambda a, b, c: np.fmin(np.fmax(a, b), c), "gfx1100", zero_sign=False),
    Row("v_minmax_f32", F, (F, F, F), lambda a, b, c: np.fmax(np.fmin(a, b), c), "gfx1100", zero_sign=False),
    Row("v_sin_f32", F, (F,), turns(np.sin), ulps=1, error=2e-15),
    Row("v_cos_f32", F, (F,), turns(np.cos), ulps=1, error=2e-15),
    Row("v_fract_f32", F, (F,), lambda a: np.minimum(a - np.floor(a), np.float32(1 - 2**-24)), zero_sign=False),
    Row("v_fract_f64", D, (D,), lambda a: np.minimum(a - np.floor(a), 1 - 2.0**-53), zero_sign=False),
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


# ---- packed halves


PACKED_TWO: dict[str, tuple[str, int, Callable[..., np.ndarray]]] = {
    "v_pk_max_f16": (H, 2, np.fmax),
    "v_pk_min_f16": (H, 2, np.fmin),
    "v_pk_maximum_f16": (H, 2, np.maximum),
    "v_pk_minimum_f16": (H, 2, np.minimum),
    "v_pk_maximum3_f16": (H, 3, lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_pk_minimum3_f16": (H, 3, lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_pk_sub_u16": ("u16", 2, lambda a, b: a - b),
    "v_pk_lshlrev_b16": ("u16", 2, lambda a, b: b << (a & 15)),
    "v_pk_lshrrev_b16": ("u16", 2, lambda a, b: b >> (a & 15)),
    "v_pk_ashrrev_i16": ("i16", 2, lambda a, b: b >> (a & 15)),
    "v_pk_max_u16": ("u16", 2, np.maximum),
    "v_pk_min_i16": ("i16", 2, np.minimum),
}
PACKED_CLAMPED: dict[str, tuple[str, Callable[..., np.ndarray], int, int]] = {
    "v_pk_add_u16": ("u16", lambda a, b: a + b, 0, 65535),
    "v_pk_sub_u16": ("u16", lambda a, b: a - b, 0, 65535),
    "v_pk_add_i16": ("i16", lambda a, b: a + b, -32768, 32767),
    "v_pk_sub_i16": ("i16", lambda a, b: a - b, -32768, 32767),
}


def check_packed(name: str, kind: str, count: int, formula: Callable[..., np.ndarray],
                 flags: int = PACKED) -> None:  # fmt: skip
    rng = np.random.default_rng(len(name))
    for _ in range(3):
        wave = Wave("gfx950")
        sources = [sample(kind, 128, rng).reshape(64, 2) for _ in range(count)]
        for number, source in enumerate(sources):
            wave.put(number, np.ascontiguousarray(source).view(np.uint32)[:, 0])
        operands = {k: vgpr(n, 1, OPSEL_HI) for n, k in enumerate("abc"[:count])}
        wave.run(instruction(name, d=vgpr(8), flags=flags, **operands))
        got = np.ascontiguousarray(wave.get(8, np.uint32)).view(sources[0].dtype).reshape(64, 2)
        with np.errstate(all="ignore"):
            want = formula(*sources).astype(got.dtype)
        flat_got, flat_want = (np.ascontiguousarray(x).reshape(-1) for x in (got, want))
        zeros = (flat_got == 0) & (flat_want == 0)
        assert (same(flat_got, flat_want) | zeros).all()


@pytest.mark.parametrize("name", PACKED_TWO)
def test_packed_halves(name: str) -> None:
    check_packed(name, *PACKED_TWO[name])


@pytest.mark.parametrize("name", PACKED_CLAMPED)
def test_packed_saturation(name: str) -> None:
    kind, formula, low, high = PACKED_CLAMPED[name]
    check_packed(
        name,
        kind,
        2,
        lambda a, b: np.clip(formula(a.astype(np.int64), b.astype(np.int64)), low, high),
        PACKED | CLAMP,
    )


def test_packed_move() -> None:
    """OP_SEL picks a dword of each source pair."""
    rng = np.random.default_rng(2)
    for first in (0, OPSEL):
        for second in (0, OPSEL):
            wave = Wave("gfx942")
            wave.v[0:4, :64] = rng.integers(0, 1 << 32, (4, 64), np.uint32)
            operands = {"a": vgpr(0, 2, first), "b": vgpr(2, 2, second)}
            wave.run(instruction("v_pk_mov_b32", d=vgpr(8, 2), flags=PACKED, **operands))
            np.testing.assert_array_equal(wave.v[8], wave.v[1 if first else 0])
            np.testing.assert_array_equal(wave.v[9], wave.v[3 if second else 2])


def mixed_sources(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tuple(rng.standard_normal((64, 2)).astype(np.float16) for _ in range(3))


@pytest.mark.parametrize("name", ["v_mad_mix_f32", "v_fma_mixlo_f16", "v_mad_mixlo_f16"])
@pytest.mark.parametrize("high", [False, True])
def test_mixed_precision(name: str, high: bool) -> None:
    """Sources are halves here; `high`: into the upper half, the lower one is kept."""
    rng = np.random.default_rng(3)
    sources = mixed_sources(rng)
    wave = Wave("gfx942")
    for number, source in enumerate(sources):
        wave.put(number, np.ascontiguousarray(source).view(np.uint32)[:, 0])
    wave.v[8] = 0x12345678
    picks = [0, 1, 0]
    mods = [OPSEL_HI | (OPSEL if pick else 0) for pick in picks]
    operands = {k: vgpr(n, 1, mods[n]) for n, k in enumerate("abc")}
    operands["a"] = vgpr(0, 1, mods[0] | NEG | NEG_HI)  # minus its size
    half = name.endswith("f16")
    flags = PACKED | (KEEP_HALF if half else 0)
    d = vgpr(8, 1, OPSEL if high and half else 0)
    wave.run(instruction(name, d=d, flags=flags, **operands))
    a, b, c = (s[:, pick].astype(np.float32) for s, pick in zip(sources, picks, strict=True))
    want = fused(F, -abs(a), b, c) if "fma" in name else -abs(a) * b + c
    if not half:
        assert same(wave.get(8, np.float32), want.astype(np.float32)).all()
        return
    got = wave.get(8, np.uint32)
    kept, result = (got & 0xFFFF, got >> 16) if high else (got >> 16, got & 0xFFFF)
    assert (kept == (0x5678 if high else 0x1234)).all()
    assert (result == want.astype(np.float16).view(np.uint16)).all()


DOT2 = {
    ("v_dot2_f32_f16", "gfx942"): ("f16", np.float32),
    ("v_dot2_f32_bf16", "gfx950"): ("bf16", np.float32),
    ("v_dot2_f32_bf16", "gfx1100"): ("bf16", np.float32),
    ("v_dot2_i32_i16", "gfx942"): ("i16", np.int64),
    ("v_dot2_u32_u16", "gfx942"): ("u16", np.int64),
}


@pytest.mark.parametrize(("name", "chip"), DOT2)
def test_dot2(name: str, chip: str) -> None:
    """Order of the sums as in AMD's pseudocode: CDNA adds C last for bf16, else C is first."""
    kind, wide_type = DOT2[name, chip]
    acc = {"f": F, "i": "i32", "u": U}[name[7]]
    rng = np.random.default_rng(4)
    for _ in range(4):
        wave = Wave(chip)
        lanes = wave.lanes
        a, b = (sample(kind, 2 * lanes, rng).reshape(lanes, 2) for _ in range(2))
        c = sample(acc, lanes, rng)
        for number, source in enumerate((a, b)):
            wave.put(number, np.ascontiguousarray(source).view(np.uint32)[:, 0])
        wave.put(2, c)
        operands = {k: vgpr(n, 1, OPSEL_HI if n < 2 else 0) for n, k in enumerate("abc")}
        wave.run(instruction(name, d=vgpr(8), flags=PACKED, **operands))
        with np.errstate(all="ignore"):
            low, high = (a[:, n].astype(wide_type) * b[:, n].astype(wide_type) for n in range(2))
            first_c = not (kind == "bf16" and chip == "gfx950")
            total = c.astype(wide_type) + low + high if first_c else low + high + c
        got = wave.get(8, c.dtype.type)
        assert same(got, total.astype(c.dtype)).all()


@pytest.mark.parametrize("signs", [(0, 0), (NEG, 0), (0, NEG), (NEG, NEG)])
def test_dot4_with_signs(signs: tuple[int, int]) -> None:
    """RDNA3's v_dot4_i32_iu8: NEG says which source is signed."""
    rng = np.random.default_rng(5)
    wave = Wave("gfx1100")
    a, b, c = (sample(U, 32, rng) for _ in range(3))
    for number, source in enumerate((a, b, c)):
        wave.put(number, source)
    operands = {"a": vgpr(0, 1, signs[0]), "b": vgpr(1, 1, signs[1]), "c": vgpr(2)}
    wave.run(instruction("v_dot4_i32_iu8", d=vgpr(3), flags=PACKED, **operands))
    parts = [
        np.ascontiguousarray(x).view(np.int8 if sign else np.uint8).reshape(32, 4).astype(np.int64)
        for x, sign in zip((a, b), signs, strict=True)
    ]
    want = (parts[0] * parts[1]).sum(axis=1) + c
    np.testing.assert_array_equal(wave.get(3, np.uint32), (want & 0xFFFFFFFF).astype(np.uint32))


# ---- carries and choices


def mask(wave: Wave, number: int) -> int:
    return int(wave.s[number]) | (int(wave.s[number + 1]) << 32 if wave.lanes == 64 else 0)


CARRIES: dict[str, Callable[[int, int, int], tuple[int, bool]]] = {
    "v_sub_co_u32": lambda a, b, c: (a - b, a < b),
    "v_subrev_co_u32": lambda a, b, c: (b - a, b < a),
    "v_subb_co_u32": lambda a, b, c: (a - b - c, a < b + c),
    "v_subbrev_co_u32": lambda a, b, c: (b - a - c, b < a + c),
    "v_addc_co_u32": lambda a, b, c: (a + b + c, a + b + c > U32_MAX),
}


NO_CARRY_IN = ("v_sub_co_u32", "v_subrev_co_u32")


@pytest.mark.parametrize("name", CARRIES)
def test_carries(name: str) -> None:
    rng = np.random.default_rng(6)
    wave = Wave("gfx942")
    a, b = (sample(U, 64, rng) for _ in range(2))
    b = np.where(rng.random(64) < 0.3, a, b)
    wave.put(0, a)
    wave.put(1, b)
    wave.s[20], wave.s[21] = rng.integers(0, 1 << 32, 2, np.uint32)
    carry_in = mask(wave, 20)
    wave.exec &= ~0b1010
    operands = {"a": vgpr(0), "b": vgpr(1)}
    operands |= {} if name in NO_CARRY_IN else {"c": sgpr(20, 2)}
    wave.run(instruction(name, d=vgpr(2), e=sgpr(VCC, 2), **operands))
    for lane in range(64):
        carry = carry_in >> lane & 1 if name not in NO_CARRY_IN else 0
        value, out = CARRIES[name](int(a[lane]), int(b[lane]), carry)
        if lane in (1, 3):
            value, out = 0, False
        assert wave.v[2, lane] == value & U32_MAX
        assert bool(mask(wave, VCC) >> lane & 1) == out


@pytest.mark.parametrize("sign", [False, True])
def test_wide_multiply_add(sign: bool) -> None:
    rng = np.random.default_rng(7)
    wave = Wave("gfx942")
    a, b = (sample(U, 64, rng) for _ in range(2))
    c = sample("u64", 64, rng)
    wave.put(0, a)
    wave.put(1, b)
    wave.put(2, c)
    name = "v_mad_i64_i32" if sign else "v_mad_u64_u32"
    operands = {"a": vgpr(0), "b": vgpr(1), "c": vgpr(2, 2)}
    wave.run(instruction(name, d=vgpr(4, 2), e=sgpr(VCC, 2), **operands))
    for lane in range(64):
        x, y, z = int(a[lane]), int(b[lane]), int(c[lane])
        if sign:
            z = z - (1 << 64) if z >> 63 else z
            total = signed32(x) * signed32(y) + z
            out = not -(1 << 63) <= total < 1 << 63
        else:
            total = x * y + z
            out = total >> 64 != 0
        assert int(wave.get(4, np.uint64)[lane]) == total & ((1 << 64) - 1)
        assert bool(mask(wave, VCC) >> lane & 1) == out


def test_choice_of_halves() -> None:
    wave = Wave("gfx1100")
    rng = np.random.default_rng(8)
    a, b = (rng.integers(0, 1 << 16, 32, np.uint32) for _ in range(2))
    wave.put(0, a)
    wave.put(1, b)
    wave.s[VCC] = 0x0F37A55A
    operands = {"a": vgpr(0), "b": vgpr(1), "c": sgpr(VCC)}
    wave.run(instruction("v_cndmask_b16", d=vgpr(2), **operands))
    want = np.where([0x0F37A55A >> lane & 1 for lane in range(32)], b, a)
    np.testing.assert_array_equal(wave.get(2, np.uint16), want)


# ---- division: the three steps in the order a compiler emits them


def divide(kind: str, numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """div_scale, reciprocal with Newton steps, div_fmas, div_fixup; LLVM's expansion of fdiv."""
    wave = Wave("gfx942")
    size = numerator.dtype.itemsize // 4
    n, d = vgpr(0, size), vgpr(2, size)
    wave.put(0, numerator)
    wave.put(2, denominator)
    ds, ns, r, e, q, t = (vgpr(number, size) for number in range(4, 16, 2))
    scrap, one = sgpr(40, 2), sgpr(242)
    negative = vgpr(4, size, NEG)  # minus the scaled denominator

    def fma(to: object, a: object, b: object, c: object) -> object:
        return instruction(f"v_fma_{kind}", d=to, a=a, b=b, c=c)

    scale, fix = f"v_div_scale_{kind}", f"v_div_fixup_{kind}"
    steps = [
        instruction(scale, d=ds, e=scrap, a=d, b=d, c=n),
        instruction(scale, d=ns, e=sgpr(VCC, 2), a=n, b=d, c=n),
        instruction(f"v_rcp_{kind}", d=r, a=ds),
        fma(e, negative, r, one),
        fma(r, e, r, r),
        fma(e, negative, r, one),
        fma(r, e, r, r),
        instruction(f"v_mul_{kind}", d=q, a=ns, b=r),
        fma(t, negative, q, ns),
        *([fma(q, t, r, q), fma(t, negative, q, ns)] if kind == F else []),
        instruction(f"v_div_fmas_{kind}", d=q, a=t, b=r, c=q, x=sgpr(VCC, 2)),
        instruction(fix, d=q, a=q, b=d, c=n),
    ]
    wave.run(*steps)
    return wave.get(12, numerator.dtype.type)


@pytest.mark.parametrize("kind", [F, D])
def test_division_is_correctly_rounded(kind: str) -> None:
    """The whole sequence against numpy's division, which is IEEE's: every pair of edge values too."""
    rng = np.random.default_rng(9)
    values = edges(kind)
    pairs = [(a, b) for a in values for b in values]
    random = np.stack([sample(kind, 6400, rng) for _ in range(2)], axis=1)
    close = random[:640].copy()  # quotients near the limits of the format
    limit = 2.0**126 if kind == F else 2.0**1022
    close[:, 0] = (rng.uniform(-1, 1, 640) * limit).astype(values.dtype)
    close[:, 1] = (rng.standard_normal(640) * 2.0 ** rng.integers(-4, 30, 640)).astype(values.dtype)
    small = close.copy()
    small[:, 0] = (rng.standard_normal(640) / limit).astype(values.dtype)
    cases = np.concatenate([np.array(pairs, values.dtype), random, close, small])
    cases = cases[: len(cases) // 64 * 64]
    for start in range(0, len(cases), 64):
        numerator, denominator = np.ascontiguousarray(cases[start : start + 64].T)
        with np.errstate(all="ignore"):
            want = numerator / denominator
        got = divide(kind, numerator, denominator)
        wrong = ~same(got, want)
        assert not wrong.any(), list(
            zip(numerator[wrong], denominator[wrong], got[wrong], want[wrong], strict=True)
        )[:5]


# ---- classes, and comparisons that write EXEC


@pytest.mark.parametrize("kind", [F, H, D])
@pytest.mark.parametrize("exec_too", [False, True])
def test_class(kind: str, exec_too: bool) -> None:
    """Bits of the mask: sNaN, qNaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf."""
    rng = np.random.default_rng(10)
    info = ml_dtypes.finfo({F: np.float32, H: np.float16, D: np.float64}[kind])
    values = sample(kind, 64, rng)
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    nan_bits = values.view(unsigned).copy()
    exponent_ones = np.array(np.inf, values.dtype).view(unsigned)
    nan_bits[:2] = exponent_ones + 1, exponent_ones | (exponent_ones >> 1) + 1
    values = nan_bits.view(values.dtype)
    chosen = rng.integers(0, 1024, 64, np.uint32)
    wave = Wave("gfx942")
    dwords = max(1, values.dtype.itemsize // 4)
    wave.put(0, values if dwords * 4 == values.dtype.itemsize else values.view("u2").astype("u4"))
    wave.put(2, chosen)
    name = f"v_cmp{'x' if exec_too else ''}_class_{kind}"
    wave.run(instruction(name, d=sgpr(VCC, 2), a=vgpr(0, dwords), b=vgpr(2)))
    want = 0
    for lane, value in enumerate(values):
        bits = int(value.view(unsigned))
        negative = bits >> (8 * values.dtype.itemsize - 1) & 1
        if np.isnan(value):
            number = 1 if bits >> (info.nmant - 1) & 1 else 0
        elif np.isinf(value):
            number = 2 if negative else 9
        elif value == 0:
            number = 5 if negative else 6
        elif abs(float(value)) < float(info.smallest_normal):
            number = 4 if negative else 7
        else:
            number = 3 if negative else 8
        want |= (int(chosen[lane]) >> number & 1) << lane
    assert mask(wave, VCC) == want
    assert wave.exec == (want if exec_too else (1 << 64) - 1)
