"""GFX9's register index mode: which moves it shifts, and what is refused while it is on."""

from __future__ import annotations

import pytest

from conv_compiler.vgpu import decode
from conv_compiler.vgpu.program import M0, UNDECODABLE, VGPR0, Record

# s_set_gpr_idx_on s0, gpr_idx(SRC0), and with other operands; v_mov_b32 v1, v10.
ON_SOURCE, ON_TARGET, ON_BOTH, ON_SECOND = 0xBF110100, 0xBF110800, 0xBF110900, 0xBF110200
OFF, TO_TARGET, INDEX = 0xBF9C0000, 0xBF9D0008, 0xBE803200
MOVE, MOVE_SCALAR, ADD = 0x7E02030A, 0x7E020205, 0x0202030A  # s5; v_add_f32 v1, v10, v1
BRANCH_BACK = 0xBF82FFFD


def records(*words: int, chip: str = "gfx942") -> list[Record]:
    code = b"".join(word.to_bytes(4, "little") for word in words)
    return decode.decode_text(chip, 0, code, wave_size=64).records


@pytest.mark.parametrize("chip", ["gfx908", "gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize(
    ("on", "text", "move"),
    [
        (ON_SOURCE, "s_set_gpr_idx_on s0, gpr_idx(SRC0)", "v_movrels_idx_b32"),
        (ON_TARGET, "s_set_gpr_idx_on s0, gpr_idx(DST)", "v_movreld_idx_b32"),
        (ON_BOTH, "s_set_gpr_idx_on s0, gpr_idx(SRC0,DST)", "v_movrelsd_idx_b32"),
    ],
)
def test_moves_are_of_relative_registers(chip, on, text, move):
    first, moved, off, plain = records(on, MOVE, OFF, MOVE, chip=chip)
    assert first.text == text
    assert (first.d.reg, first.imm) == (M0, on >> 8 & 15)
    assert moved.name == move
    assert (moved.d.reg, moved.a.reg) == (VGPR0 + 1, VGPR0 + 10)
    assert moved.text == plain.text
    assert (off.name, plain.name) == ("s_set_gpr_idx_off", "v_mov_b32")


def test_a_mode_may_change_while_it_is_on():
    _, source, change, target, index, still, _ = records(
        ON_SOURCE, MOVE, TO_TARGET, MOVE, INDEX, MOVE, OFF
    )
    assert [source.name, target.name, still.name] == [
        "v_movrels_idx_b32",
        "v_movreld_idx_b32",
        "v_movreld_idx_b32",
    ]
    assert change.text == "s_set_gpr_idx_mode gpr_idx(DST)"
    assert index.name == "s_set_gpr_idx_idx"
    assert index.d.reg == M0


def test_what_is_not_shifted_stays_as_it_is():
    """A scalar source, and operands that the mode does not name."""
    _, scalar, _, _, vector, _ = records(ON_SOURCE, MOVE_SCALAR, OFF, ON_SECOND, MOVE, OFF)
    assert scalar.name == vector.name == "v_mov_b32"
    assert not scalar.flags & UNDECODABLE


@pytest.mark.parametrize("word", [ADD, BRANCH_BACK])
def test_other_instructions_stop_the_kernel(word):
    """Arithmetic on shifted registers, and branches while the mode is on."""
    _, record, _ = records(ON_SOURCE, word, OFF)
    assert record.flags & UNDECODABLE


def test_a_move_that_is_branched_to_stops_the_kernel():
    """It may be reached with the mode on or off."""
    _, move, _, branch = records(ON_SOURCE, MOVE, OFF, BRANCH_BACK)
    assert branch.offset + 4 + 4 * branch.imm == move.offset
    assert move.flags & UNDECODABLE
