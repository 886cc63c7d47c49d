"""The kernels of a code object: their machine code, registers and LDS, from the ELF itself."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conv_compiler.errors import InvalidArtifact
from conv_compiler.facts import code_object_note
from conv_compiler.model.instructions import Instruction, from_records

_ELF = b"\x7fELF\x02\x01"
_EM_AMDGPU = 224
# Bits of a kernel descriptor (LLVM AMDGPU usage, "Kernel Descriptor").
_RSRC1, _RSRC2 = 48, 52


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


def code_objects(data: bytes) -> Iterator[bytes]:
    """The AMD code objects in a `.vmfb`, or the one that `data` is."""
    at = data.find(_ELF)
    while at >= 0:
        if struct.unpack_from("<H", data, at + 18)[0] == _EM_AMDGPU:
            (table,) = struct.unpack_from("<Q", data, at + 40)
            size, count = struct.unpack_from("<HH", data, at + 58)
            yield data[at : at + table + size * count]
        at = data.find(_ELF, at + 1)


def kernels(elf: bytes) -> tuple[KernelCode, ...]:
    """Every kernel of a code object, decoded. Raises InvalidArtifact for a chip not known here."""
    from conv_compiler.vgpu.decode import decode_text, text_section
    from conv_compiler.vgpu.formats import FAMILIES

    note = code_object_note(io.BytesIO(elf))
    chip = note["amdhsa.target"].rpartition("-")[2].split(":")[0]
    if chip not in FAMILIES:
        raise InvalidArtifact(f"code object for {chip}: not decoded; known: {', '.join(FAMILIES)}")
    records = note["amdhsa.kernels"]
    lanes = records[0][".wavefront_size"]
    base, text = text_section(elf)
    symbols = _symbols(elf)
    found = []
    for record in records:
        address, size, _ = symbols[record[".name"]]
        descriptor = symbols[record[".symbol"]][2]
        start = address - base
        program = decode_text(chip, address, text[start : start + size], wave_size=lanes)
        rsrc1, rsrc2 = (struct.unpack_from("<I", descriptor, at)[0] for at in (_RSRC1, _RSRC2))
        found.append(
            KernelCode(
                name=record[".name"],
                chip=chip,
                lanes=lanes,
                workgroup_size=math.prod(
                    record.get(".reqd_workgroup_size", (record[".max_flat_workgroup_size"],))
                ),
                vgprs=((rsrc1 & 63) + 1) * 8,
                used_vgprs=record[".vgpr_count"],
                sgprs=record[".sgpr_count"],
                lds_bytes=record[".group_segment_fixed_size"],
                scratch_bytes=record[".private_segment_fixed_size"],
                spills=record[".vgpr_spill_count"] + record[".sgpr_spill_count"],
                workgroup_id=_workgroup_id(chip, rsrc2),
                code=from_records(program.records, address),
            )
        )
    return tuple(found)


def _workgroup_id(chip: str, rsrc2: int) -> tuple[str, ...]:
    """Where x, y and z are at the start: behind the user registers, on gfx12 in ttmp9 and ttmp7."""
    if chip.startswith("gfx12"):
        return ("ttmp9",)
    register, names = rsrc2 >> 1 & 31, []
    for axis in range(3):
        if rsrc2 >> (7 + axis) & 1:
            names.append(f"s{register}")
            register += 1
        else:
            names.append("")
    return tuple(names)


def _symbols(elf: bytes) -> dict[str, tuple[int, int, bytes]]:
    """Address, size and bytes of each dynamic symbol."""
    from elftools.elf.elffile import ELFFile

    file = ELFFile(io.BytesIO(elf))
    found: dict[str, tuple[int, int, bytes]] = {}
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
