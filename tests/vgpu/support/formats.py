"""Values of each operand type: edge values, random values, and exact rounding to a float format."""

from fractions import Fraction

import ml_dtypes
import numpy as np

FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
INTEGERS = {
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
}
DTYPES = FLOATS | INTEGERS
# The 8-bit floats of each chip, by their names in mnemonics.
FP8 = {
    ("gfx942", "fp8"): ml_dtypes.float8_e4m3fnuz,
    ("gfx942", "bf8"): ml_dtypes.float8_e5m2fnuz,
    ("gfx950", "fp8"): ml_dtypes.float8_e4m3fn,
    ("gfx950", "bf8"): ml_dtypes.float8_e5m2,
    ("gfx1201", "fp8"): ml_dtypes.float8_e4m3fn,
    ("gfx1201", "bf8"): ml_dtypes.float8_e5m2,
}


def edges(kind: str) -> np.ndarray:
    """Values where formulas go wrong: zeros, denormals, limits, infinities, NaN, halves, signs."""
    dtype = DTYPES[kind]
    if kind in FLOATS:
        info = ml_dtypes.finfo(dtype)
        smallest, tiny, most = (
            float(info.smallest_subnormal),
            float(info.smallest_normal),
            float(info.max),
        )
        positive = [0.0, smallest, 3 * smallest, tiny, tiny - smallest, 0.5, 1.0, 1.5, 2.5, 3.75]
        positive += [100.25, 65504.0, 65520.0, 2.0**31, 2.0**32 + 512, most, most / 2, np.inf]
        with np.errstate(over="ignore"):
            return np.array([*positive, *(-x for x in positive), np.nan], np.float64).astype(dtype)
    info = np.iinfo(dtype)
    values = [0, 1, 2, 3, 7, 31, 32, 33, 100, 0x5555, info.max, info.max - 1, info.min]
    values += [info.min + 1, info.max // 2, info.max // 2 + 1]
    values += [-1, -2, -7, -100] if info.min else []
    return np.array(values, dtype)


def sample(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Half edge values, half random bit patterns or moderate numbers."""
    dtype = np.dtype(DTYPES[kind])
    bits = rng.integers(0, 256, (count, dtype.itemsize), np.uint8).view(dtype)[:, 0]
    if kind in FLOATS:
        moderate = (rng.standard_normal(count) * 4).astype(dtype)
        bits = np.where(rng.random(count) < 0.5, bits, moderate)
    return np.where(rng.random(count) < 0.5, rng.choice(edges(kind), count), bits)


def signs(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Zeros and ones of both signs, and NaN: so few values that rules for a pair of them are met."""
    return rng.choice(np.array([0.0, -0.0, 1.0, -1.0, np.nan], DTYPES[kind]), count)


def larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger number: NaN is none, +0 is above -0."""
    return np.where(a == b, np.where(np.signbit(a), b, a), np.fmax(a, b))


def smaller(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller number: NaN is none, -0 is below +0."""
    return np.where(a == b, np.where(np.signbit(a), a, b), np.fmin(a, b))


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """As `larger`, but NaN wins."""
    return np.where(np.isnan(a) | np.isnan(b), np.maximum(a, b), larger(a, b))


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """As `smaller`, but NaN wins."""
    return np.where(np.isnan(a) | np.isnan(b), np.minimum(a, b), smaller(a, b))


def rounded(exact: Fraction, kind: str) -> float:
    """The float nearest to a number, ties to even, with denormals and overflow to infinity."""
    if exact == 0:
        return 0.0
    info = ml_dtypes.finfo(DTYPES[kind])
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    if abs(exact) < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, info.minexp) - info.nmant)
    value = round(exact / quantum) * quantum
    if abs(value) > Fraction(float(info.max)):
        return float("inf") if value > 0 else float("-inf")
    return float(value)


def fused(kind: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c with one rounding, by exact fractions."""
    out = []
    for x, y, z in zip(a.astype(float), b.astype(float), c.astype(float), strict=True):
        with np.errstate(all="ignore"):
            plain = np.float64(x) * np.float64(y) + np.float64(z)
        finite = np.isfinite([x, y, z]).all()
        exact = Fraction(x) * Fraction(y) + Fraction(z) if finite else Fraction(0)
        if not finite or exact == 0:
            # A zero product plus a zero, or a full cancellation: its sign is that of the plain sum
            # unless the product underflowed.
            out.append(plain if not finite or x == 0 or y == 0 else 0.0)
        else:
            out.append(rounded(exact, kind) or (0.0 if exact > 0 else -0.0))
    with np.errstate(all="ignore"):
        return np.array(out, np.float64).astype(DTYPES[kind])


def same(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Equal bit by bit, or both NaN."""
    if got.dtype.kind == "f" or got.dtype == ml_dtypes.bfloat16:
        unsigned = np.dtype(f"u{got.dtype.itemsize}")
        bits_equal = got.view(unsigned) == want.view(unsigned)
        with np.errstate(all="ignore"):
            return bits_equal | (np.isnan(got.astype(float)) & np.isnan(want.astype(float)))
    return got == want
