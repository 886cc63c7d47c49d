# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which encoding an instruction word has, for each instruction set that the executor knows.

The machine-readable encodings are those of the `tinygrad` package. Three things are added here:
the buffer encodings of RDNA3 and RDNA4, which its decode table leaves out; the scaled matrix
encoding of CDNA4, which may only match behind its own first word; and the matrix opcodes of
CDNA2, which CDNA3 gave to other instructions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from tinygrad.renderer import amd
from tinygrad.renderer.amd.dsl import Inst
from tinygrad.runtime.autogen.amd.cdna import ins as cdna
from tinygrad.runtime.autogen.amd.rdna3 import ins as rdna3
from tinygrad.runtime.autogen.amd.rdna4 import ins as rdna4

from conv_compiler.targets import Isa, executed_isa
from conv_compiler.vgpu import program as p


@dataclass(frozen=True, kw_only=True)
class Family:
    """Chips that share encodings.

    `zeroes_high_half`: 16-bit results clear bits 31:16. `sums_apart`: the sums of a matrix
    instruction are in accumulation registers, whatever its word says of them.
    """

    name: str
    ins: ModuleType
    extra: tuple[type[Inst], ...]  # encodings to try before the package's own list
    true16: bool  # VGPR numbers of 16-bit operands carry the half in bit 7 of the short encodings
    m0: int  # source code of M0
    other: int  # what the other of 124 and 125 is
    zeroes_high_half: bool
    sums_apart: bool = False


CDNA = Family(
    name="cdna", ins=cdna, extra=(), true16=False, m0=124, other=p.RESERVED, zeroes_high_half=True
)
RDNA3 = Family(
    name="rdna3",
    ins=rdna3,
    extra=(rdna3.MUBUF,),
    true16=True,
    m0=125,
    other=p.NULL,
    zeroes_high_half=False,
)
RDNA4 = Family(
    name="rdna4",
    ins=rdna4,
    extra=(rdna4.VBUFFER,),
    true16=True,
    m0=125,
    other=p.NULL,
    zeroes_high_half=False,
)

# By the name of an instruction set (`conv_compiler/targets/amd.py`).
FAMILIES = {
    "CDNA1": replace(CDNA, sums_apart=True),
    **dict.fromkeys(("CDNA2", "CDNA3", "CDNA4"), CDNA),
    **dict.fromkeys(("RDNA3", "RDNA3.5"), RDNA3),
    "RDNA4": RDNA4,
}


def family_of(chip: str) -> Family:
    """The encodings of a chip. Raises UnsupportedTarget for one that is not executed."""
    return FAMILIES[executed_isa(chip).name]


@dataclass(frozen=True)
class Renamed:
    """An opcode that means another instruction on one chip; `bits` is the size of each operand."""

    name: str
    cls: type[Inst]
    bits: tuple[tuple[str, int], ...]


def _mfma(name: str, acc_dwords: int, source_dwords: int) -> Renamed:
    acc, source = 32 * acc_dwords, 32 * source_dwords
    bits = (("vdst", acc), ("src2", acc), ("src0", source), ("src1", source))
    return Renamed(name, cdna.VOP3P_MFMA, bits)


_MAC_BITS = (("vdst", 32), ("src0", 32), ("vsrc1", 32))
_MAD_BITS = (("vdst", 32), ("src0", 32), ("src1", 32), ("src2", 32))
_MAC_VOP3_BITS = _MAD_BITS[:3]

# (bits 31:23 or 31:26 or 31 of the word, opcode); source: the "AMD Instinct MI200" ISA guide,
# tables of VOP2, VOP3A, VOP3P-MAI and MUBUF opcodes. CDNA3 moved or dropped these.
_CDNA2: dict[tuple[str, int], Renamed] = {
    ("VOP2", 22): Renamed("v_mac_f32", cdna.VOP2, _MAC_BITS),
    ("VOP2", 23): Renamed("v_madmk_f32", cdna.VOP2_LIT, _MAC_BITS),
    ("VOP2", 24): Renamed("v_madak_f32", cdna.VOP2_LIT, _MAC_BITS),
    ("VOP3", 256 + 22): Renamed("v_mac_f32", cdna.VOP3, _MAC_VOP3_BITS),
    ("VOP3", 0x1C0): Renamed("v_mad_legacy_f32", cdna.VOP3, _MAD_BITS),
    ("VOP3", 0x1C1): Renamed("v_mad_f32", cdna.VOP3, _MAD_BITS),
    ("MUBUF", 62): Renamed("buffer_wbinvl1", cdna.MUBUF, ()),
    ("MUBUF", 63): Renamed("buffer_wbinvl1_vol", cdna.MUBUF, ()),
    ("VOP3P", 84): _mfma("v_mfma_i32_32x32x8i8", 16, 1),
    ("VOP3P", 85): _mfma("v_mfma_i32_16x16x16i8", 4, 1),
    ("VOP3P", 99): _mfma("v_mfma_f32_32x32x4bf16_1k", 32, 2),
    ("VOP3P", 100): _mfma("v_mfma_f32_16x16x4bf16_1k", 16, 2),
    ("VOP3P", 101): _mfma("v_mfma_f32_4x4x4bf16_1k", 4, 2),
    ("VOP3P", 102): _mfma("v_mfma_f32_32x32x8bf16_1k", 16, 2),
    ("VOP3P", 103): _mfma("v_mfma_f32_16x16x16bf16_1k", 4, 2),
    ("VOP3P", 104): _mfma("v_mfma_f32_32x32x2bf16", 32, 1),
    ("VOP3P", 105): _mfma("v_mfma_f32_16x16x2bf16", 16, 1),
    ("VOP3P", 107): _mfma("v_mfma_f32_4x4x2bf16", 4, 1),
    ("VOP3P", 108): _mfma("v_mfma_f32_32x32x4bf16", 16, 1),
    ("VOP3P", 109): _mfma("v_mfma_f32_16x16x8bf16", 4, 1),
}
# CDNA1 has what CDNA2 has but for the latter's own bf16 and f64. Source: LLVM's assembler.
_CDNA1 = {place: row for place, row in _CDNA2.items() if not row.name.endswith("bf16_1k")} | {
    ("VOP2", 4): Renamed("v_mul_legacy_f32", cdna.VOP2, _MAC_BITS),
    ("VOP3", 256 + 4): Renamed("v_mul_legacy_f32", cdna.VOP3, _MAC_VOP3_BITS),
}
# CDNA4 has no xf32; source: the MI300 ISA guide.
_CDNA3: dict[tuple[str, int], Renamed] = {
    ("VOP3P", 62): _mfma("v_mfma_f32_16x16x8_xf32", 4, 2),
    ("VOP3P", 63): _mfma("v_mfma_f32_32x32x4_xf32", 16, 2),
}
# By the CDNA generation of an instruction set: the package's tables are those of CDNA4.
RENAMED: dict[int, dict[tuple[str, int], Renamed]] = {1: _CDNA1, 2: _CDNA2, 3: _CDNA3, 4: {}}

# Encoding, bits that tell it, their value, first bit and mask of the opcode; most specific first.
_CDNA_ENCODINGS = (
    ("VOP3P", 23, 0b110100111, 16, 0x7F),
    ("VOP3", 26, 0b110100, 16, 0x3FF),
    ("MUBUF", 26, 0b111000, 18, 0x7F),
    ("VOP2", 31, 0, 25, 0x3F),
)
_LD_SCALE_WORD = 0xD3AC  # bits 31:16 of v_mfma_ld_scale_b32, the first half of the scaled form


@dataclass(frozen=True)
class Raw:
    """A decoded word: the package's instruction and, where the opcode was renamed, the row."""

    inst: Any
    size: int
    renamed: Renamed | None = None


def decode(data: bytes, chip: str) -> Raw:
    """Decode the instruction at the start of `data`. Raises ValueError when no encoding fits."""
    isa = executed_isa(chip)
    family = FAMILIES[isa.name]
    word = int.from_bytes(data[:4], "little")
    if renamed := _renamed(word, isa):
        cls = _variant(renamed.cls, word)
        inst = object.__new__(cls)
        inst._raw = int.from_bytes(data[: cls._base_size], "little")
        return Raw(inst, cls._base_size, renamed)
    for cls in (*family.extra, *amd._load_formats()[family.name]):
        if cls is cdna.VOP3PX2 and word >> 16 != _LD_SCALE_WORD:
            continue
        if amd._matches(data, cls):
            inst = cls.from_bytes(data)
            if type(inst).__name__.endswith("_DPP8"):
                # The package takes 249, a reserved code, for the mark of DPP8, which is 233.
                raise ValueError(f"reserved source code in {word:#010x}")
            return Raw(inst, inst.size())
    raise ValueError(f"no encoding of {chip} matches {word:#010x}")


def _renamed(word: int, isa: Isa) -> Renamed | None:
    if isa.encoding != CDNA.name:
        return None
    for encoding, shift, value, first, mask in _CDNA_ENCODINGS:
        if word >> shift == value:
            return RENAMED[isa.cdna].get((encoding, word >> first & mask))
    return None


def _variant(cls: type[Inst], word: int) -> type[Inst]:
    """The literal, SDWA or DPP form of a short encoding, from its first source."""
    variants = {255: cdna.VOP2_LIT, 249: cdna.VOP2_SDWA, 250: cdna.VOP2_DPP16}
    return variants.get(word & 0x1FF, cls) if cls is cdna.VOP2 else cls
