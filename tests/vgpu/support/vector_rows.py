"""A vector instruction as a row with a formula, and how a row is held against the executor."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.vgpu.support.formats import DTYPES, FLOATS, same, sample, signs
from tests.vgpu.support.instructions import Wave, instruction, vgpr

BATCHES = 6


@dataclass(frozen=True)
class Row:
    """An instruction: destination type, source types, formula over arrays of those types."""

    name: str
    out: str
    sources: tuple[str, ...]
    formula: Callable[..., np.ndarray]
    chip: str = "gfx942"
    ulps: int = 0  # how far an approximation may be off
    flags: int = 0  # of the record
    imm: int = 0
    error: float = 0  # how far an approximation may be off, absolutely


def wide(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Compute in f64; the comparison rounds once to the result type."""
    return lambda *sources: function(*(s.astype(np.float64) for s in sources))


def signed(x: np.ndarray, bits: int) -> np.ndarray:
    """The low bits as a signed number."""
    x = x.astype(np.int64) & ((1 << bits) - 1)
    return np.where(x >> (bits - 1), x - (1 << bits), x)


def big(function: Callable[..., int]) -> Callable[..., np.ndarray]:
    """Compute lane by lane with Python's integers; the comparison keeps the low bits."""

    def formula(*sources: np.ndarray) -> np.ndarray:
        rows = zip(*(s.tolist() for s in sources), strict=True)
        return np.array([function(*row) & 0xFFFFFFFFFFFFFFFF for row in rows], np.uint64)

    return formula


def permute_bytes(a: int, b: int, select: int) -> int:
    """v_perm_b32: bytes 0..3 from b, 4..7 from a, 8..11 sign bytes, 12 zero, above ones."""
    data, out = a << 32 | b, 0
    for i in range(4):
        s = select >> 8 * i & 0xFF
        if s >= 13:
            byte = 0xFF
        elif s == 12:
            byte = 0
        elif s >= 8:
            byte = 0xFF if data >> (16 * (s - 8) + 15) & 1 else 0
        else:
            byte = data >> 8 * s & 0xFF
        out |= byte << 8 * i
    return out


def saturating(low: int, high: int) -> Callable[[np.ndarray], np.ndarray]:
    """Float to integer towards zero: NaN is 0, out of range is the nearest limit."""
    return lambda x: np.clip(
        np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e30, neginf=-1e30)), low, high
    )


def field(x: int, start: int, width: int, *, sign: bool) -> int:
    """Bits start..start+width-1 of x, sign extended when asked."""
    start, width = start & 31, width & 31
    value = (x & 0xFFFFFFFF) >> start & ((1 << width) - 1)
    # Bits beyond 31 of the field are zeros, so the field's own top bit is its sign.
    return value - (1 << width) if sign and width and value >> (width - 1) & 1 else value


def first_bit(x: int) -> int:
    """Zeros before the highest set bit of 32, -1 when there is none."""
    return 32 - x.bit_length() if x else -1


def middle(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def signed32(x: int) -> int:
    return x - (1 << 32) if x >> 31 & 1 else x


def apply(row: Row, sources: list[np.ndarray]) -> np.ndarray:
    """The formula's result in the destination type; integers keep their low bits."""
    dtype = np.dtype(DTYPES[row.out])
    with np.errstate(all="ignore"):
        result = row.formula(*sources)
        if dtype.kind in "ui":
            if result.dtype.kind == "f":
                result = result.astype(np.int64)
            return result.astype(np.uint64).astype(np.dtype(f"u{dtype.itemsize}")).view(dtype)
        return result.astype(dtype)


def distance(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Representable values between two floats of the same format."""
    ordered = []
    for x in (got, want):
        i = x.view(np.dtype(f"i{x.dtype.itemsize}")).astype(object)
        ordered.append(
            np.array([v if v >= 0 else -(v & (1 << 8 * x.dtype.itemsize - 1) - 1) for v in i])
        )
    return np.abs(ordered[0] - ordered[1]).astype(float)


def agree(row: Row, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    ok = same(got, want)
    if row.ulps:
        both = np.isfinite(got.astype(float)) & np.isfinite(want.astype(float))
        ok |= both & (distance(got, want) <= row.ulps)
    if row.error:
        with np.errstate(all="ignore"):
            ok |= abs(got.astype(float) - want.astype(float)) <= row.error
    return ok


def check(row: Row) -> None:
    """Run the row's instruction on edge values and random ones and compare every lane."""
    rng = np.random.default_rng(len(row.name))
    for batch in range(BATCHES):
        wave = Wave(row.chip)
        sources = [
            (signs if batch == 0 and kind in FLOATS else sample)(kind, wave.lanes, rng)
            for kind in row.sources
        ]
        fields = {}
        for name, number, source in zip("abc", (0, 2, 4), sources, strict=False):
            size = source.dtype.itemsize
            padded = source if size >= 4 else source.view(f"u{size}").astype(np.uint32)
            wave.put(number, padded)
            fields[name] = vgpr(number, max(1, size // 4))
        out = np.dtype(DTYPES[row.out])
        result = vgpr(8, max(1, out.itemsize // 4))
        wave.run(instruction(row.name, d=result, flags=row.flags, imm=row.imm, **fields))
        got, want = wave.get(8, out.type), apply(row, sources)
        wrong = ~agree(row, got, want)
        assert not wrong.any(), [
            (*(s[lane] for s in sources), got[lane], want[lane])
            for lane in np.flatnonzero(wrong)[:5]
        ]
