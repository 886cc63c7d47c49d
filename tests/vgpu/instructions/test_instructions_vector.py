"""Vector arithmetic, conversions and comparisons, one row an instruction, against numpy or exact fractions."""

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.vgpu.program import EXEC, VCC
from tests.vgpu.support.formats import FP8, fused, larger, same, sample, smaller
from tests.vgpu.support.instructions import Wave, instruction, sgpr, vgpr
from tests.vgpu.support.vector_rows import (
    Row,
    big,
    check,
    field,
    first_bit,
    middle,
    permute_bytes,
    saturating,
    signed,
    signed32,
    wide,
)

F, H, D, U, I = "f32", "f16", "f64", "u32", "i32"  # noqa: E741
FLOAT_ROWS = [
    row
    for kind, s in (("f32", ""), ("f16", ""), ("f64", ""))
    for row in (
        Row(f"v_add_{kind}", kind, (kind, kind), lambda a, b: a + b),
        Row(f"v_mul_{kind}", kind, (kind, kind), lambda a, b: a * b),
        Row(f"v_max_{kind}", kind, (kind, kind), larger),
        Row(f"v_min_{kind}", kind, (kind, kind), smaller),
        Row(f"v_fma_{kind}", kind, (kind, kind, kind), lambda a, b, c, k=kind: fused(k, a, b, c)),
        Row(f"v_floor_{kind}", kind, (kind,), np.floor),
        Row(f"v_ceil_{kind}", kind, (kind,), np.ceil),
        Row(f"v_trunc_{kind}", kind, (kind,), np.trunc),
        Row(f"v_rndne_{kind}", kind, (kind,), np.rint),
        Row(
            f"v_rcp_{kind}",
            kind,
            (kind,),
            wide(lambda a: 1 / a),
            ulps=2 if kind != "f64" else 2**30,
        ),
        Row(f"v_sqrt_{kind}", kind, (kind,), wide(np.sqrt), ulps=1 if kind != "f64" else 2**30),
        Row(
            f"v_rsq_{kind}",
            kind,
            (kind,),
            wide(lambda a: 1 / np.sqrt(a)),
            ulps=2 if kind != "f64" else 2**30,
        ),
    )
]
ROWS = [
    *FLOAT_ROWS,
    Row("v_sub_f32", F, (F, F), lambda a, b: a - b),
    Row("v_subrev_f32", F, (F, F), lambda a, b: b - a),
    Row("v_sub_f16", H, (H, H), lambda a, b: a - b),
    Row("v_max3_f32", F, (F, F, F), lambda a, b, c: larger(larger(a, b), c)),
    Row("v_min3_f32", F, (F, F, F), lambda a, b, c: smaller(smaller(a, b), c)),
    Row("v_exp_f32", F, (F,), wide(np.exp2), ulps=2),
    Row("v_log_f32", F, (F,), wide(np.log2), ulps=2),
    Row("v_exp_f16", H, (H,), wide(np.exp2), ulps=1),
    Row("v_log_f16", H, (H,), wide(np.log2), ulps=1),
    Row("v_add_u32", U, (U, U), lambda a, b: a + b),
    Row("v_sub_u32", U, (U, U), lambda a, b: a - b),
    Row("v_subrev_u32", U, (U, U), lambda a, b: b - a),
    Row("v_mul_lo_u32", U, (U, U), lambda a, b: a * b),
    Row("v_mul_hi_u32", U, (U, U), big(lambda a, b: a * b >> 32)),
    Row("v_mul_hi_i32", I, (I, I), big(lambda a, b: a * b >> 32)),
    Row("v_mul_u32_u24", U, (U, U), big(lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF))),
    Row("v_mul_hi_u32_u24", U, (U, U), big(lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32)),
    Row("v_mul_i32_i24", U, (U, U), lambda a, b: signed(a, 24) * signed(b, 24)),
    Row("v_mad_u32_u24", U, (U, U, U), big(lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c)),
    Row("v_mad_i32_i24", U, (U, U, U), lambda a, b, c: signed(a, 24) * signed(b, 24) + c),
    Row("v_lshlrev_b32", U, (U, U), big(lambda a, b: b << (a & 31))),
    Row("v_lshrrev_b32", U, (U, U), big(lambda a, b: b >> (a & 31))),
    Row("v_ashrrev_i32", I, (U, I), big(lambda a, b: b >> (a & 31))),
    Row("v_lshlrev_b64", "u64", (U, "u64"), big(lambda a, b: b << (a & 63))),
    Row("v_lshrrev_b64", "u64", (U, "u64"), big(lambda a, b: b >> (a & 63))),
    Row("v_ashrrev_i64", "i64", (U, "i64"), big(lambda a, b: b >> (a & 63))),
    Row("v_and_b32", U, (U, U), lambda a, b: a & b),
    Row("v_or_b32", U, (U, U), lambda a, b: a | b),
    Row("v_xor_b32", U, (U, U), lambda a, b: a ^ b),
    Row("v_xnor_b32", U, (U, U), lambda a, b: ~(a ^ b)),
    Row("v_not_b32", U, (U,), lambda a: ~a),
    Row("v_bfe_u32", U, (U, U, U), big(lambda a, b, c: field(a, b, c, sign=False))),
    Row(
        "v_bfe_i32",
        U,
        (U, U, U),
        big(lambda a, b, c: field(signed32(a) >> (b & 31), 0, c, sign=True)),
    ),
    Row("v_bfi_b32", U, (U, U, U), lambda a, b, c: (a & b) | (~a & c)),
    Row("v_alignbit_b32", U, (U, U, U), big(lambda a, b, c: (a << 32 | b) >> (c & 31))),
    Row("v_alignbyte_b32", U, (U, U, U), big(lambda a, b, c: (a << 32 | b) >> 8 * (c & 3))),
    Row("v_perm_b32", U, (U, U, U), big(permute_bytes)),
    Row("v_bcnt_u32_b32", U, (U, U), big(lambda a, b: a.bit_count() + b)),
    Row("v_bfrev_b32", U, (U,), big(lambda a: int(f"{a:032b}"[::-1], 2))),
    Row("v_ffbh_u32", U, (U,), big(first_bit)),
    Row("v_ffbh_i32", U, (U,), big(lambda x: first_bit(x if x < 2**31 else ~x & 0xFFFFFFFF))),
    Row("v_ffbl_b32", U, (U,), big(lambda a: (a & -a).bit_length() - 1 if a else -1)),
    Row("v_min_u32", U, (U, U), np.minimum),
    Row("v_max_u32", U, (U, U), np.maximum),
    Row("v_min_i32", I, (I, I), np.minimum),
    Row("v_max_i32", I, (I, I), np.maximum),
    Row("v_med3_i32", I, (I, I, I), middle),
    Row("v_med3_u32", U, (U, U, U), middle),
    Row("v_max3_u32", U, (U, U, U), lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    Row("v_min3_i32", I, (I, I, I), lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    Row("v_add3_u32", U, (U, U, U), lambda a, b, c: a + b + c),
    Row("v_lshl_add_u32", U, (U, U, U), big(lambda a, b, c: (a << (b & 31)) + c)),
    Row("v_add_lshl_u32", U, (U, U, U), big(lambda a, b, c: (a + b & 0xFFFFFFFF) << (c & 31))),
    Row("v_lshl_or_b32", U, (U, U, U), big(lambda a, b, c: a << (b & 31) | c)),
    Row("v_and_or_b32", U, (U, U, U), lambda a, b, c: a & b | c),
    Row("v_or3_b32", U, (U, U, U), lambda a, b, c: a | b | c),
    Row("v_xad_u32", U, (U, U, U), lambda a, b, c: (a ^ b) + c),
    Row("v_add_u16", "u16", ("u16", "u16"), lambda a, b: a + b),
    Row("v_sub_u16", "u16", ("u16", "u16"), lambda a, b: a - b),
    Row("v_mul_lo_u16", "u16", ("u16", "u16"), lambda a, b: a * b),
    Row("v_lshlrev_b16", "u16", ("u16", "u16"), big(lambda a, b: b << (a & 15))),
    Row("v_lshrrev_b16", "u16", ("u16", "u16"), big(lambda a, b: b >> (a & 15))),
    Row("v_ashrrev_i16", "i16", ("u16", "i16"), big(lambda a, b: b >> (a & 15))),
    Row("v_max_i16", "i16", ("i16", "i16"), np.maximum),
    Row("v_min_u16", "u16", ("u16", "u16"), np.minimum),
    Row("v_mad_u16", "u16", ("u16", "u16", "u16"), lambda a, b, c: a * b + c),
    Row("v_cvt_f32_u32", F, (U,), lambda a: a.astype(np.float32)),
    Row("v_cvt_f32_i32", F, (I,), lambda a: a.astype(np.float32)),
    Row("v_cvt_u32_f32", U, (F,), saturating(0, 2**32 - 1)),
    Row("v_cvt_i32_f32", I, (F,), saturating(-(2**31), 2**31 - 1)),
    Row("v_cvt_f16_f32", H, (F,), lambda a: a.astype(np.float16)),
    Row("v_cvt_f32_f16", F, (H,), lambda a: a.astype(np.float32)),
    Row("v_cvt_f64_f32", D, (F,), lambda a: a.astype(np.float64)),
    Row("v_cvt_f32_f64", F, (D,), lambda a: a.astype(np.float32)),
    Row("v_cvt_f64_i32", D, (I,), lambda a: a.astype(np.float64)),
    Row("v_cvt_f64_u32", D, (U,), lambda a: a.astype(np.float64)),
    Row("v_cvt_i32_f64", I, (D,), saturating(-(2**31), 2**31 - 1)),
    Row("v_cvt_u32_f64", U, (D,), saturating(0, 2**32 - 1)),
    Row("v_cvt_f16_u16", H, ("u16",), lambda a: a.astype(np.float64)),
    Row("v_cvt_f16_i16", H, ("i16",), lambda a: a.astype(np.float64)),
    Row("v_cvt_u16_f16", "u16", (H,), saturating(0, 2**16 - 1)),
    Row("v_cvt_i16_f16", "i16", (H,), saturating(-(2**15), 2**15 - 1)),
    Row("v_cvt_f32_ubyte0", F, (U,), lambda a: (a & 255).astype(np.float32)),
    Row("v_cvt_f32_ubyte3", F, (U,), lambda a: (a >> 24).astype(np.float32)),
    Row(
        "v_pack_b32_f16",
        U,
        ("u16", "u16"),
        lambda a, b: a.astype(np.uint32) | b.astype(np.uint32) << 16,
    ),
    Row("v_max_num_f32", F, (F, F), larger, chip="gfx1201"),
    Row("v_add_nc_u32", U, (U, U), lambda a, b: a + b, chip="gfx1100"),
    Row("v_cvt_f32_bf16", F, ("bf16",), lambda a: a.astype(np.float32), chip="gfx950"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.chip}")
def test_vector_instruction(row: Row) -> None:
    check(row)


COMPARISONS = {
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
INTEGER_COMPARISONS = COMPARISONS | {"ne": np.not_equal}
FLOAT_COMPARISONS = COMPARISONS | {
    "lg": lambda a, b: (a < b) | (a > b),
    "neq": np.not_equal,
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "nlt": lambda a, b: ~(a < b),
    "nge": lambda a, b: ~(a >= b),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
}


ALWAYS = {
    "f": lambda a, b: np.zeros(a.shape, bool),
    "t": lambda a, b: np.ones(a.shape, bool),
    "tru": lambda a, b: np.ones(a.shape, bool),
}


@pytest.mark.parametrize("kind", ["f16", "f32", "f64", "i16", "u16", "i32", "u32", "i64", "u64"])
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("exec_too", [False, True])
def test_comparisons(kind: str, chip: str, exec_too: bool) -> None:
    """v_cmpx writes EXEC: on CDNA beside the mask, on RDNA instead of it."""
    rng = np.random.default_rng(3)
    formulas = (FLOAT_COMPARISONS if kind[0] == "f" else INTEGER_COMPARISONS) | ALWAYS
    for name, formula in formulas.items():
        if name == "tru" and kind[0] != "f":
            continue
        wave = Wave(chip)
        a, b = (sample(kind, wave.lanes, rng) for _ in range(2))
        b = np.where(rng.random(wave.lanes) < 0.3, a, b)
        dwords = max(1, a.dtype.itemsize // 4)
        for number, x in ((0, a), (2, b)):
            wave.put(number, x if x.dtype.itemsize >= 4 else x.view("u2").astype(np.uint32))
        wave.exec &= ~0b1010
        active = wave.exec
        target = EXEC if exec_too and chip == "gfx1100" else VCC
        d = sgpr(target, wave.lanes // 32)
        full = f"v_cmp{'x' if exec_too else ''}_{name}_{kind}"
        wave.run(instruction(full, d=d, a=vgpr(0, dwords), b=vgpr(2, dwords)))
        want = sum(int(t) << lane for lane, t in enumerate(formula(a, b))) & active
        got = int(wave.s[target]) | (int(wave.s[target + 1]) << 32 if wave.lanes == 64 else 0)
        assert got == want, name
        assert wave.exec == (want if exec_too else active), name


@pytest.mark.parametrize(("chip", "kind"), FP8)
def test_every_fp8_value(chip: str, kind: str) -> None:
    """All 256 codes to f32."""
    codes = np.arange(256, dtype=np.uint32)
    want = codes.astype(np.uint8).view(FP8[chip, kind]).astype(np.float32)
    lanes = Wave(chip).lanes
    for start in range(0, 256, lanes):
        wave = Wave(chip)
        wave.put(0, codes[start : start + lanes])
        wave.run(instruction(f"v_cvt_f32_{kind}", d=vgpr(1), a=vgpr(0)))
        assert same(wave.get(1, np.float32), want[start : start + lanes]).all()


@pytest.mark.parametrize(("chip", "kind"), FP8)
def test_rounding_to_fp8(chip: str, kind: str) -> None:
    """Values in range round as ml_dtypes rounds; both results lie in one half."""
    rng = np.random.default_rng(4)
    dtype = FP8[chip, kind]
    most = float(ml_dtypes.finfo(dtype).max)
    for _ in range(20):
        wave = Wave(chip)
        a, b = (
            np.clip(
                rng.standard_normal(wave.lanes) * 10.0 ** rng.integers(-6, 4, wave.lanes),
                -most,
                most,
            ).astype(np.float32)
            for _ in range(2)
        )
        wave.put(0, a)
        wave.put(1, b)
        wave.run(instruction(f"v_cvt_pk_{kind}_f32", d=vgpr(2), a=vgpr(0), b=vgpr(1)))
        got = wave.get(2, np.uint32) & 0xFFFF
        low, high = (x.astype(dtype).view(np.uint8).astype(np.uint32) for x in (a, b))
        np.testing.assert_array_equal(got, low | high << 8)


@pytest.mark.parametrize(("chip", "kind"), FP8)
def test_fp8_of_what_is_out_of_range(chip: str, kind: str) -> None:
    """Overflow, infinities and NaN: infinity where the format has one, else NaN; ties at the limit."""
    dtype = FP8[chip, kind]
    most = float(ml_dtypes.finfo(dtype).max)
    unit = most - float(np.nextafter(dtype(most), dtype(0)))
    tie = np.float32(most + unit / 2)
    values = [most, tie, np.nextafter(tie, 0), np.nextafter(tie, np.float32(np.inf)), 2 * most]
    values += [3e38, np.inf, np.nan, 1e-30, float(ml_dtypes.finfo(dtype).smallest_subnormal) / 2]
    wave = Wave(chip)
    x = np.resize(np.array([*values, *(-v for v in values)], np.float32), wave.lanes)
    wave.put(0, x)
    wave.run(instruction(f"v_cvt_pk_{kind}_f32", d=vgpr(2), a=vgpr(0), b=vgpr(0)))
    got = wave.get(2, np.uint32).astype(np.uint8).view(dtype)
    with np.errstate(all="ignore"):
        assert same(got.astype(np.float32), x.astype(dtype).astype(np.float32)).all()
