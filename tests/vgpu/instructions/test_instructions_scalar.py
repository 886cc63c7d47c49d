"""Scalar instructions: result and SCC against Python's integers."""

from collections.abc import Callable

import numpy as np
import pytest

from conv_compiler.vgpu.program import EXEC
from tests.vgpu.support.formats import edges, sample
from tests.vgpu.support.instructions import Wave, instruction, sgpr

MASK = 0xFFFFFFFF
Result = tuple[int, bool]


def signed(x: int, bits: int = 32) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def overflow(x: int) -> bool:
    return not -(2**31) <= x < 2**31


def bit_field(value: int, control: int, *, sign: bool) -> int:
    """s_bfe: offset in bits 4:0, width in bits 22:16 of the control."""
    offset, width = control & 31, control >> 16 & 127
    shifted = (signed(value) if sign else value) >> offset
    if width == 0:
        return 0
    if width >= 32:
        return shifted & MASK
    part = shifted & ((1 << width) - 1)
    return (signed(part, width) if sign else part) & MASK


# name -> (result, SCC) of the sources and the old SCC.
BINARY: dict[str, Callable[[int, int, bool], Result]] = {
    "s_add_u32": lambda a, b, c: (a + b, a + b > MASK),
    "s_addc_u32": lambda a, b, c: (a + b + c, a + b + c > MASK),
    "s_sub_u32": lambda a, b, c: (a - b, b > a),
    "s_subb_u32": lambda a, b, c: (a - b - c, b + c > a),
    "s_add_i32": lambda a, b, c: (a + b, overflow(signed(a) + signed(b))),
    "s_sub_i32": lambda a, b, c: (a - b, overflow(signed(a) - signed(b))),
    "s_mul_i32": lambda a, b, c: (a * b, c),
    "s_mul_hi_u32": lambda a, b, c: (a * b >> 32, c),
    "s_mul_hi_i32": lambda a, b, c: (signed(a) * signed(b) >> 32, c),
    "s_and_b32": lambda a, b, c: (a & b, a & b != 0),
    "s_or_b32": lambda a, b, c: (a | b, a | b != 0),
    "s_xor_b32": lambda a, b, c: (a ^ b, a ^ b != 0),
    "s_andn2_b32": lambda a, b, c: (a & ~b, a & ~b & MASK != 0),
    "s_lshl_b32": lambda a, b, c: (a << (b & 31), a << (b & 31) & MASK != 0),
    "s_lshr_b32": lambda a, b, c: (a >> (b & 31), a >> (b & 31) != 0),
    "s_ashr_i32": lambda a, b, c: (signed(a) >> (b & 31), signed(a) >> (b & 31) != 0),
    "s_min_u32": lambda a, b, c: (min(a, b), a < b),
    "s_max_u32": lambda a, b, c: (max(a, b), a >= b),
    "s_min_i32": lambda a, b, c: (min(signed(a), signed(b)), signed(a) < signed(b)),
    "s_max_i32": lambda a, b, c: (max(signed(a), signed(b)), signed(a) >= signed(b)),
    "s_cselect_b32": lambda a, b, c: (a if c else b, c),
    "s_bfe_u32": lambda a, b, c: (r := bit_field(a, b, sign=False), r != 0),
    "s_bfe_i32": lambda a, b, c: (r := bit_field(a, b, sign=True), r != 0),
    "s_pack_ll_b32_b16": lambda a, b, c: (a & 0xFFFF | (b & 0xFFFF) << 16, c),
    "s_lshl2_add_u32": lambda a, b, c: ((a << 2) + b, (a << 2) + b > MASK),
}

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "s_cmp_eq_u32": lambda a, b: a == b,
    "s_cmp_lg_u32": lambda a, b: a != b,
    "s_cmp_gt_u32": lambda a, b: a > b,
    "s_cmp_le_u32": lambda a, b: a <= b,
    "s_cmp_lt_i32": lambda a, b: signed(a) < signed(b),
    "s_cmp_ge_i32": lambda a, b: signed(a) >= signed(b),
}


def pairs() -> list[tuple[int, int]]:
    rng = np.random.default_rng(9)
    values = [int(x) for x in (*edges("u32"), *sample("u32", 8, rng))]
    return [(a, b) for a in values for b in values[::2]]


@pytest.mark.parametrize("name", BINARY)
def test_scalar_binary(name: str) -> None:
    for a, b in pairs():
        for scc in (0, 1):
            wave = Wave("gfx942")
            wave.s[0], wave.s[1], wave.scc[0] = a, b, scc
            wave.run(instruction(name, d=sgpr(2), a=sgpr(0), b=sgpr(1)))
            want, want_scc = BINARY[name](a, b, bool(scc))
            got = (int(wave.s[2]), bool(wave.scc[0]))
            assert got == (want & MASK, want_scc), (hex(a), hex(b), scc)


@pytest.mark.parametrize("name", COMPARISONS)
def test_scalar_comparison(name: str) -> None:
    for a, b in pairs():
        wave = Wave("gfx942")
        wave.s[0], wave.s[1] = a, b
        wave.run(instruction(name, a=sgpr(0), b=sgpr(1)))
        assert bool(wave.scc[0]) == COMPARISONS[name](a, b), (hex(a), hex(b))


def test_and_saveexec() -> None:
    wave = Wave("gfx942")
    wave.exec = 0x0123456789ABCDEF
    wave.s[0], wave.s[1] = 0xFFFF0000, 0x0000FFFF
    wave.run(instruction("s_and_saveexec_b64", d=sgpr(2, 2), a=sgpr(0, 2)))
    assert int(wave.s[2]) | int(wave.s[3]) << 32 == 0x0123456789ABCDEF
    assert wave.exec == 0x0123456789ABCDEF & 0x0000FFFFFFFF0000
    assert wave.scc[0] == 1


def test_exec_is_a_scalar_register_like_others() -> None:
    wave = Wave("gfx942")
    wave.s[0], wave.s[1] = 0xF0, 0
    wave.run(instruction("s_mov_b64", d=sgpr(EXEC, 2), a=sgpr(0, 2)))
    assert wave.exec == 0xF0
