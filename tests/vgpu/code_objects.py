"""The code object inside a .vmfb, found and changed in place: how the tests plant faults."""

import io
import struct
from dataclasses import dataclass

import msgpack
from elftools.elf.elffile import ELFFile

ELF_MAGIC = b"\x7fELF"
EM_AMDGPU = 224
S_ENDPGM = struct.pack("<I", 0xBF810000)  # gfx9
UNKNOWN_SOPP = struct.pack(
    "<I", 0xBFFF0000
)  # opcode 127 of the SOPP encoding means nothing on gfx9
S_TRAP = struct.pack("<I", 0xBF920002)  # gfx9: s_trap 2, what the compiler emits for an abort

# EF_AMDGPU_MACH in e_flags, from the AMDGPU ABI document.
MACH = {"gfx90a": 0x3F, "gfx942": 0x4C, "gfx950": 0x4F, "gfx1100": 0x41, "gfx1201": 0x4E}
E_FLAGS_OFFSET = 48


@dataclass(frozen=True)
class CodeObject:
    """Offsets of the only code object of a .vmfb, in bytes from its start."""

    start: int
    text: int
    text_size: int

    @property
    def text_end(self) -> int:
        return self.text + self.text_size


def find(vmfb: bytes) -> CodeObject:
    """Find the AMDGPU ELF and its .text section."""
    start = vmfb.find(ELF_MAGIC)
    while struct.unpack_from("<H", vmfb, start + 18)[0] != EM_AMDGPU:
        start = vmfb.index(ELF_MAGIC, start + 1)
    (table,) = struct.unpack_from("<Q", vmfb, start + 40)
    size, count, names = struct.unpack_from("<HHH", vmfb, start + 58)
    sections = [struct.unpack_from("<IIQQQQ", vmfb, start + table + i * size) for i in range(count)]
    strings = start + sections[names][4]
    for name, _, _, _, offset, length in sections:
        if vmfb[strings + name :].startswith(b".text\0"):
            return CodeObject(start, start + offset, length)
    raise ValueError("code object: has no .text section")


def replace_last(vmfb: bytes, instruction: bytes, by: bytes) -> bytes:
    """Replace the last occurrence of a 4-byte instruction in .text."""
    code = find(vmfb)
    at = vmfb.rindex(instruction, code.text, code.text_end)
    return vmfb[:at] + by + vmfb[at + len(by) :]


def retarget(vmfb: bytes, chip: str, to: str) -> bytes:
    """Say that the code object is for another chip with a name of the same length."""
    flags_at = find(vmfb).start + E_FLAGS_OFFSET
    assert vmfb[flags_at] == MACH[chip]
    name_at = vmfb.index(chip.encode(), flags_at)
    changed = bytearray(vmfb)
    changed[flags_at] = MACH[to]
    changed[name_at : name_at + len(to)] = to.encode()
    return bytes(changed)


def kernels(vmfb: bytes) -> dict[str, int]:
    """Return the kernels' names and the addresses of their first instructions, in address order."""
    symbols = ELFFile(io.BytesIO(vmfb[find(vmfb).start :])).get_section_by_name(".dynsym")
    rows = [
        (s["st_value"], s.name)
        for s in symbols.iter_symbols()
        if s["st_info"]["type"] == "STT_FUNC"
    ]
    return {name: address for address, name in sorted(rows)}


def kernel_name(vmfb: bytes) -> str:
    """Return the name of the code object's only kernel."""
    (name,) = kernels(vmfb)
    return name


def lds_bytes(vmfb: bytes) -> int:
    """Return the LDS size of the first kernel, from the metadata."""
    key = b".group_segment_fixed_size"
    at = vmfb.index(key, find(vmfb).start) + len(key)
    unpacker = msgpack.Unpacker()
    unpacker.feed(vmfb[at : at + 9])
    return unpacker.unpack()
