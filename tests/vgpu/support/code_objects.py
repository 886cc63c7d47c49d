"""The code object inside a .vmfb, found and changed in place: how the tests plant faults."""

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgpack
from elftools.elf.elffile import ELFFile

ELF_MAGIC = b"\x7fELF"
EM_AMDGPU = 224
NT_AMDGPU_METADATA = 32
SOPP = 0xBF800000  # instructions with a 7-bit opcode at bit 16 and an immediate


def sopp(opcode: int, immediate: int = 0) -> bytes:
    """A scalar instruction without operands."""
    return struct.pack("<I", SOPP | opcode << 16 | immediate)


def s_endpgm(chip: str) -> bytes:
    return sopp(1 if chip.startswith("gfx9") else 48)


def s_trap(chip: str) -> bytes:
    """What the compiler emits for an abort."""
    return sopp(18 if chip.startswith("gfx9") else 16, 2)


def unknown_sopp(chip: str) -> bytes:
    """An opcode that means nothing on any chip."""
    return sopp(127)


# EF_AMDGPU_MACH in e_flags, from the AMDGPU ABI document.
MACH = {
    **{"gfx908": 0x30, "gfx90a": 0x3F, "gfx942": 0x4C, "gfx950": 0x4F, "gfx1100": 0x41},
    **{"gfx1101": 0x46, "gfx1103": 0x44, "gfx1150": 0x43, "gfx1151": 0x4A},
    **{"gfx1200": 0x48, "gfx1201": 0x4E},
}
E_FLAGS_OFFSET = 48
RSRC1_OFFSET, RSRC2_OFFSET = 48, 52  # in a kernel descriptor


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
    """Say in header and metadata that the code object is for another chip."""
    start = find(vmfb).start
    assert vmfb[start + E_FLAGS_OFFSET] == MACH[chip]
    changed = bytearray(vmfb)
    changed[start + E_FLAGS_OFFSET] = MACH[to]
    # The target's name keeps its length: a longer chip name takes the place of the hyphen too.
    end = vmfb.index(f"-{chip}".encode(), start) + 1 + len(chip)
    changed[end - len(to) : end] = to.encode()
    return bytes(changed)


def with_lds_bytes(vmfb: bytes, old: int, new: int) -> bytes:
    """Change a kernel's LDS size in IREE's executable (a flatbuffer) and in the code object's metadata."""
    for form in ("<I", ">I"):
        assert struct.pack(form, old) in vmfb
        vmfb = vmfb.replace(struct.pack(form, old), struct.pack(form, new))
    return vmfb


def with_mode_bits(vmfb: bytes, bits: int, offset: int = RSRC1_OFFSET) -> bytes:
    """Set bits of COMPUTE_PGM_RSRC1, or of the word at `offset`, in the only kernel's descriptor."""
    start = find(vmfb).start
    elf = ELFFile(io.BytesIO(vmfb[start:]))
    symbols = elf.get_section_by_name(".dynsym").iter_symbols()
    (address,) = (s["st_value"] for s in symbols if s.name.endswith(".kd"))
    data = elf.get_section_by_name(".rodata")
    at = start + data["sh_offset"] + address - data["sh_addr"] + offset
    (word,) = struct.unpack_from("<I", vmfb, at)
    return vmfb[:at] + struct.pack("<I", word | bits) + vmfb[at + 4 :]


def image(vmfb: bytes) -> bytes:
    """Return the code object alone; as LLD writes it, it ends with its section headers."""
    whole = vmfb[find(vmfb).start :]
    (table,) = struct.unpack_from("<Q", whole, 40)
    size, count = struct.unpack_from("<HH", whole, 58)
    return whole[: table + size * count]


def with_note(image: bytes, contents: bytes) -> bytes:
    """Return the code object with other contents of its metadata note, of any length."""
    elf = ELFFile(io.BytesIO(image))
    (index,) = (i for i, s in enumerate(elf.iter_sections()) if s.name == ".note")
    note = struct.pack("<III", 7, len(contents), NT_AMDGPU_METADATA) + b"AMDGPU\0\0" + contents
    note += bytes(-len(note) % 8)
    table = elf["e_shoff"]
    headers = bytearray(image[table:])
    # It lies behind everything else then, where no segment loads it.
    struct.pack_into("<QQQQ", headers, index * elf["e_shentsize"] + 8, 0, 0, table, len(note))
    changed = bytearray(image[:table] + note + headers)
    struct.pack_into("<Q", changed, 40, table + len(note))
    return bytes(changed)


def with_metadata(image: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return the code object with its metadata changed by a function."""
    section = ELFFile(io.BytesIO(image)).get_section_by_name(".note")
    note = section.data()
    name_size, size = struct.unpack_from("<II", note)
    at = 12 + (name_size + 3) // 4 * 4
    metadata = msgpack.unpackb(note[at : at + size])
    change(metadata)
    return with_note(image, msgpack.packb(metadata, unicode_errors="surrogateescape"))


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


def metadata(vmfb: bytes, key: str) -> int:
    """Return a number of the first kernel's metadata."""
    at = vmfb.index(key.encode(), find(vmfb).start) + len(key)
    unpacker = msgpack.Unpacker()
    unpacker.feed(vmfb[at : at + 9])
    return unpacker.unpack()
