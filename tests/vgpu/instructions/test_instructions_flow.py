"""Branches, barriers, modes and messages; waits and hints, which change nothing in one wave."""

import numpy as np
import pytest

from conv_compiler.vgpu.program import VCC
from tests.vgpu.support.instructions import Wave, instruction, sgpr, vgpr

VALUE, TO = 129, sgpr(30)  # the inline constant 1


def taken(name: str, wave: Wave) -> bool:
    """Whether a branch over `s_mov_b32 s30, 1` is taken."""
    wave.s[30] = 0
    wave.run(instruction(name, imm=1), instruction("s_mov_b32", d=TO, a=sgpr(VALUE)))
    return wave.s[30] == 0


def test_unconditional_branch() -> None:
    assert taken("s_branch", Wave("gfx942"))


@pytest.mark.parametrize("scc", [0, 1])
def test_branches_on_scc(scc: int) -> None:
    for name, when in (("s_cbranch_scc0", 0), ("s_cbranch_scc1", 1)):
        wave = Wave("gfx942")
        wave.scc[0] = scc
        assert taken(name, wave) == (scc == when)


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("low", [0, 1 << 31])
@pytest.mark.parametrize("high", [0, 1])
def test_branches_on_lane_masks(chip: str, low: int, high: int) -> None:
    """In wave32 the upper half of VCC and EXEC does not count."""
    whole = low or (high and chip == "gfx942")
    wave = Wave(chip)
    wave.s[VCC], wave.s[VCC + 1] = low, high
    assert taken("s_cbranch_vccz", wave) == (not whole)
    assert taken("s_cbranch_vccnz", wave) == bool(whole)
    wave.exec = low | (high << 32 if chip == "gfx942" else 0)
    assert taken("s_cbranch_execz", wave) == (not whole)
    assert taken("s_cbranch_execnz", wave) == bool(whole)


def test_end_stops_the_wave() -> None:
    wave = Wave("gfx942")
    wave.run(instruction("s_endpgm"), instruction("s_mov_b32", d=TO, a=sgpr(VALUE)))
    assert wave.s[30] == 0


def test_a_branch_out_of_the_code_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="past the end of the code"):
        Wave("gfx942").run(instruction("s_branch", imm=100))


def test_barriers_of_one_wave_let_it_pass() -> None:
    Wave("gfx942").run(instruction("s_barrier"), instruction("s_barrier"))
    wave = Wave("gfx1201")
    workgroup = {"a": sgpr(193)}  # -1: the workgroup's barrier
    signal, wait = "s_barrier_signal", "s_barrier_wait"
    wave.run(instruction(signal, **workgroup), instruction(wait, imm=-1))
    with pytest.raises(RuntimeError, match="a barrier other than the workgroup's"):
        wave.run(instruction(signal, a=sgpr(129)))
    with pytest.raises(RuntimeError, match="a barrier other than the workgroup's"):
        wave.run(instruction(wait, imm=1))


# What orders memory or advises the hardware; this executor does things in order.
NO_EFFECT = [
    "s_waitcnt",
    "s_waitcnt_vscnt",
    "s_waitcnt_vmcnt",
    "s_waitcnt_expcnt",
    "s_waitcnt_lgkmcnt",
    "s_waitcnt_depctr",
    "s_wait_loadcnt",
    "s_wait_storecnt",
    "s_wait_dscnt",
    "s_wait_kmcnt",
    "s_wait_samplecnt",
    "s_wait_bvhcnt",
    "s_wait_expcnt",
    "s_wait_loadcnt_dscnt",
    "s_wait_storecnt_dscnt",
    "s_wait_alu",
    "s_wait_idle",
    "s_wait_event",
    "s_nop",
    "s_delay_alu",
    "s_clause",
    "s_sleep",
    "s_setprio",
    "s_inst_prefetch",
    "s_set_inst_prefetch_distance",
    "s_code_end",
    "s_icache_inv",
    "s_dcache_inv",
    "s_dcache_wb",
    "s_ttracedata",
    "s_ttracedata_imm",
    "s_set_gpr_idx_off",
    "s_prefetch_inst",
    "s_prefetch_data",
    "s_prefetch_inst_pc_rel",
    "buffer_inv",
    "buffer_wbl2",
    "buffer_wbinvl1",
    "buffer_wbinvl1_vol",
    "buffer_gl0_inv",
    "buffer_gl1_inv",
    "global_inv",
    "global_wb",
    "global_wbinv",
    "s_gl1_inv",
    "s_dcache_inv_vol",
    "s_dcache_wb_vol",
    "s_buffer_prefetch_data",
    "s_prefetch_data_pc_rel",
    "s_sleep_var",
    "s_wakeup",
    "s_incperflevel",
    "s_decperflevel",
    "s_version",
]


@pytest.mark.parametrize("name", NO_EFFECT)
def test_waits_and_hints_change_nothing(name: str) -> None:
    rng = np.random.default_rng(1)
    wave = Wave("gfx942")
    wave.v[:] = rng.integers(0, 1 << 32, wave.v.shape, np.uint32)
    wave.s[:100] = rng.integers(0, 1 << 32, 100, np.uint32)
    wave.lds[:] = rng.integers(0, 256, len(wave.lds), np.uint8)
    before = wave.v.copy(), wave.s.copy(), wave.scc.copy(), wave.lds.copy()
    wave.run(instruction(name, imm=0x0F70), instruction("s_mov_b32", d=sgpr(0), a=sgpr(0)))
    for x, y in zip(before, (wave.v, wave.s, wave.scc, wave.lds), strict=True):
        np.testing.assert_array_equal(x, y)


# ---- MODE: bits 3:0 rounding, 5:4 denormals of f32, 7:6 of f16 and f64

DENORMAL = np.array([1e-40, -3e-39], np.float32)
KEEP, FLUSH = 0xF, 0xC  # of bits 7:4


def doubled(*records: object) -> np.ndarray:
    """Denormals times 1 after the records."""
    wave = Wave("gfx942")
    wave.put(0, np.resize(DENORMAL, 64))
    wave.s[1] = FLUSH << 4
    product = instruction("v_mul_f32", d=vgpr(1), a=vgpr(0), b=sgpr(242))
    wave.run(*records, product)
    return wave.get(1, np.float32)[:2]


def hwreg(offset: int, size: int) -> int:
    """MODE (register 1), `size` bits from bit `offset` on."""
    return 1 | offset << 6 | (size - 1) << 11


def test_denormals_are_kept_or_flushed() -> None:
    np.testing.assert_array_equal(doubled(), DENORMAL)
    for record in (
        instruction("s_setreg_b32", a=sgpr(1), imm=hwreg(0, 8)),
        instruction("s_setreg_imm32_b32", literal=0, imm=hwreg(4, 2)),
        instruction("s_denorm_mode", imm=FLUSH),
    ):
        got = doubled(record)
        assert (got == 0).all()
        np.testing.assert_array_equal(np.signbit(got), [False, True])
        np.testing.assert_array_equal(
            doubled(record, instruction("s_denorm_mode", imm=KEEP)), DENORMAL
        )


@pytest.mark.parametrize(
    "record",
    [
        instruction("s_denorm_mode", imm=0),
        instruction("s_denorm_mode", imm=0xD),
    ],
    ids=lambda record: f"{record.name}-{record.imm}",
)
def test_modes_that_are_not_executed_are_errors(record: object) -> None:
    with pytest.raises(RuntimeError, match="denormal mode that is not executed"):
        Wave("gfx942").run(record)


def test_nearest_even_is_a_mode_that_is_executed() -> None:
    Wave("gfx1100").run(instruction("s_round_mode", imm=0))


def test_other_hardware_registers_are_errors() -> None:
    with pytest.raises(RuntimeError, match="hardware register other than MODE 0x2"):
        Wave("gfx942").run(instruction("s_setreg_b32", a=sgpr(0), imm=2))


def test_unknown_instruction_is_named_with_its_address() -> None:
    wave = Wave("gfx942")
    move = instruction("s_mov_b32", d=TO, a=sgpr(VALUE))
    with pytest.raises(RuntimeError, match="unknown instruction at 0x8 `v_made_up_f32`"):
        wave.run(move, move, instruction("v_made_up_f32"))
