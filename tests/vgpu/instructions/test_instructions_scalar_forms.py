"""Scalar instructions of one source, of 64 bits, with a constant, and on EXEC."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.vgpu.support.formats import edges, sample
from tests.vgpu.support.instructions import Wave, instruction, sgpr

MASK, MASK64 = (1 << 32) - 1, (1 << 64) - 1
Result = tuple[int, bool]


def signed(x: int, bits: int = 32) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def reverse(x: int, bits: int) -> int:
    return int(f"{x:0{bits}b}"[::-1], 2)


def lowest(x: int) -> int:
    """Number of the lowest set bit, -1 when there is none."""
    return (x & -x).bit_length() - 1


def leading(x: int, bits: int) -> int:
    """Zeros above the highest set bit, -1 when there is none."""
    return bits - x.bit_length() if x else -1


def quads(x: int, ones: int) -> int:
    """For each four bits of which one is set: one bit of the result, or all four."""
    step = ones.bit_length()
    return sum(ones << step * n for n in range(16) if x >> 4 * n & 15)


def bit_field(value: int, control: int, *, sign: bool) -> int:
    """s_bfe_*64: offset in bits 5:0, width in bits 22:16 of the control."""
    offset, width = control & 63, control >> 16 & 127
    shifted = (signed(value, 64) if sign else value) >> offset
    if width == 0:
        return 0
    if width >= 64:
        return shifted & MASK64
    part = shifted & ((1 << width) - 1)
    return (signed(part, width) if sign else part) & MASK64


# name -> (bits of result, bits of source, formula with the old SCC)
UNARY: dict[str, tuple[int, int, Callable[[int, bool], Result]]] = {
    "s_mov_b32": (32, 32, lambda a, c: (a, c)),
    "s_mov_b64": (64, 64, lambda a, c: (a, c)),
    "s_not_b32": (32, 32, lambda a, c: (~a, ~a & MASK != 0)),
    "s_not_b64": (64, 64, lambda a, c: (~a, ~a & MASK64 != 0)),
    "s_brev_b32": (32, 32, lambda a, c: (reverse(a, 32), c)),
    "s_brev_b64": (64, 64, lambda a, c: (reverse(a, 64), c)),
    "s_bcnt1_i32_b32": (32, 32, lambda a, c: (a.bit_count(), a != 0)),
    "s_bcnt1_i32_b64": (32, 64, lambda a, c: (a.bit_count(), a != 0)),
    "s_bcnt0_i32_b32": (32, 32, lambda a, c: (32 - a.bit_count(), a != MASK)),
    "s_bcnt0_i32_b64": (32, 64, lambda a, c: (64 - a.bit_count(), a != MASK64)),
    "s_ff0_i32_b32": (32, 32, lambda a, c: (lowest(~a & MASK), c)),
    "s_ff0_i32_b64": (32, 64, lambda a, c: (lowest(~a & MASK64), c)),
    "s_bitreplicate_b64_b32": (
        64,
        32,
        lambda a, c: (int("".join(2 * bit for bit in f"{a:032b}"), 2), c),
    ),
    **{
        f"s_quadmask_b{bits}": (bits, bits, lambda a, c: (quads(a, 1), a != 0)) for bits in (32, 64)
    },
    **{f"s_wqm_b{bits}": (bits, bits, lambda a, c: (quads(a, 15), a != 0)) for bits in (32, 64)},
    "s_ff1_i32_b32": (32, 32, lambda a, c: (lowest(a), c)),
    "s_ff1_i32_b64": (32, 64, lambda a, c: (lowest(a), c)),
    "s_flbit_i32_b32": (32, 32, lambda a, c: (leading(a, 32), c)),
    "s_flbit_i32_b64": (32, 64, lambda a, c: (leading(a, 64), c)),
    "s_flbit_i32": (32, 32, lambda a, c: (leading(a if signed(a) >= 0 else ~a & MASK, 32), c)),
    "s_flbit_i32_i64": (
        32,
        64,
        lambda a, c: (leading(a if signed(a, 64) >= 0 else ~a & MASK64, 64), c),
    ),
    "s_sext_i32_i8": (32, 32, lambda a, c: (signed(a, 8), c)),
    "s_sext_i32_i16": (32, 32, lambda a, c: (signed(a, 16), c)),
    "s_abs_i32": (32, 32, lambda a, c: (abs(signed(a)), a != 0)),
}
Pair = Callable[[int, int, bool], Result]


def nonzero(bits: int, formula: Callable[[int, int], int]) -> Pair:
    """SCC says whether the result is not zero."""

    def both(a: int, b: int, _: bool) -> Result:
        value = formula(a, b) & ((1 << bits) - 1)
        return value, value != 0

    return both


def carries(shift: int) -> Pair:
    return lambda a, b, c: ((a << shift) + b, (a << shift) + b > MASK)


# name -> (bits of the result and the first source, bits of the second source, formula)
BINARY: dict[str, tuple[int, int, int, Pair]] = {
    "s_absdiff_i32": (32, 32, 32, nonzero(32, lambda a, b: abs(signed(a) - signed(b)))),
    "s_orn2_b32": (32, 32, 32, nonzero(32, lambda a, b: a | ~b)),
    "s_nand_b32": (32, 32, 32, nonzero(32, lambda a, b: ~(a & b))),
    "s_nor_b32": (32, 32, 32, nonzero(32, lambda a, b: ~(a | b))),
    "s_xnor_b32": (32, 32, 32, nonzero(32, lambda a, b: ~(a ^ b))),
    "s_and_b64": (64, 64, 64, nonzero(64, lambda a, b: a & b)),
    "s_or_b64": (64, 64, 64, nonzero(64, lambda a, b: a | b)),
    "s_xor_b64": (64, 64, 64, nonzero(64, lambda a, b: a ^ b)),
    "s_andn2_b64": (64, 64, 64, nonzero(64, lambda a, b: a & ~b)),
    "s_orn2_b64": (64, 64, 64, nonzero(64, lambda a, b: a | ~b)),
    "s_nand_b64": (64, 64, 64, nonzero(64, lambda a, b: ~(a & b))),
    "s_nor_b64": (64, 64, 64, nonzero(64, lambda a, b: ~(a | b))),
    "s_xnor_b64": (64, 64, 64, nonzero(64, lambda a, b: ~(a ^ b))),
    "s_lshl_b64": (64, 64, 32, nonzero(64, lambda a, b: a << (b & 63))),
    "s_lshr_b64": (64, 64, 32, nonzero(64, lambda a, b: a >> (b & 63))),
    "s_ashr_i64": (64, 64, 32, nonzero(64, lambda a, b: signed(a, 64) >> (b & 63))),
    "s_bfe_u64": (64, 64, 32, nonzero(64, lambda a, b: bit_field(a, b, sign=False))),
    "s_bfe_i64": (64, 64, 32, nonzero(64, lambda a, b: bit_field(a, b, sign=True))),
    "s_bfm_b32": (32, 32, 32, lambda a, b, c: (((1 << (a & 31)) - 1) << (b & 31), c)),
    "s_bfm_b64": (64, 32, 32, lambda a, b, c: (((1 << (a & 63)) - 1) << (b & 63), c)),
    "s_lshl1_add_u32": (32, 32, 32, carries(1)),
    "s_lshl3_add_u32": (32, 32, 32, carries(3)),
    "s_lshl4_add_u32": (32, 32, 32, carries(4)),
    "s_pack_lh_b32_b16": (32, 32, 32, lambda a, b, c: (a & 0xFFFF | b & 0xFFFF0000, c)),
    "s_pack_hh_b32_b16": (32, 32, 32, lambda a, b, c: (a >> 16 | b & 0xFFFF0000, c)),
    "s_pack_hl_b32_b16": (32, 32, 32, lambda a, b, c: (a >> 16 | (b & 0xFFFF) << 16, c)),
    "s_add_nc_u64": (64, 64, 64, lambda a, b, c: (a + b, c)),
    "s_sub_nc_u64": (64, 64, 64, lambda a, b, c: (a - b, c)),
    "s_mul_u64": (64, 64, 64, lambda a, b, c: (a * b, c)),
    "s_cselect_b64": (64, 64, 64, lambda a, b, c: (a if c else b, c)),
}


def values(bits: int, count: int = 0) -> list[int]:
    rng = np.random.default_rng(bits)
    kind = f"u{bits}"
    out = [int(x) for x in (*edges(kind), *sample(kind, 12, rng))]
    return out[:count] if count else out


def put(wave: Wave, number: int, value: int) -> None:
    wave.s[number], wave.s[number + 1] = value & MASK, value >> 32 & MASK


def take(wave: Wave, number: int, bits: int) -> int:
    return int(wave.s[number]) | (int(wave.s[number + 1]) << 32 if bits == 64 else 0)


@pytest.mark.parametrize("name", UNARY)
def test_scalar_unary(name: str) -> None:
    out, source, formula = UNARY[name]
    for a in values(source):
        for scc in (0, 1):
            wave = Wave("gfx942")
            put(wave, 0, a)
            wave.scc[0] = scc
            wave.run(instruction(name, d=sgpr(4, out // 32), a=sgpr(0, source // 32)))
            want, want_scc = formula(a, bool(scc))
            got = (take(wave, 4, out), bool(wave.scc[0]))
            assert got == (want & ((1 << out) - 1), want_scc), hex(a)


@pytest.mark.parametrize("name", BINARY)
def test_scalar_pairs(name: str) -> None:
    out, first, second, formula = BINARY[name]
    controls = [x << 16 | y for x in (0, 1, 8, 33, 63, 64, 65) for y in (0, 3, 32, 60)]
    seconds = controls if "bfe" in name else values(second)[::2]
    for a in values(first):
        for b in seconds:
            wave = Wave("gfx1201" if "_nc_" in name or name == "s_mul_u64" else "gfx942")
            put(wave, 0, a)
            put(wave, 2, b)
            wave.scc[0] = scc = (a ^ b) & 1
            operands = {"a": sgpr(0, first // 32), "b": sgpr(2, second // 32)}
            wave.run(instruction(name, d=sgpr(4, out // 32), **operands))
            want, want_scc = formula(a, b, bool(scc))
            got = (take(wave, 4, out), bool(wave.scc[0]))
            assert got == (want & ((1 << out) - 1), want_scc), (hex(a), hex(b))


# ---- comparisons

ORDER: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
FLOAT_ORDER = ORDER | {
    "lg": lambda a, b: a < b or a > b,
    "o": lambda a, b: a == a and b == b,
    "u": lambda a, b: a != a or b != b,
    "nge": lambda a, b: not a >= b,
    "ngt": lambda a, b: not a > b,
    "nle": lambda a, b: not a <= b,
    "nlt": lambda a, b: not a < b,
    "neq": lambda a, b: a != b,
    "nlg": lambda a, b: not (a < b or a > b),
}


@pytest.mark.parametrize("kind", ["u32", "i32"])
@pytest.mark.parametrize("order", ORDER)
def test_scalar_comparisons_and_those_with_a_constant(kind: str, order: str) -> None:
    """The constant of s_cmpk is 16 bits: sign extended for signed comparisons, else not."""
    read = (lambda x: x) if kind == "u32" else signed
    constants = (0, 1, 5, 0x7FFF, 0x8000, 0xFFFF)
    for a in (*values(32), *constants, 0xFFFF8000):
        for b in values(32)[::2]:
            wave = Wave("gfx942")
            wave.s[0], wave.s[1] = a, b
            wave.run(instruction(f"s_cmp_{order}_{kind}", a=sgpr(0), b=sgpr(1)))
            assert bool(wave.scc[0]) == ORDER[order](read(a), read(b)), (hex(a), hex(b))
        for k in constants:
            wave = Wave("gfx942")
            wave.s[0] = a
            wave.run(instruction(f"s_cmpk_{order}_{kind}", a=sgpr(0), imm=signed(k, 16)))
            want = ORDER[order](read(a), k if kind == "u32" else signed(k, 16))
            assert bool(wave.scc[0]) == want, (hex(a), hex(k))


@pytest.mark.parametrize("order", ["eq", "lg"])
def test_scalar_comparison_of_64_bits(order: str) -> None:
    for a in values(64):
        for b in (a, *values(64)[::3]):
            wave = Wave("gfx942")
            put(wave, 0, a)
            put(wave, 2, b)
            wave.run(instruction(f"s_cmp_{order}_u64", a=sgpr(0, 2), b=sgpr(2, 2)))
            assert bool(wave.scc[0]) == ORDER[order](a, b)


@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize("order", FLOAT_ORDER)
def test_scalar_float_comparisons(order: str, kind: str) -> None:
    """f16 is the low half of its register, whatever is in the other."""
    numbers = edges(kind)
    for a in numbers:
        for b in numbers[::3]:
            wave = Wave("gfx1201")
            codes = np.array([a, b]).view(f"u{a.itemsize}").astype(np.uint32)
            wave.s[:2] = codes | (0xABCD0000 if kind == "f16" else 0)
            wave.run(instruction(f"s_cmp_{order}_{kind}", a=sgpr(0), b=sgpr(1)))
            assert bool(wave.scc[0]) == FLOAT_ORDER[order](float(a), float(b)), (a, b)


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_scalar_float_comparison_with_a_constant(kind: str) -> None:
    """The inline constant 1.0 has the comparison's type."""
    one = np.array(1, np.dtype(f"f{int(kind[1:]) // 8}"))
    for number, same in ((one, True), (np.nextafter(one, one + one), False)):
        wave = Wave("gfx1201")
        wave.s[0] = int(number.view(f"u{one.itemsize}"))
        wave.run(instruction(f"s_cmp_eq_{kind}", a=sgpr(0), b=sgpr(242)))
        assert bool(wave.scc[0]) == same


@pytest.mark.parametrize("invert", [False, True])
def test_test_of_a_bit(invert: bool) -> None:
    for a in values(32):
        for b in (0, 1, 31, 32, 45):
            wave = Wave("gfx942")
            wave.s[0], wave.s[1] = a, b
            name = "s_bitcmp0_b32" if invert else "s_bitcmp1_b32"
            wave.run(instruction(name, a=sgpr(0), b=sgpr(1)))
            assert bool(wave.scc[0]) == bool(a >> (b & 31) & 1) ^ invert


# ---- constants, conditional moves, single bits


def test_constants_in_the_instruction() -> None:
    for a in values(32):
        for k in (0, 1, -1, 32767, -32768, 300):
            wave = Wave("gfx942")
            wave.s[0:3] = 0, a, a
            wave.scc[0] = 1
            wave.run(instruction("s_movk_i32", d=sgpr(0), imm=k))
            assert (wave.s[0], wave.scc[0]) == (k & MASK, 1)
            wave.run(instruction("s_mulk_i32", d=sgpr(1), a=sgpr(1), imm=k))
            assert (wave.s[1], wave.scc[0]) == (a * k & MASK, 1)
            wave.run(instruction("s_addk_i32", d=sgpr(2), a=sgpr(2), imm=k))
            total = signed(a) + k
            assert (wave.s[2], wave.scc[0]) == (total & MASK, int(signed(total) != total))


@pytest.mark.parametrize("scc", [0, 1])
def test_conditional_moves(scc: int) -> None:
    wave = Wave("gfx942")
    wave.s[0:8] = 1, 2, 3, 4, 5, 6, 7, 8
    wave.scc[0] = scc
    wave.run(
        instruction("s_cmov_b32", d=sgpr(0), a=sgpr(4)),
        instruction("s_cmov_b64", d=sgpr(2, 2), a=sgpr(6, 2)),
        instruction("s_cmovk_i32", d=sgpr(1), imm=-3),
    )
    want = [5, MASK - 2, 7, 8] if scc else [1, 2, 3, 4]
    np.testing.assert_array_equal(wave.s[:4], want)


def test_single_bits() -> None:
    for a in values(32):
        for bit in (0, 7, 31, 32 + 4):
            wave = Wave("gfx942")
            wave.s[0:3] = a, a, bit
            wave.run(
                instruction("s_bitset0_b32", d=sgpr(0), a=sgpr(2)),
                instruction("s_bitset1_b32", d=sgpr(1), a=sgpr(2)),
            )
            chosen = 1 << (bit & 31)
            assert (int(wave.s[0]), int(wave.s[1])) == (a & ~chosen, a | chosen)


SAVES: dict[str, Callable[[int, int], int]] = {
    "or": lambda a, e: a | e,
    "xor": lambda a, e: a ^ e,
    "andn2": lambda a, e: a & ~e,
    "and_not1": lambda a, e: a & ~e,
    "orn2": lambda a, e: a | ~e,
    "or_not1": lambda a, e: a | ~e,
    "andn1": lambda a, e: ~a & e,
    "and_not0": lambda a, e: ~a & e,
    "orn1": lambda a, e: ~a | e,
    "or_not0": lambda a, e: ~a | e,
    "nand": lambda a, e: ~(a & e),
    "nor": lambda a, e: ~(a | e),
    "xnor": lambda a, e: ~(a ^ e),
}
WRITES = ("andn1", "and_not0", "andn2", "and_not1")  # those that have a form that saves nothing


@pytest.mark.parametrize("operation", SAVES)
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_saving_exec(operation: str, chip: str) -> None:
    """EXEC takes the combination, the destination its old value, SCC whether a lane is left."""
    wide = chip == "gfx942"
    ones = MASK64 if wide else MASK
    for a in values(64 if wide else 32):
        for old in (ones, 0x0123456789ABCDEF & ones, a, ~a & ones):
            wave = Wave(chip)
            wave.exec = old
            put(wave, 0, a)
            name = f"s_{operation}_saveexec_b{64 if wide else 32}"
            size = 2 if wide else 1
            wave.run(instruction(name, d=sgpr(4, size), a=sgpr(0, size)))
            want = SAVES[operation](a, old) & ones
            assert take(wave, 4, 32 * size) == old
            assert (wave.exec, bool(wave.scc[0])) == (want, want != 0)


@pytest.mark.parametrize("operation", WRITES)
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_writing_exec(operation: str, chip: str) -> None:
    """EXEC and the destination take the combination."""
    size = 2 if chip == "gfx942" else 1
    ones = MASK64 if size == 2 else MASK
    for a in values(32 * size):
        for old in (ones, 0x0123456789ABCDEF & ones, a):
            wave = Wave(chip)
            wave.exec = old
            put(wave, 0, a)
            name = f"s_{operation}_wrexec_b{32 * size}"
            wave.run(instruction(name, d=sgpr(4, size), a=sgpr(0, size)))
            want = SAVES[operation](a, old) & ones
            assert take(wave, 4, 32 * size) == wave.exec == want
            assert bool(wave.scc[0]) == (want != 0)


def test_single_bits_of_64() -> None:
    for a in values(64):
        for bit in (0, 31, 32, 63, 64 + 5):
            wave = Wave("gfx942")
            for number in (0, 2):
                put(wave, number, a)
            wave.s[4] = bit
            chosen = 1 << (bit & 63)
            for name, when in (("s_bitcmp1_b64", True), ("s_bitcmp0_b64", False)):
                wave.run(instruction(name, a=sgpr(0, 2), b=sgpr(4)))
                assert bool(wave.scc[0]) == (bool(a & chosen) == when)
            wave.run(
                instruction("s_bitset0_b64", d=sgpr(0, 2), a=sgpr(4)),
                instruction("s_bitset1_b64", d=sgpr(2, 2), a=sgpr(4)),
            )
            assert (take(wave, 0, 64), take(wave, 2, 64)) == (a & ~chosen, a | chosen)


def test_registers_behind_the_one_named() -> None:
    """M0 says how far; past the last SGPR is an error."""
    wave = Wave("gfx942")
    wave.s[:20] = np.arange(20) + 100
    wave.s[125] = 4
    wave.run(
        instruction("s_movrels_b32", d=sgpr(30), a=sgpr(2)),
        instruction("s_movrels_b64", d=sgpr(32, 2), a=sgpr(6, 2)),
        instruction("s_movreld_b32", d=sgpr(40), a=sgpr(3)),
        instruction("s_movreld_b64", d=sgpr(42, 2), a=sgpr(8, 2)),
    )
    assert wave.s[[30, 32, 33, 44, 46, 47]].tolist() == [106, 110, 111, 103, 108, 109]
    wave.s[125] = 100
    with pytest.raises(RuntimeError, match="M0-relative SGPR out of range"):
        wave.run(instruction("s_movrels_b32", d=sgpr(30), a=sgpr(2)))


def test_address_of_the_next_instruction() -> None:
    wave = Wave("gfx942")
    move = instruction("s_mov_b32", d=sgpr(0), a=sgpr(1))
    wave.run(move, move, instruction("s_getpc_b64", d=sgpr(2, 2)))
    assert take(wave, 2, 64) == 12  # the harness puts instructions at 0, 4, 8
