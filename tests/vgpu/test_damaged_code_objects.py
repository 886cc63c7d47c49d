"""Code objects with damaged sizes and offsets are refused, and the process survives."""

import io
import struct
from collections.abc import Callable

import code_objects
import pytest
from bare_kernels import CHIP, Hip, HipError
from elftools.elf.elffile import ELFFile
from programs import BY_NAME
from running import CompileFor

PROGRAM = BY_NAME["multiply_add_f32"]
SECTION_HEADER_BYTES, SYMBOL_BYTES = 64, 24
LARGE = (0x7FFFFFFF, 0xFFFFFFF0, 0xFFFFFFFF)


def note_field(elf: ELFFile, field: int) -> int:
    """Offset of a field of the note's header: 0 is n_namesz, 1 n_descsz."""
    return elf.get_section_by_name(".note")["sh_offset"] + 4 * field


def section_name(elf: ELFFile) -> int:
    """Offset of the name of the first section after the empty one."""
    return elf["e_shoff"] + SECTION_HEADER_BYTES


def symbol_name(elf: ELFFile) -> int:
    """Offset of the name of the first symbol after the empty one."""
    return elf.get_section_by_name(".dynsym")["sh_offset"] + SYMBOL_BYTES


DAMAGED: dict[str, tuple[Callable[[ELFFile], int], str]] = {
    "note name": (lambda elf: note_field(elf, 0), "has a note that leaves its section"),
    "note contents": (lambda elf: note_field(elf, 1), "has a note that leaves its section"),
    "section name": (section_name, "has a name that leaves its string table"),
    "symbol name": (symbol_name, "has a name that leaves its string table"),
}


@pytest.mark.parametrize("value", LARGE, ids=hex)
@pytest.mark.parametrize(("field", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_size_is_refused(
    field: Callable[[ELFFile], int], message: str, value: int, compile_for: CompileFor
) -> None:
    vmfb = compile_for(PROGRAM.mlir, CHIP, *PROGRAM.flags)
    image = bytearray(vmfb[code_objects.find(vmfb).start :])
    struct.pack_into("<I", image, field(ELFFile(io.BytesIO(image))), value)
    hip = Hip()
    with pytest.raises(HipError, match=message):
        hip.load(bytes(image))
    hip.close()
