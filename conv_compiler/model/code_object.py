# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of a code object: their machine code, registers and LDS, from the ELF itself."""

from __future__ import annotations

import io
import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from conv_compiler.errors import InvalidArtifact, UnsupportedTarget
from conv_compiler.model.instructions import Instruction, from_records
from conv_compiler.targets import executed_isa

if TYPE_CHECKING:
    from conv_compiler.binary.code_note import KernelNote

# Bits of a kernel descriptor (LLVM AMDGPU usage, "Kernel Descriptor").
_RSRC1, _RSRC2 = 48, 52
# Address, size and bytes.
_Symbol: TypeAlias = tuple[int, int, bytes]


@dataclass(frozen=True, kw_only=True)
class KernelCode:
    """One kernel of a code object.

    `vgprs` are those the descriptor allocates to a lane, accumulation registers included: more than
    the kernel uses where the compiler was told how many waves are to share a SIMD. `workgroup_id`
    names the scalar registers that hold x, y and z at the start, as far as they are set.
    """

    name: str
    chip: str
    lanes: int
    workgroup_size: int
    vgprs: int
    used_vgprs: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int
    spills: int
    workgroup_id: tuple[str, ...]
    code: tuple[Instruction, ...]

    @property
    def waves(self) -> int:
        """Waves of a workgroup."""
        return -(-self.workgroup_size // self.lanes)


def kernels(elf: bytes) -> tuple[KernelCode, ...]:
    """Every kernel of a code object, decoded.

    Raises InvalidArtifact for a chip not known here, and for a damaged object.
    """
    from conv_compiler.binary.code_note import DAMAGE, read_note
    from conv_compiler.vgpu.decode import text_section

    note = read_note(io.BytesIO(elf))
    try:
        executed_isa(note.chip)
    except UnsupportedTarget as error:
        raise InvalidArtifact(f"code object for {note.chip}: not decoded, for {error}") from None
    try:
        base, text = text_section(elf)
        symbols = _symbols(elf)
        return tuple(_kernel(record, note.chip, base, text, symbols) for record in note.kernels)
    except (*DAMAGE, struct.error) as error:
        raise InvalidArtifact(
            f"code object: its sections or symbols are damaged ({error}); compile it again"
        ) from error


def _kernel(
    record: KernelNote, chip: str, base: int, text: bytes, symbols: dict[str, _Symbol]
) -> KernelCode:
    """The kernel of a record, decoded."""
    from conv_compiler.vgpu.decode import decode_text

    address, size, _ = symbols[record.name]
    descriptor = symbols[record.symbol][2]
    size = size or _until_next(address, base + len(text), symbols)
    start = address - base
    if not 0 <= start <= start + size <= len(text) or size % 4:
        raise ValueError(f"kernel {record.name} lies outside .text")
    lanes, isa = record.wavefront_size, executed_isa(chip)
    program = decode_text(chip, address, text[start : start + size], wave_size=lanes)
    rsrc1, rsrc2 = (struct.unpack_from("<I", descriptor, at)[0] for at in (_RSRC1, _RSRC2))
    return KernelCode(
        name=record.name,
        chip=chip,
        lanes=lanes,
        workgroup_size=math.prod(record.reqd_workgroup_size or (record.max_flat_workgroup_size,)),
        vgprs=((rsrc1 & 63) + 1) * isa.vgpr_encoding,
        used_vgprs=record.vgpr_count,
        sgprs=record.sgpr_count,
        lds_bytes=record.group_segment_fixed_size,
        scratch_bytes=record.private_segment_fixed_size,
        spills=record.spills,
        workgroup_id=_workgroup_id(isa.generation, rsrc2),
        code=from_records(program.records, address),
    )


def _until_next(address: int, end: int, symbols: dict[str, _Symbol]) -> int:
    """Bytes of a function whose symbol states no size, as an assembler's may."""
    return min((at for at, _, _ in symbols.values() if address < at < end), default=end) - address


def _workgroup_id(generation: int, rsrc2: int) -> tuple[str, ...]:
    """Where x, y and z are at the start: behind the user registers, on gfx12 in ttmp9 and ttmp7."""
    if generation == 12:
        return ("ttmp9",)
    register, names = rsrc2 >> 1 & 31, []
    for axis in range(3):
        if rsrc2 >> (7 + axis) & 1:
            names.append(f"s{register}")
            register += 1
        else:
            names.append("")
    return tuple(names)


def _symbols(elf: bytes) -> dict[str, _Symbol]:
    """Address, size and bytes of each dynamic symbol."""
    from elftools.elf.elffile import ELFFile

    file = ELFFile(io.BytesIO(elf))
    found: dict[str, _Symbol] = {}
    symbol: Any
    for symbol in file.get_section_by_name(".dynsym").iter_symbols():
        index = symbol["st_shndx"]
        if not isinstance(index, int):
            continue
        section = file.get_section(index)
        start = section["sh_offset"] + symbol["st_value"] - section["sh_addr"]
        address, size = symbol["st_value"], symbol["st_size"]
        found[symbol.name] = (address, size, elf[start : start + size])
    return found
