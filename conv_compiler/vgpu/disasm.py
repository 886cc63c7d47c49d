# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Readable text of a record, close to what LLVM prints; used in findings and cross-checks."""

from __future__ import annotations

from conv_compiler.vgpu import program as p
from conv_compiler.vgpu.program import ABSENT, Operand, Record

_NAMES = {
    p.NULL: "null",
    p.M0: "m0",
    p.SCC: "scc",
    251: "vccz",
    252: "execz",
    235: "src_shared_base",
}
_NAMES |= {236: "src_shared_limit", 237: "src_private_base", 238: "src_private_limit"}
_NAMES |= {102: "flat_scratch_lo", 103: "flat_scratch_hi", 104: "xnack_mask_lo"}
_SCALAR_LOADS = ("s_load", "s_buffer_load")
_PAIRS = {p.VCC: "vcc", p.EXEC: "exec", 102: "flat_scratch"}
_FLOATS = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494")


def operand_text(op: Operand, literal: int) -> str:
    """One operand with its modifiers."""
    text = _register(op.reg, op.dwords, literal)
    if op.mods & p.ABS:
        text = f"|{text}|"
    return f"-{text}" if op.mods & p.NEG else text


def _register(reg: int, dwords: int, literal: int) -> str:
    if reg >= p.VGPR0:
        kind, first = {1: "v", 2: "a", 3: "temp"}[reg >> 8], reg & 255
        return f"{kind}{first}" if dwords == 1 else f"{kind}[{first}:{first + dwords - 1}]"
    if reg == p.LITERAL:
        return f"{literal:#x}"
    if 128 <= reg <= 208:
        return str(reg - 128 if reg <= 192 else 192 - reg)
    if 240 <= reg <= 248:
        return _FLOATS[reg - 240]
    if reg in _PAIRS and dwords == 2:
        return _PAIRS[reg]
    if reg in (106, 107, 126, 127):
        return f"{_PAIRS[reg & ~1]}_{'hi' if reg & 1 else 'lo'}"
    if reg in _NAMES:
        return _NAMES[reg]
    kind, first = ("ttmp", reg - 108) if 108 <= reg < 124 else ("s", reg)
    return f"{kind}{first}" if dwords == 1 else f"{kind}[{first}:{first + dwords - 1}]"


def text(r: Record, mnemonic: str) -> str:
    """The instruction as one line: mnemonic, operands in encoding order, modifiers."""
    stored_first = mnemonic.startswith("buffer_store")
    order = (r.b, r.a, r.c, r.x) if stored_first else (r.d, r.e, r.a, r.b, r.c, r.x)
    operands = [op for op in order if op is not ABSENT]
    parts = [operand_text(op, r.literal) for op in operands]
    if _shows_immediate(r, bool(operands)):
        parts.append(hex(r.imm & 0xFFFF))
    if r.imm and r.name.startswith(_SCALAR_LOADS):
        parts.append(hex(r.imm))
    flags = [
        word
        for bit, word in (
            (p.OFFEN, "offen"),
            (p.IDXEN, "idxen"),
            (p.LDS, "lds"),
            (p.CLAMP, "clamp"),
        )
        if r.flags & bit
    ]
    if mnemonic.startswith("v_bitop3"):
        flags.append(f"bitop3:{r.imm:#x}")
    elif r.imm1 or any(two in mnemonic for two in ("read2", "write2", "2addr")):
        flags.append(f"offset0:{r.imm} offset1:{r.imm1}")
    elif r.imm and operands and not r.name.startswith("s_"):
        flags.append(f"offset:{r.imm}")
    if r.flags & p.DPP:
        flags.append(f"dpp:{r.dpp_ctrl:#x} row_mask:{r.row_mask:#x} bank_mask:{r.bank_mask:#x}")
    return " ".join(filter(None, [mnemonic, ", ".join(parts), " ".join(flags)]))


def _shows_immediate(r: Record, has_operands: bool) -> bool:
    if not r.name.startswith("s_") or r.name in ("s_endpgm", "s_barrier"):
        return False
    with_registers = ("s_movk", "s_cmpk", "s_addk", "s_mulk", "s_cmovk", "s_setreg", "s_getreg")
    return not has_operands or r.name.startswith(with_registers)
