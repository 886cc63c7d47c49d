"""Code objects with damaged headers, tables and metadata are refused, and the process survives.

Each lies at the end of readable memory, where a read past it is a fault.
"""

import ctypes
import io
import mmap
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from tests.vgpu.support import code_objects
from tests.vgpu.support.bare_kernels import CHIP, Hip, HipError
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

PROGRAM = BY_NAME["multiply_add_f32"]
SECTION_HEADER_BYTES, SYMBOL_BYTES, PROGRAM_HEADER_BYTES = 64, 24, 56
PROT_NONE = 0
LARGE = (1 << 63) - 1, (1 << 64) - 16, (1 << 64) - 1
SECTION_FIELDS = {"sh_offset": 24, "sh_size": 32}
SEGMENT_FIELDS = {"p_offset": 8, "p_vaddr": 16, "p_filesz": 32, "p_memsz": 40}


@pytest.fixture(scope="module")
def image(compile_for: CompileFor) -> bytes:
    """A whole code object."""
    return code_objects.image(compile_for(PROGRAM.mlir, CHIP, *PROGRAM.flags))


@pytest.fixture
def hip() -> Iterator[Hip]:
    """The HIP calls on one device."""
    hip = Hip()
    yield hip
    hip.close()


def load_at_the_end(hip: Hip, image: bytes) -> None:
    """Load a code object whose last byte is the last one that can be read."""
    page = mmap.PAGESIZE
    room = -(-len(image) // page) * page
    memory = mmap.mmap(-1, room + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start + room), page, PROT_NONE) == 0
    memory[room - len(image) : room] = image
    hip.load(ctypes.c_void_p(start + room - len(image)))


def section_field(name: str, field: str) -> Callable[[ELFFile], int]:
    """Where a field of a section's header lies."""

    def at(elf: ELFFile) -> int:
        (index,) = (i for i, s in enumerate(elf.iter_sections()) if s.name == name)
        return elf["e_shoff"] + index * SECTION_HEADER_BYTES + SECTION_FIELDS[field]

    return at


def segment_field(field: str) -> Callable[[ELFFile], int]:
    """Where a field of the header of the first segment with code lies."""

    def at(elf: ELFFile) -> int:
        rows = enumerate(elf.iter_segments())
        index = next(i for i, s in rows if s["p_type"] == "PT_LOAD" and s["p_flags"] & 1)
        return elf["e_phoff"] + index * PROGRAM_HEADER_BYTES + SEGMENT_FIELDS[field]

    return at


def note_field(field: int) -> Callable[[ELFFile], int]:
    """Where a field of the note's header lies: 0 is n_namesz, 1 n_descsz."""
    return lambda elf: elf.get_section_by_name(".note")["sh_offset"] + 4 * field


def section_name(elf: ELFFile) -> int:
    """Offset of the name of the first section after the empty one."""
    return elf["e_shoff"] + SECTION_HEADER_BYTES


def symbol_name(elf: ELFFile) -> int:
    """Offset of the name of the first symbol after the empty one."""
    return elf.get_section_by_name(".dynsym")["sh_offset"] + SYMBOL_BYTES


LEAVES_STRINGS = "has a name that leaves its string table"
LEAVES_NOTES = "has a note that leaves its section"
BEHIND = "has contents behind its section headers"
SECTIONS = (".shstrtab", ".note", ".dynsym", ".dynstr", ".text")
# Where a field lies, its form, and what is said when it has a large value.
DAMAGED: dict[str, tuple[Callable[[ELFFile], int], str, str]] = {
    "e_phoff": (lambda elf: 32, "<Q", BEHIND),
    "e_shoff": (lambda elf: 40, "<Q", "has section headers outside"),
    "e_phnum": (lambda elf: 56, "<H", BEHIND),
    "e_shnum": (lambda elf: 60, "<H", "has section headers in memory that cannot be read"),
    "e_shstrndx": (lambda elf: 62, "<H", "has no section names"),
    "e_phentsize": (lambda elf: 54, "<H", "has program headers of another size"),
    "e_shentsize": (lambda elf: 58, "<H", "has section headers of another size"),
    "p_offset": (segment_field("p_offset"), "<Q", BEHIND),
    "p_vaddr": (segment_field("p_vaddr"), "<Q", "segment"),
    "p_filesz": (segment_field("p_filesz"), "<Q", BEHIND),
    "p_memsz": (segment_field("p_memsz"), "<Q", "segment"),
    "note name": (note_field(0), "<I", LEAVES_NOTES),
    "note contents": (note_field(1), "<I", LEAVES_NOTES),
    "section name": (section_name, "<I", LEAVES_STRINGS),
    "symbol name": (symbol_name, "<I", LEAVES_STRINGS),
    **{
        f"{field} of {name}": (section_field(name, field), "<Q", BEHIND)
        for name in SECTIONS
        for field in SECTION_FIELDS
    },
}


@pytest.mark.parametrize("value", LARGE, ids=hex)
@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_field_is_refused(name: str, value: int, image: bytes, hip: Hip) -> None:
    at, form, message = DAMAGED[name]
    bits = 8 * struct.calcsize(form)
    # The upper bits, so that narrow fields are as large for their width.
    number = value >> 64 - bits if value >> 63 == 0 else value & (1 << bits) - 1
    changed = bytearray(image)
    struct.pack_into(form, changed, at(ELFFile(io.BytesIO(image))), number)
    with pytest.raises(HipError, match=message):
        load_at_the_end(hip, bytes(changed))


@pytest.mark.parametrize("by", [-1, 1, 8, 64, 4096])
@pytest.mark.parametrize("name", ["e_shoff", "p_offset", "p_vaddr", "sh_offset of .text"])
def test_a_field_that_is_off_by_a_little_is_refused(
    name: str, by: int, image: bytes, hip: Hip
) -> None:
    at, form, _ = DAMAGED[name]
    where = at(ELFFile(io.BytesIO(image)))
    (old,) = struct.unpack_from(form, image, where)
    changed = bytearray(image)
    struct.pack_into(form, changed, where, old + by)
    with pytest.raises(HipError, match="code object: has "):
        load_at_the_end(hip, bytes(changed))


def test_more_contents_than_memory_are_refused(image: bytes, hip: Hip) -> None:
    changed = bytearray(image)
    struct.pack_into("<Q", changed, segment_field("p_memsz")(ELFFile(io.BytesIO(image))), 4)
    with pytest.raises(HipError, match="has a segment with more contents than memory"):
        load_at_the_end(hip, bytes(changed))


@pytest.mark.parametrize("size", [3, 5, 63, 64, 1000, -64, -1])
def test_a_cut_code_object_is_refused(size: int, image: bytes, hip: Hip) -> None:
    with pytest.raises(HipError, match="code object: "):
        load_at_the_end(hip, image[:size])


def kernel_field(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    """Change a field of the first kernel."""
    return lambda metadata: metadata["amdhsa.kernels"][0].__setitem__(key, value)


def argument_field(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    """Change a field of the first argument of the first kernel."""
    return lambda metadata: metadata["amdhsa.kernels"][0][".args"][0].__setitem__(key, value)


SIZES = "differ in the sizes of its segments"
METADATA: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "argument that wraps in 32 bits": (argument_field(".offset", 0xFFFFFFF8), "leaves its segment"),
    "argument that is too large": (argument_field(".size", 0xFFFFFFF8), "leaves its segment"),
    "argument of 64 bits": (argument_field(".offset", 1 << 32), "takes more than 32 bits"),
    "buffer of 4 bytes": (argument_field(".size", 4), "has a buffer of 4 bytes"),
    "arguments of 4 GiB": (kernel_field(".kernarg_segment_size", 0xFFFFFFFF), SIZES),
    "scratch of 4 GiB": (kernel_field(".private_segment_fixed_size", 0xFFFFFFFF), SIZES),
    "other LDS": (kernel_field(".group_segment_fixed_size", 12), SIZES),
    "no lanes": (kernel_field(".wavefront_size", 0), "has waves of 0"),
    "waves of 32": (kernel_field(".wavefront_size", 32), "has waves of 32"),
    "waves of 2^31": (kernel_field(".wavefront_size", 1 << 31), "has waves of 2147483648"),
    "no name": (kernel_field(".name", ""), "has a kernel without a name"),
    "name that is no text": (kernel_field(".name", "a\udcffb"), r"whose name is no text: a\\xffb"),
    "control character": (kernel_field(".name", "a\nb"), r"whose name is no text: a\\x0ab"),
    "chip that is no text": (
        lambda metadata: metadata.update({"amdhsa.target": "amdgcn--gfx9\udcff"}),
        r"is for gfx9\\xff, the device is",
    ),
    "no descriptor": (kernel_field(".symbol", ""), "which is not in the ELF"),
    "other descriptor": (kernel_field(".symbol", "x.kd"), "names kernel descriptor x.kd"),
    "text for a number": (kernel_field(".vgpr_count", "8"), "where a number belongs"),
}


@pytest.mark.parametrize(("change", "message"), METADATA.values(), ids=METADATA)
def test_damaged_metadata_are_refused(
    change: Callable[[dict[str, Any]], None], message: str, image: bytes, hip: Hip
) -> None:
    with pytest.raises(HipError, match=message):
        load_at_the_end(hip, code_objects.with_metadata(image, change))


@pytest.mark.parametrize("opening", [b"\x91", b"\xdd\x00\x00\x00\x01", b"\x81\xa0"], ids=bytes.hex)
def test_values_in_values_take_no_stack(opening: bytes, image: bytes, hip: Hip) -> None:
    deep = code_objects.with_note(image, b"\x81\xa1x" + opening * 2_000_000)
    with pytest.raises(HipError, match="metadata ends too early"):
        load_at_the_end(hip, deep)


def test_what_the_metadata_hold_beside_is_skipped(
    image: bytes, hip: Hip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONV_COMPILER_PYTHON", sys.executable)
    beside = [None, True, -1, -70000, 2**40, 1.5, b"\0" * 300, "x" * 300, [{}] * 20, {"a": {1: []}}]
    changed = code_objects.with_metadata(image, lambda m: m.update({"amdhsa.printf": beside}))
    load_at_the_end(hip, changed)
