"""Every dense matrix instruction of CDNA against products through the calculator's register mapping."""

from dataclasses import dataclass
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.vgpu.support.formats import same
from tests.vgpu.support.instructions import Wave, instruction, vgpr
from tests.vgpu.support.matrix_registers import (
    Cdna,
    among_zeros,
    broadcast_block,
    edges,
    gather,
    lane_pattern,
    product,
    put,
)

A, B, C, D = 0, 32, 64, 128
F32, F16, BF16, I8 = np.float32, np.float16, ml_dtypes.bfloat16, np.int8
FNUZ = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
OCP = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}
CDNA1, CDNA2, CDNA3, CDNA4 = ("gfx908",), ("gfx90a",), ("gfx942",), ("gfx950",)
OLD, NEW = CDNA1 + CDNA2, CDNA3 + CDNA4
ALL = OLD + NEW


@dataclass(frozen=True)
class Row:
    """An instruction, on which chips, and on which of them BLGP moves lanes of B."""

    name: str
    layout: Cdna
    a: type
    b: type
    acc: type
    chips: tuple[str, ...]
    pattern: tuple[str, ...] = ()

    def shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """[lane][element] of A or B, and of the accumulators."""
        layout = self.layout
        return (64, layout.per_lane), (64, layout.m**2 * layout.blocks // 64)


def rows() -> list[Row]:
    """Sources: opcode tables of the CDNA1, CDNA2, CDNA3 and CDNA4 ISA guides; modifiers, the calculator."""
    out = []

    def dense(name: str, m: int, k: int, blocks: int, kind: type, chips: tuple[str, ...],
              pattern: tuple[str, ...]) -> None:  # fmt: skip
        acc = np.int32 if kind is I8 else F32
        out.append(Row(name, Cdna(m, k, blocks), kind, kind, acc, chips, pattern))

    for m, blocks in ((32, 2), (16, 4), (4, 16)):
        shape = f"{m}x{m}x"
        dense(f"v_mfma_f32_{shape}1_{blocks}b_f32", m, 1, blocks, F32, ALL, ALL)
        dense(f"v_mfma_f32_{shape}4_{blocks}b_f16", m, 4, blocks, F16, ALL, ALL)
        dense(f"v_mfma_f32_{shape}4_{blocks}b_bf16", m, 4, blocks, BF16, NEW, NEW)
        dense(f"v_mfma_f32_{shape}4bf16_1k", m, 4, blocks, BF16, CDNA2, CDNA2)
        dense(f"v_mfma_f32_{shape}2bf16", m, 2, blocks, BF16, OLD, OLD)
        dense(f"v_mfma_i32_{shape}4_{blocks}b_i8", m, 4, blocks, I8, ALL, ALL)
    for m in (32, 16):
        k = 64 // m  # depths of an f32 instruction
        shape = f"{m}x{m}x"
        dense(f"v_mfma_f32_{shape}{k}_f32", m, k, 1, F32, ALL, ALL)
        dense(f"v_mfma_f32_{shape}{2 * k}_xf32", m, 2 * k, 1, F32, CDNA3, ())
        dense(f"v_mfma_f32_{shape}{4 * k}_f16", m, 4 * k, 1, F16, ALL, OLD)
        dense(f"v_mfma_f32_{shape}{8 * k}_f16", m, 8 * k, 1, F16, CDNA4, ())
        dense(f"v_mfma_f32_{shape}{4 * k}_bf16", m, 4 * k, 1, BF16, NEW, ())
        dense(f"v_mfma_f32_{shape}{4 * k}bf16_1k", m, 4 * k, 1, BF16, CDNA2, CDNA2)
        dense(f"v_mfma_f32_{shape}{2 * k}bf16", m, 2 * k, 1, BF16, OLD, OLD)
        dense(f"v_mfma_f32_{shape}{8 * k}_bf16", m, 8 * k, 1, BF16, CDNA4, ())
        dense(f"v_mfma_i32_{shape}{4 * k}i8", m, 4 * k, 1, I8, OLD, OLD)
        dense(f"v_mfma_i32_{shape}{8 * k}_i8", m, 8 * k, 1, I8, NEW, ())
        dense(f"v_mfma_i32_{shape}{16 * k}_i8", m, 16 * k, 1, I8, CDNA4, ())
        for lhs in FNUZ:
            for rhs in FNUZ:
                name = f"v_mfma_f32_{shape}{8 * k}_{lhs}_{rhs}"
                for chips, kinds in ((CDNA3, FNUZ), (CDNA4, OCP)):
                    layout = Cdna(m, 8 * k)
                    out.append(Row(name, layout, kinds[lhs], kinds[rhs], F32, chips))
    for m, blocks in ((16, 1), (4, 4)):
        name = f"v_mfma_f64_{m}x{m}x4_" + ("4b_" if blocks > 1 else "") + "f64"
        f64 = np.float64
        out.append(Row(name, Cdna(m, 4, blocks, segment_rows=1), f64, f64, f64, CDNA2 + NEW))
    return out


ROWS = rows()


def run(row: Row, chip: str, **fields: int) -> None:
    """Run the instruction on small integers and compare every element of D."""
    rng = np.random.default_rng(len(row.name) + sum(fields.values()))
    shape, acc_shape = row.shapes()
    a = rng.integers(-3, 4, shape).astype(row.a)
    b = rng.integers(-3, 4, shape).astype(row.b)
    c = rng.integers(-9, 10, acc_shape).astype(row.acc)
    lhs, rhs, acc, got = multiplied(row, chip, a, b, c, **fields)
    np.testing.assert_array_equal(got, (lhs @ rhs + acc).astype(row.acc))


def multiplied(row: Row, chip: str, a: np.ndarray, b: np.ndarray, c: np.ndarray,
               **fields: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The matrices in f64 that values of [lane][element] are, and D."""
    layout = row.layout
    wave = Wave(chip)
    counts = [put(wave, at, x, 8 * x.dtype.itemsize) for at, x in ((A, a), (B, b), (C, c))]
    operands = {
        "d": vgpr(D, counts[2]),
        "a": vgpr(A, counts[0]),
        "b": vgpr(B, counts[1]),
        "c": vgpr(C, counts[2]),
    }
    wave.run(instruction(row.name, **operands, **fields))

    cbsz, abid, blgp = (fields.get(field, 0) for field in ("cbsz", "abid", "blgp"))
    negates = row.acc is np.float64
    pattern = 0 if negates else blgp

    def b_place(block: int, k: int, j: int) -> tuple[int, int]:
        lane, element = layout.source(block, j, k)
        return lane_pattern(lane, pattern), element

    def a_place(block: int, i: int, k: int) -> tuple[int, int]:
        return layout.source(broadcast_block(block, cbsz, abid), i, k)

    n, m, k = layout.blocks, layout.m, layout.k
    wide = np.float64
    lhs = gather((n, m, k), a.astype(wide), a_place)
    rhs = gather((n, k, m), b.astype(wide), b_place)
    acc = gather((n, m, m), c.astype(wide), layout.result)
    if negates:
        lhs, rhs, acc = (-x if blgp >> bit & 1 else x for bit, x in enumerate((lhs, rhs, acc)))
    dwords = np.ascontiguousarray(wave.v[D : D + counts[2]].T)
    return lhs, rhs, acc, gather((n, m, m), dwords.view(row.acc).reshape(64, -1), layout.result)


PLAIN = [(row, chip) for row in ROWS for chip in row.chips]


@pytest.mark.parametrize(("row", "chip"), PLAIN, ids=lambda x: getattr(x, "name", x))
def test_product(row: Row, chip: str) -> None:
    run(row, chip)


# One instruction of each chip and pair of types; xf32 and the two forms of gfx90a's bf16 apart.
KINDS = {
    (chip, row.a, row.b, row.name.split("x")[-1].lstrip("0123456789")): row for row, chip in PLAIN
}


def ten_bits(x: np.ndarray) -> np.ndarray:
    """f32 cut to ten bits of mantissa; NaN stays."""
    cut = (x.astype(F32).view(np.uint32) & 0xFFFFE000).view(F32)
    return np.where(np.isnan(x), x, cut).astype(float)


def flushed(x: np.ndarray, kind: type) -> np.ndarray:
    """Zeros of their sign for the denormals of a type."""
    tiny = float(ml_dtypes.finfo(kind).smallest_normal)
    return np.where(abs(x) < tiny, np.copysign(0, x), x)


@pytest.mark.parametrize(
    ("chip", "row"),
    [(key[0], row) for key, row in KINDS.items()],
    ids=lambda x: getattr(x, "name", x),
)
@pytest.mark.parametrize("side", ["A", "B"])
def test_edge_values(chip: str, row: Row, side: str) -> None:
    """NaN, infinities, denormals and signs of zeros; gfx90a flushes f16 and bf16, xf32 has ten bits."""
    shape, acc_shape = row.shapes()
    special, plain = (row.a, row.b) if side == "A" else (row.b, row.a)
    for name, edge in edges(special).items():
        one = among_zeros(shape, edge, special)
        with np.errstate(over="ignore"):
            other = np.full(shape, edge.other).astype(plain)
        c = np.full(acc_shape, edge.acc).astype(row.acc)
        lhs, rhs, acc, got = multiplied(
            row, chip, *((one, other) if side == "A" else (other, one)), c
        )
        flushes = chip == "gfx90a" and row.a in (F16, BF16)
        if flushes:
            lhs, rhs, acc = flushed(lhs, row.a), flushed(rhs, row.b), flushed(acc, F32)
        if row.name.endswith("xf32"):
            lhs, rhs = (ten_bits(x) for x in (lhs, rhs))
        with np.errstate(all="ignore"):
            want = product(lhs, rhs, acc).astype(row.acc)
        want = flushed(want, F32).astype(F32) if flushes else want
        assert same(got, want).all(), (name, got[~same(got, want)][:3], want[~same(got, want)][:3])


BROADCASTS = [(row, row.chips[0]) for row in ROWS if row.layout.blocks > 1 and row.pattern]


@pytest.mark.parametrize(("row", "chip"), BROADCASTS, ids=lambda x: getattr(x, "name", x))
def test_broadcast_of_blocks(row: Row, chip: str) -> None:
    """CBSZ up to all blocks, with the first and the last block of a group as ABID."""
    for cbsz in range(1, row.layout.blocks.bit_length()):
        for abid in (0, (1 << cbsz) - 1):
            run(row, chip, cbsz=cbsz, abid=abid)


PATTERNS = [(row, chip) for row in ROWS for chip in row.pattern if chip != "gfx950"]


@pytest.mark.parametrize(("row", "chip"), PATTERNS, ids=lambda x: getattr(x, "name", x))
def test_lane_patterns(row: Row, chip: str) -> None:
    for blgp in range(1, 8):
        run(row, chip, blgp=blgp)


def test_pattern_and_broadcast_together() -> None:
    row = next(r for r in ROWS if r.name == "v_mfma_f32_4x4x4_16b_f16")
    run(row, "gfx942", cbsz=3, abid=5, blgp=3)


@pytest.mark.parametrize("row", [r for r in ROWS if r.acc is np.float64], ids=lambda r: r.name)
def test_f64_negation(row: Row) -> None:
    """On CDNA3 the three bits of BLGP negate A, B and C."""
    for blgp in range(1, 8):
        run(row, "gfx942", blgp=blgp)


@pytest.mark.parametrize(
    ("name", "chip", "fields"),
    [
        ("v_mfma_f32_32x32x8_f16", "gfx942", {"blgp": 1}),
        ("v_mfma_f32_16x16x32_fp8_fp8", "gfx942", {"blgp": 1}),
        ("v_mfma_f32_16x16x16_f16", "gfx90a", {"cbsz": 1}),
        ("v_mfma_f32_32x32x1_2b_f32", "gfx90a", {"cbsz": 2}),
        ("v_mfma_f32_32x32x1_2b_f32", "gfx90a", {"cbsz": 0, "abid": 1}),
        ("v_mfma_f64_16x16x4_f64", "gfx90a", {"blgp": 1}),
        ("v_mfma_f64_16x16x4_f64", "gfx942", {"cbsz": 1}),
        ("v_mfma_f32_16x16x8_xf32", "gfx950", {}),
    ],
)
def test_fields_an_instruction_does_not_have(name: str, chip: str, fields: dict[str, int]) -> None:
    """A field that the guides give no meaning stops the kernel with its name and address."""
    row = next(r for r in ROWS if r.name == name)
    with pytest.raises(RuntimeError, match=f"at 0x0 `{name}"):
        run(row, chip, **fields)


def test_xf32_cuts_the_mantissa() -> None:
    """Ten bits of mantissa are left, as in Tensile's reference; NaN stays NaN."""
    layout = Cdna(16, 8)
    rng = np.random.default_rng(5)
    values = rng.standard_normal((64, 2)).astype(np.float32)
    one = np.zeros((64, 2), np.float32)
    lane, element = layout.source(0, 3, 5)
    one[lane, element] = 1  # B[5][3]
    wave = Wave("gfx942")
    put(wave, A, values, 32)
    put(wave, B, one, 32)
    operands = {"a": vgpr(A, 2), "b": vgpr(B, 2), "c": vgpr(C, 4)}
    wave.run(instruction("v_mfma_f32_16x16x8_xf32", d=vgpr(D, 4), **operands))
    got = np.ascontiguousarray(wave.v[D : D + 4].T).view(np.float32)
    for i in range(16):
        exact = values[layout.source(0, i, 5)]
        cut = np.uint32(exact.view(np.uint32) & 0xFFFFE000).view(np.float32)
        assert got[layout.result(0, i, 3)] == cut
    values[layout.source(0, 2, 5)] = np.uint32(0x7F800001).view(np.float32)
    put(wave, A, values, 32)
    wave.run(instruction("v_mfma_f32_16x16x8_xf32", d=vgpr(D, 4), **operands))
    got = np.ascontiguousarray(wave.v[D : D + 4].T).view(np.float32)
    assert np.isnan(got[layout.result(0, 2, 3)])


def added(total: np.float32, a: np.float32, b: np.float32) -> np.float32:
    """total + a * b of exact fractions, rounded to nearest even by Python's division and numpy's cast."""
    exact = Fraction(float(total)) + Fraction(float(a)) * Fraction(float(b))
    # f64 rounded to odd keeps what one rounding to f32 needs.
    near = float(exact)
    if Fraction(near) != exact and np.float64(near).view(np.uint64) % 2 == 0:
        near = np.nextafter(near, np.inf if Fraction(near) < exact else -np.inf)
    return np.float32(near)


@pytest.mark.parametrize(("m", "k"), [(16, 8), (32, 4)])
def test_xf32_products_bit_by_bit(m: int, k: int) -> None:
    """Operands cut to ten bits, products exact, sums rounded after each depth, from the first to the last."""
    layout, registers = Cdna(m, k), m * m // 64
    rng = np.random.default_rng(m)
    scale = np.float32(2.0) ** rng.integers(-6, 7, (64, 2))
    a, b = ((rng.standard_normal((64, 2)) * scale).astype(np.float32) for _ in range(2))
    c = rng.standard_normal((64, registers)).astype(np.float32)
    a[5, 0], b[9, 1] = 2.0**-130, -(2.0**100)  # a denormal operand, a large one
    wave = Wave("gfx942")
    for first, values in ((A, a), (B, b), (C, c)):
        put(wave, first, values, 32)
    operands = {"a": vgpr(A, 2), "b": vgpr(B, 2), "c": vgpr(C, registers)}
    name = f"v_mfma_f32_{m}x{m}x{k}_xf32"
    wave.run(instruction(name, d=vgpr(D, registers), **operands))
    got = np.ascontiguousarray(wave.v[D : D + registers].T).view(np.float32)
    left, right = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b))
    for row in range(0, m, 3):
        for column in range(m):
            want = c[layout.result(0, row, column)]
            for depth in range(k):
                x, y = (v[layout.source(0, n, depth)] for v, n in ((left, row), (right, column)))
                want = added(want, x, y)
            assert got[layout.result(0, row, column)].view(np.uint32) == want.view(np.uint32)
