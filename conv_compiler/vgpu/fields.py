# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fields of one decoded instruction in the executor's terms, the same for all families."""

from __future__ import annotations

from typing import Any

from tinygrad.renderer.amd.dsl import AlignedSGPRField, SrcField, VDSTYField

from conv_compiler.vgpu import program as p
from conv_compiler.vgpu.formats import Family, Raw
from conv_compiler.vgpu.program import ABSENT, Operand, Record


def clean_name(name: str) -> str:
    """The mnemonic without its encoding suffix."""
    name = name.lower()
    for suffix in ("_e32", "_e64"):
        name = name.removesuffix(suffix)
    return name


class Fields:
    """Access to the fields of one instruction in the executor's terms."""

    def __init__(self, raw: Raw, family: Family, offset: int, wave_dwords: int):
        self.raw, self.inst, self.family = raw, raw.inst, family
        self.offset, self.wave_dwords = offset, wave_dwords
        self.kind = type(self.inst).__name__
        self.bits = dict(raw.renamed.bits if raw.renamed else self.inst.op_bits)
        self.short = self.kind.startswith(("VOP1", "VOP2", "VOPC")) and "VOP3" not in self.kind

    @property
    def name(self) -> str:
        return self.raw.renamed.name if self.raw.renamed else clean_name(self.inst.op.name)

    def has(self, field: str) -> bool:
        return hasattr(type(self.inst), field)

    def value(self, field: str, default: int = 0) -> int:
        """A plain field as a number, `default` where the encoding has none."""
        if not self.has(field):
            return default
        place = getattr(type(self.inst), field)
        if isinstance(place, VDSTYField):
            return int(getattr(self.inst, field).offset)
        raw: int = int(self.inst._raw) >> int(place.lo) & int(place.mask)
        if isinstance(place, AlignedSGPRField):
            return raw * int(place._align)
        return raw + int(place._valid_range[0]) if isinstance(place, SrcField) else raw

    def signed(self, field: str, width: int) -> int:
        value = self.value(field)
        return value - (1 << width) if value >> (width - 1) & 1 else value

    def reg(self, code: int, bits: int, *, agpr: bool = False, mods: int = 0) -> Operand:
        """An operand from its 9-bit code; M0 and NULL are put where the program format has them."""
        if code in (124, 125):
            code = p.M0 if code == self.family.m0 else self.family.other
        if code == p.LITERAL and not self.has("literal"):
            raise ValueError("literal where the encoding has none")
        if agpr and code >= p.VGPR0:
            code += p.AGPR0 - p.VGPR0
        elif self.family.true16 and self.short and bits == 16 and code >= p.VGPR0 + 128:
            code, mods = code - 128, mods | p.OPSEL
        return Operand(reg=code, dwords=max(1, bits // 32), mods=mods)

    def operand(self, field: str, *, key: str = "", agpr: bool = False, mods: int = 0) -> Operand:
        """The operand in `field`; its size comes from the package's table under `key`."""
        if not self.has(field):
            return ABSENT
        bits = self.bits.get(key or field)
        if bits is None:
            return ABSENT
        return self.reg(self.value(field), bits, agpr=agpr, mods=mods)

    @property
    def mask(self) -> int:
        return 32 * self.wave_dwords

    def vcc(self) -> Operand:
        return Operand(reg=p.VCC, dwords=self.wave_dwords)

    def record(self, **parts: Any) -> Record:
        return Record(
            offset=self.offset,
            name=parts.pop("name", None) or self.name,
            size=self.raw.size,
            text="",
            **{"literal": self.value("literal")} | parts,
        )
