# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The flat binary form of a decoded code object, as the native executor reads it.

Little-endian. A header, the mnemonics joined by newlines, the fixed-size records in address order,
then the disassembly texts, each ended by a zero byte. The C++ twin is `native/program.h`; any
change here raises VERSION, which is part of the cache key.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

VERSION = "5"
MAGIC = b"VGPUPRG" + VERSION.encode()

_HEADER = struct.Struct("<8sQIIII")  # magic, text address, records, names bytes, texts bytes, 0
_RECORD = struct.Struct("<IHBBIiiIHBBBBBBI")
_OPERAND = struct.Struct("<HBBBB")

# Operand codes follow the 9-bit source encoding of the ISA guides; two ranges are added.
NULL, M0, EXEC, VCC, SCC, LITERAL = 124, 125, 126, 106, 253, 255
RESERVED = 209  # the first code without a meaning on every chip: it stops the kernel
VGPR0, AGPR0, TEMP, NONE = 256, 512, 768, 0xFFFF  # TEMP: one VGPR the decoder may use between parts

# Bits of Operand.mods.
NEG, ABS, OPSEL, OPSEL_HI, NEG_HI = 1, 2, 4, 8, 16
# Bits of Record.flags.
CLAMP, OFFEN, IDXEN, LDS, ZERO_HIGH, DPP, BOUND_CTRL, FETCH_INACTIVE = (1 << i for i in range(8))
SDWA, PACKED, DPP8, KEEP_HALF, UNDECODABLE = (1 << i for i in range(8, 13))

SEL_DWORD = 6  # SDWA selections: 0..3 bytes, 4..5 words, 6 the dword


@dataclass(frozen=True, kw_only=True)
class Operand:
    """One register, constant or nothing; `dwords` is its size, `sel` an SDWA selection."""

    reg: int = NONE
    dwords: int = 0
    mods: int = 0
    sel: int = SEL_DWORD
    sext: bool = False

    def pack(self) -> bytes:
        return _OPERAND.pack(self.reg, self.dwords, self.mods, self.sel, self.sext)


ABSENT = Operand()


@dataclass(frozen=True, kw_only=True)
class Record:
    """One instruction (or one part of a dual one: part 1 or more, counted with part 0).

    Operands: d and e are written, a, b, c and x read. Memory instructions have the address in a,
    data in b (and c of two-address LDS ones), the resource in c, the scalar offset or base in x.
    """

    offset: int
    name: str
    size: int
    text: str
    part: int = 0
    literal: int = 0
    imm: int = 0  # simm16, or the memory offset in bytes
    imm1: int = 0  # the second offset of two-address LDS instructions
    flags: int = 0
    dpp_ctrl: int = 0
    row_mask: int = 15
    bank_mask: int = 15
    dst_sel: int = SEL_DWORD
    dst_unused: int = 0
    omod: int = 0
    cbsz: int = 0
    abid: int = 0
    blgp: int = 0
    d: Operand = ABSENT
    e: Operand = ABSENT
    a: Operand = ABSENT
    b: Operand = ABSENT
    c: Operand = ABSENT
    x: Operand = ABSENT


@dataclass
class Program:
    """Records of one .text section that starts at address `base`."""

    base: int
    records: list[Record] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        names: dict[str, int] = {}
        texts = bytearray()
        text_at: dict[str, int] = {}
        records = bytearray()
        for r in self.records:
            name = names.setdefault(r.name, len(names))
            if r.text not in text_at:
                text_at[r.text] = len(texts)
                texts += r.text.encode() + b"\0"
            records += _RECORD.pack(
                r.offset,
                name,
                r.size,
                r.part,
                r.literal,
                r.imm,
                r.imm1,
                r.flags,
                r.dpp_ctrl,
                r.row_mask | r.bank_mask << 4,
                r.dst_sel | r.dst_unused << 4,
                r.omod,
                r.cbsz,
                r.abid,
                r.blgp,
                text_at[r.text],
            )
            for operand in (r.d, r.e, r.a, r.b, r.c, r.x):
                records += operand.pack()
        joined = "\n".join(names).encode()
        head = _HEADER.pack(MAGIC, self.base, len(self.records), len(joined), len(texts), 0)
        return bytes(head + joined + records + texts)
