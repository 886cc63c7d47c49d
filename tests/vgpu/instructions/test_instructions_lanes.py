"""Instructions that move values between lanes, select parts of registers, or work on packed halves."""

from collections.abc import Callable

import numpy as np
import pytest

from conv_compiler.vgpu.program import (
    BOUND_CTRL,
    DPP,
    DPP8,
    FETCH_INACTIVE,
    M0,
    NEG,
    NEG_HI,
    OPSEL,
    OPSEL_HI,
    PACKED,
    SDWA,
    VCC,
)
from tests.vgpu.support.formats import fused, same, sample
from tests.vgpu.support.instructions import Wave, instruction, sgpr, vgpr

# DPP controls by the CDNA ISA guide: from which lane of 64 does a lane read; None: no lane.
DPP_CONTROLS: dict[int, Callable[[int], int | None]] = {
    0b00_01_10_11: lambda i: i & ~3 | 3 - (i & 3),  # quad_perm:[3,2,1,0]
    0b10_10_00_00: lambda i: i & ~3 | (0, 0, 2, 2)[i & 3],  # quad_perm:[0,0,2,2]
    0x101: lambda i: i + 1 if i % 16 < 15 else None,  # row_shl:1
    0x112: lambda i: i - 2 if i % 16 >= 2 else None,  # row_shr:2
    0x118: lambda i: i - 8 if i % 16 >= 8 else None,  # row_shr:8
    0x124: lambda i: i & ~15 | (i - 4) % 16,  # row_ror:4
    0x138: lambda i: i - 1 if i else None,  # wave_shr:1
    0x140: lambda i: i & ~15 | 15 - i % 16,  # row_mirror
    0x141: lambda i: i & ~7 | 7 - i % 8,  # row_half_mirror
    0x142: lambda i: (i // 16) * 16 - 1 if i >= 16 else None,  # row_bcast:15
    0x143: lambda i: 31 if i >= 32 else None,  # row_bcast:31
}


@pytest.mark.parametrize("control", DPP_CONTROLS, ids=hex)
@pytest.mark.parametrize("bound_control", [False, True])
def test_dpp_reads_the_right_lane(control: int, bound_control: bool) -> None:
    wave = Wave("gfx942")
    values = np.arange(64, dtype=np.uint32) + 100
    old = np.full(64, 7, np.uint32)
    wave.put(0, values)
    wave.put(1, old)
    flags = DPP | (BOUND_CTRL if bound_control else 0)
    wave.run(instruction("v_mov_b32", d=vgpr(1), a=vgpr(0), flags=flags, dpp_ctrl=control))
    want = []
    for lane in range(64):
        source = DPP_CONTROLS[control](lane)
        # A lane with no source reads 0 when bound control is on, and else is not written.
        want.append(values[source] if source is not None else 0 if bound_control else 7)
    np.testing.assert_array_equal(wave.get(1, np.uint32), want)


RDNA_CONTROLS: dict[int, Callable[[int], int]] = {
    0x150: lambda i: i & ~15,  # row_share:0
    0x15B: lambda i: i & ~15 | 11,  # row_share:11
    0x161: lambda i: i ^ 1,  # row_xmask:1
    0x16E: lambda i: i ^ 14,  # row_xmask:14
}


@pytest.mark.parametrize("control", RDNA_CONTROLS, ids=hex)
@pytest.mark.parametrize("fetch_inactive", [False, True])
def test_row_share_and_row_xmask(control: int, fetch_inactive: bool) -> None:
    """A lane that is not active is no source, unless FI says so."""
    wave = Wave("gfx1100")
    wave.put(0, np.arange(32, dtype=np.uint32) + 100)
    wave.put(1, np.full(32, 7, np.uint32))
    wave.exec = 0xF7FE_EFFF
    active = wave.exec
    flags = DPP | (FETCH_INACTIVE if fetch_inactive else 0)
    wave.run(instruction("v_mov_b32", d=vgpr(1), a=vgpr(0), flags=flags, dpp_ctrl=control))
    for lane, got in enumerate(wave.get(1, np.uint32)):
        source = RDNA_CONTROLS[control](lane)
        reads = active >> lane & 1 and (fetch_inactive or active >> source & 1)
        assert got == (100 + source if reads else 7), lane


@pytest.mark.parametrize("fetch_inactive", [False, True])
def test_dpp8(fetch_inactive: bool) -> None:
    """Eight selections of three bits within eight lanes; an inactive source gives 0."""
    select = [7, 0, 2, 2, 5, 1, 6, 3]
    wave = Wave("gfx1100")
    wave.put(0, np.arange(32, dtype=np.uint32) + 100)
    wave.put(1, np.full(32, 7, np.uint32))
    wave.exec = 0xFFFF_DFBF
    active = wave.exec
    literal = sum(s << 3 * i for i, s in enumerate(select))
    flags = DPP8 | (FETCH_INACTIVE if fetch_inactive else 0)
    wave.run(instruction("v_mov_b32", d=vgpr(1), a=vgpr(0), flags=flags, literal=literal))
    for lane, got in enumerate(wave.get(1, np.uint32)):
        source = lane & ~7 | select[lane & 7]
        value = 100 + source if fetch_inactive or active >> source & 1 else 0
        assert got == (value if active >> lane & 1 else 7), lane


def test_unknown_dpp_control_is_an_error() -> None:
    wave = Wave("gfx942")
    with pytest.raises(RuntimeError, match="unknown DPP control 0x1ff"):
        wave.run(instruction("v_mov_b32", d=vgpr(1), a=vgpr(0), flags=DPP, dpp_ctrl=0x1FF))


@pytest.mark.parametrize("lanes", [16, 32])
def test_permlane_swap(lanes: int) -> None:
    """Lanes n..2n-1 of the destination change places with lanes 0..n-1 of the source."""
    wave = Wave("gfx950")
    d, s = np.arange(64, dtype=np.uint32), np.arange(64, dtype=np.uint32) + 1000
    wave.put(0, d)
    wave.put(1, s)
    wave.run(instruction(f"v_permlane{lanes}_swap_b32", d=vgpr(0), a=vgpr(1)))
    upper = np.arange(64) // lanes % 2 == 1
    other = np.arange(64) ^ lanes
    np.testing.assert_array_equal(wave.get(0, np.uint32), np.where(upper, s[other], d))
    np.testing.assert_array_equal(wave.get(1, np.uint32), np.where(upper, s, d[other]))


def test_swap_and_relative_moves() -> None:
    wave = Wave("gfx1100")
    first, second = np.arange(32, dtype=np.uint32), np.arange(32, dtype=np.uint32) + 50
    wave.put(0, first)
    wave.put(1, second)
    wave.exec = 0xFFFF_FFF0
    wave.run(instruction("v_swap_b32", d=vgpr(0), a=vgpr(1)))
    active = np.arange(32) >= 4
    np.testing.assert_array_equal(wave.get(0, np.uint32), np.where(active, second, first))
    np.testing.assert_array_equal(wave.get(1, np.uint32), np.where(active, first, second))
    wave.exec = 0xFFFF_FFFF
    wave.s[M0] = 9
    wave.put(11, first + 7)
    wave.run(
        instruction("v_movrels_b32", d=vgpr(3), a=vgpr(2)),
        instruction("v_movreld_b32", d=vgpr(20), a=vgpr(2)),
        instruction("v_nop"),
    )
    np.testing.assert_array_equal(wave.get(3, np.uint32), first + 7)
    np.testing.assert_array_equal(wave.get(29, np.uint32), wave.get(2, np.uint32))
    wave.s[M0] = 300
    with pytest.raises(RuntimeError, match="out of range"):
        wave.run(instruction("v_movrels_b32", d=vgpr(3), a=vgpr(2)))


def test_moves_in_the_index_mode_of_gfx9() -> None:
    """M0[7:0] is the index, M0[15:12] the mode; the rest of M0 stays."""
    wave = Wave("gfx942")
    lane = np.arange(64, dtype=np.uint32)
    wave.put(11, lane + 7)
    wave.put(2, lane + 70)
    wave.s[M0], wave.s[4] = 0xABCD_EFFF, 0x1_0309
    wave.run(
        instruction("s_set_gpr_idx_on", d=sgpr(M0), a=sgpr(4), imm=1),
        instruction("v_movrels_idx_b32", d=vgpr(3), a=vgpr(2)),
        instruction("s_set_gpr_idx_mode", d=sgpr(M0), imm=8),
        instruction("v_movreld_idx_b32", d=vgpr(20), a=vgpr(2)),
        instruction("v_movrelsd_idx_b32", d=vgpr(30), a=vgpr(2)),
        instruction("s_set_gpr_idx_off"),
    )
    np.testing.assert_array_equal(wave.get(3, np.uint32), lane + 7)
    np.testing.assert_array_equal(wave.get(29, np.uint32), lane + 70)
    np.testing.assert_array_equal(wave.get(39, np.uint32), lane + 7)
    assert wave.s[M0] == 0xABCD_8F09
    wave.s[4] = 254
    wave.run(instruction("s_set_gpr_idx_idx", d=sgpr(M0), a=sgpr(4)))
    assert wave.s[M0] == 0xABCD_8FFE
    with pytest.raises(RuntimeError, match="out of range"):
        wave.run(instruction("v_movrels_idx_b32", d=vgpr(3), a=vgpr(2)))


def test_count_of_lower_lanes_in_a_mask() -> None:
    wave = Wave("gfx942")
    mask = 0x9F3C_0A51_F00D_BEEF
    wave.s[4], wave.s[5] = mask & 0xFFFFFFFF, mask >> 32
    wave.run(
        instruction("v_mbcnt_lo_u32_b32", d=vgpr(0), a=sgpr(4), b=sgpr(128 + 5)),
        instruction("v_mbcnt_hi_u32_b32", d=vgpr(1), a=sgpr(5), b=vgpr(0)),
    )
    want = [5 + (mask & ((1 << lane) - 1)).bit_count() for lane in range(64)]
    np.testing.assert_array_equal(wave.get(1, np.uint32), want)


def test_dpp_masks_leave_rows_and_banks_alone() -> None:
    wave = Wave("gfx942")
    wave.put(0, np.arange(64, dtype=np.uint32))
    wave.put(1, np.full(64, 99, np.uint32))
    mirror = {"flags": DPP, "dpp_ctrl": 0x140, "row_mask": 0b0101, "bank_mask": 0b0011}
    wave.run(instruction("v_mov_b32", d=vgpr(1), a=vgpr(0), **mirror))
    for lane, got in enumerate(wave.get(1, np.uint32)):
        written = lane // 16 in (0, 2) and lane % 16 // 4 in (0, 1)
        assert got == ((lane & ~15 | 15 - lane % 16) if written else 99)


@pytest.mark.parametrize("select", range(7))
@pytest.mark.parametrize("extend", [False, True])
def test_sdwa_selects_a_part_of_a_source(select: int, extend: bool) -> None:
    wave = Wave("gfx942")
    values = sample("u32", 64, np.random.default_rng(1))
    wave.put(0, values)
    source = vgpr(0)
    source = type(source)(reg=source.reg, dwords=1, sel=select, sext=extend)
    wave.run(instruction("v_mov_b32", d=vgpr(1), a=source, flags=SDWA))
    start, width = [(0, 8), (8, 8), (16, 8), (24, 8), (0, 16), (16, 16), (0, 32)][select]
    part = values.astype(np.int64) >> start & ((1 << width) - 1)
    if extend:
        part = np.where(part >> (width - 1), part - (1 << width), part)
    np.testing.assert_array_equal(wave.get(1, np.uint32), (part & 0xFFFFFFFF).astype(np.uint32))


def test_read_and_write_lane() -> None:
    wave = Wave("gfx942")
    wave.put(0, np.arange(64, dtype=np.uint32) * 3)
    wave.s[4], wave.s[5] = 41, 777
    wave.exec = 0xFFFF_FFFF_FFFF_FF00
    wave.run(
        instruction("v_readlane_b32", d=sgpr(0), a=vgpr(0), b=sgpr(4)),
        instruction("v_readfirstlane_b32", d=sgpr(1), a=vgpr(0)),
        instruction("v_writelane_b32", d=vgpr(0), a=sgpr(5), b=sgpr(4)),
    )
    assert (wave.s[0], wave.s[1]) == (123, 24)
    assert wave.get(0, np.uint32)[41] == 777
    assert wave.get(0, np.uint32)[40] == 120


@pytest.mark.parametrize("across", [False, True])
def test_permlane16(across: bool) -> None:
    wave = Wave("gfx1100")
    values = np.arange(32, dtype=np.uint32) + 50
    wave.put(0, values)
    wave.s[0], wave.s[1] = 0x01234567, 0x89ABCDEF
    name = "v_permlanex16_b32" if across else "v_permlane16_b32"
    wave.run(instruction(name, d=vgpr(1), a=vgpr(0), b=sgpr(0), c=sgpr(1)))
    select = 0x89ABCDEF_01234567
    for lane, got in enumerate(wave.get(1, np.uint32)):
        row = (lane ^ 16) & ~15 if across else lane & ~15
        assert got == values[row + (select >> 4 * (lane % 16) & 15)]


def test_conditional_mask_takes_each_lane() -> None:
    wave = Wave("gfx942")
    wave.put(0, np.full(64, 1, np.uint32))
    wave.put(1, np.full(64, 2, np.uint32))
    wave.s[VCC], wave.s[VCC + 1] = 0x0F0F0F0F, 0x12345678
    wave.run(instruction("v_cndmask_b32", d=vgpr(2), a=vgpr(0), b=vgpr(1), c=sgpr(VCC, 2)))
    mask = 0x123456780F0F0F0F
    want = [2 if mask >> lane & 1 else 1 for lane in range(64)]
    np.testing.assert_array_equal(wave.get(2, np.uint32), want)


def test_add_with_carry_out_and_in() -> None:
    wave = Wave("gfx942")
    rng = np.random.default_rng(5)
    a, b = (sample("u64", 64, rng) for _ in range(2))
    wave.put(0, a)
    wave.put(2, b)
    carry = sgpr(VCC, 2)
    wave.run(
        instruction("v_add_co_u32", d=vgpr(4), e=carry, a=vgpr(0), b=vgpr(2)),
        instruction("v_addc_co_u32", d=vgpr(5), e=carry, a=vgpr(1), b=vgpr(3), c=carry),
    )
    np.testing.assert_array_equal(wave.get(4, np.uint64), a + b)
    out = int(wave.s[VCC]) | int(wave.s[VCC + 1]) << 32
    assert [out >> lane & 1 for lane in range(64)] == [
        int(int(x) + int(y) >= 1 << 64) for x, y in zip(a, b, strict=True)
    ]


@pytest.mark.parametrize(
    ("control", "off"),
    [
        ({"dpp_ctrl": 0x111, "row_mask": 15}, {0, 16, 32, 48}),  # row_shr:1, no lane to the left
        ({"dpp_ctrl": 0xE4, "row_mask": 5}, {*range(16, 32), *range(48, 64)}),  # rows 1 and 3
    ],
)
def test_lanes_that_dpp_disables_write_no_carry(control: dict[str, int], off: set[int]) -> None:
    """Every other lane's sum overflows."""
    wave = Wave("gfx942")
    wave.put(0, np.full(64, 0xFFFFFFFF, np.uint32))
    wave.put(1, np.full(64, 2, np.uint32))
    fields = {"d": vgpr(4), "e": sgpr(VCC, 2), "a": vgpr(0), "b": vgpr(1), "flags": DPP}
    wave.run(instruction("v_add_co_u32", **fields, **control))
    carries = int(wave.s[VCC]) | int(wave.s[VCC + 1]) << 32
    assert {lane for lane in range(64) if not carries >> lane & 1} == off
    np.testing.assert_array_equal(wave.get(4, np.uint32), [0 if n in off else 1 for n in range(64)])


def test_inactive_lanes_keep_their_values() -> None:
    wave = Wave("gfx942")
    wave.put(0, np.full(64, 5, np.uint32))
    wave.put(1, np.arange(64, dtype=np.uint32))
    wave.exec = 0x00FF00FF00FF00FF
    wave.run(instruction("v_mov_b32", d=vgpr(1), a=vgpr(0)))
    want = [5 if lane % 16 < 8 else lane for lane in range(64)]
    np.testing.assert_array_equal(wave.get(1, np.uint32), want)


PACKED_FORMULAS: dict[str, tuple[str, int, Callable[..., np.ndarray]]] = {
    "v_pk_add_f16": ("f16", 2, lambda a, b: a + b),
    "v_pk_mul_f16": ("f16", 2, lambda a, b: a * b),
    "v_pk_fma_f16": ("f16", 3, lambda a, b, c: fused("f16", a, b, c)),
    "v_pk_add_u16": ("u16", 2, lambda a, b: a + b),
    "v_pk_mul_lo_u16": ("u16", 2, lambda a, b: a * b),
    "v_pk_max_i16": ("i16", 2, np.maximum),
    "v_pk_min_u16": ("u16", 2, np.minimum),
    "v_pk_mad_u16": ("u16", 3, lambda a, b, c: a * b + c),
}


@pytest.mark.parametrize("name", PACKED_FORMULAS)
@pytest.mark.parametrize("swapped", [False, True])
def test_packed_halves(name: str, swapped: bool) -> None:
    """OP_SEL picks the half for the low result, OP_SEL_HI for the high one."""
    kind, count, formula = PACKED_FORMULAS[name]
    rng = np.random.default_rng(6)
    wave = Wave("gfx942")
    halves = [sample(kind, 128, rng).reshape(64, 2) for _ in range(count)]
    for number, half in enumerate(halves):
        wave.put(number, np.ascontiguousarray(half).view(np.uint32)[:, 0])
    first = OPSEL if swapped else OPSEL_HI
    mods = [first, *[OPSEL_HI] * (count - 1)]
    operands = {k: vgpr(n, 1, m) for n, (k, m) in enumerate(zip("abc", mods, strict=False))}
    wave.run(instruction(name, d=vgpr(8), flags=PACKED, **operands))
    if swapped:
        halves[0] = halves[0][:, ::-1]
    got = np.ascontiguousarray(wave.get(8, np.uint32)).view(halves[0].dtype).reshape(64, 2)
    with np.errstate(all="ignore"):
        for column in range(2):
            want = formula(*(np.ascontiguousarray(h[:, column]) for h in halves))
            assert same(np.ascontiguousarray(got[:, column]), want.astype(got.dtype)).all()


def test_packed_negation_is_per_half() -> None:
    wave = Wave("gfx942")
    one = np.array([0x3C003C00] * 64, np.uint32)  # (1, 1) in f16
    wave.put(0, one)
    wave.put(1, one)
    a = vgpr(0, 1, OPSEL_HI | NEG)
    b = vgpr(1, 1, OPSEL_HI | NEG_HI)
    wave.run(instruction("v_pk_mul_f16", d=vgpr(2), a=a, b=b, flags=PACKED))
    assert (wave.get(2, np.uint32) == 0xBC00BC00).all()
    wave.run(instruction("v_pk_add_f16", d=vgpr(2), a=a, b=b, flags=PACKED))
    assert (wave.get(2, np.uint32) == 0).all()


@pytest.mark.parametrize("name", ["v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32"])
def test_packed_f32(name: str) -> None:
    rng = np.random.default_rng(7)
    wave = Wave("gfx942")
    pairs = [sample("f32", 128, rng).reshape(64, 2) for _ in range(3)]
    for number, pair in zip((0, 2, 4), pairs, strict=True):
        wave.v[number : number + 2] = np.ascontiguousarray(pair).view(np.uint32).T
    count = 3 if "fma" in name else 2
    operands = {k: vgpr(2 * n, 2, OPSEL_HI) for n, k in enumerate("abc"[:count])}
    wave.run(instruction(name, d=vgpr(8, 2), flags=PACKED, **operands))
    with np.errstate(all="ignore"):
        for column in range(2):
            a, b, c = (np.ascontiguousarray(p[:, column]) for p in pairs)
            want = {"add": a + b, "mul": a * b}.get(name[5:8])
            want = fused("f32", a, b, c) if want is None else want
            assert same(wave.get(8 + column, np.float32), want).all()


def test_mixed_precision_fma() -> None:
    """OP_SEL_HI says that a source is a half, OP_SEL which."""
    rng = np.random.default_rng(8)
    wave = Wave("gfx942")
    a = sample("f16", 128, rng).reshape(64, 2)
    b, c = (rng.standard_normal(64).astype(np.float32) for _ in range(2))
    wave.put(0, np.ascontiguousarray(a).view(np.uint32)[:, 0])
    wave.put(1, b)
    wave.put(2, c)
    operands = {"a": vgpr(0, 1, OPSEL_HI | OPSEL), "b": vgpr(1), "c": vgpr(2)}
    wave.run(instruction("v_fma_mix_f32", d=vgpr(3), flags=PACKED, **operands))
    with np.errstate(all="ignore"):
        want = fused("f32", np.ascontiguousarray(a[:, 1]).astype(np.float32), b, c)
    assert same(wave.get(3, np.float32), want).all()
