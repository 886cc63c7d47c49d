# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GFX9's register index mode: moves between `s_set_gpr_idx_on` and `s_set_gpr_idx_off`.

In that mode M0[7:0] is added to the number of a VGPR that is read or written (MI300 ISA guide,
"VGPR Indexing"). Which of an instruction's operands that concerns stands in the instruction that
turns the mode on or changes it. LLVM uses it for moves with a number known only at run time, and
turns it off right behind them. Such moves become records of their own. What else would be shifted,
or may be reached from elsewhere while the mode is on, is left undecodable: it stops the kernel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from conv_compiler.vgpu.program import ABSENT, M0, UNDECODABLE, VGPR0, Operand, Record

ON, OFF, INDEX, MODE = (f"s_set_gpr_idx_{what}" for what in ("on", "off", "idx", "mode"))
# Operands that are shifted, by their bit of the mode.
SHIFTED = {1: "SRC0", 2: "SRC1", 4: "SRC2", 8: "DST"}
# The moves by the mode: of a relative source, a relative destination, both.
MOVES = {1: "v_movrels_idx_b32", 8: "v_movreld_idx_b32", 9: "v_movrelsd_idx_b32"}
_TO_M0 = Operand(reg=M0, dwords=1)
_MODE_BITS = 15


def with_index_mode(records: Sequence[Record]) -> list[Record]:
    """The records of a program, in the order of their addresses, with such moves."""
    if not any(record.name == ON for record in records):
        return list(records)
    targets = set(_targets(records))
    found, mode = list[Record](), 0
    for record in records:
        if record.name in (ON, MODE):
            mode = (record.b.reg if record.name == ON else record.imm) & _MODE_BITS
            record = _switch(record, mode)
        elif record.name == INDEX:
            record = dataclasses.replace(record, d=_TO_M0)
        elif record.name == OFF:
            mode = 0
        elif mode:
            entered = record.offset in targets
            record = _unknown(record) if entered else _shifted(record, mode)
        found.append(record)
    return found


def _switch(record: Record, mode: int) -> Record:
    """What turns the mode on or changes it. M0[15:12] has the mode."""
    words = ",".join(name for bit, name in SHIFTED.items() if mode & bit)
    start = record.text.partition(",")[0] + ", " if record.name == ON else f"{record.name} "
    return dataclasses.replace(
        record, b=ABSENT, d=_TO_M0, imm=mode, text=f"{start}gpr_idx({words})"
    )


def _shifted(record: Record, mode: int) -> Record:
    """A record while the mode is on."""
    operands = {1: record.a, 2: record.b, 4: record.c, 8: record.d}
    concerned = sum(bit for bit, one in operands.items() if mode & bit and _is_vgpr(one))
    if record.name.startswith(("s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call", "s_end")):
        return _unknown(record)
    if not concerned:
        return record
    plain = record.name == "v_mov_b32" and not record.flags and concerned in MOVES
    return dataclasses.replace(record, name=MOVES[concerned]) if plain else _unknown(record)


def _is_vgpr(operand: Operand) -> bool:
    return operand is not ABSENT and VGPR0 <= operand.reg < 2 * VGPR0


def _unknown(record: Record) -> Record:
    return dataclasses.replace(record, flags=record.flags | UNDECODABLE)


def _targets(records: Sequence[Record]) -> Iterator[int]:
    """Where branches lead."""
    for record in records:
        if record.name.startswith(("s_branch", "s_cbranch")):
            yield record.offset + 4 + 4 * record.imm
