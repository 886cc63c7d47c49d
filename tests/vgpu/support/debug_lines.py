"""A line table put into a code object, encoded here by the DWARF 4 and 5 standards (6.2: line number programs)."""

import struct
from collections.abc import Sequence
from itertools import pairwise

# (bytes behind the first instruction, file as a number from 0 on, line, column); line 0 is code without a source.
Row = tuple[int, int, int, int]

COPY, ADVANCE_PC, ADVANCE_LINE, SET_FILE, SET_COLUMN = 1, 2, 3, 4, 5
_OPERANDS = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])  # of the standard opcodes 1 to 12
_SHT_PROGBITS = 1


def unsigned(value: int) -> bytes:
    """LEB128."""
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def signed(value: int) -> bytes:
    """Signed LEB128."""
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        is_last = value == (-1 if low & 0x40 else 0)
        out.append(low | (0 if is_last else 0x80))
        if is_last:
            return bytes(out)


def _program(base: int, rows: Sequence[Row], end: int, first_file: int) -> bytes:
    """The opcodes; `end` is the number of bytes that the rows are of."""
    out = b"\0" + unsigned(9) + b"\2" + struct.pack("<Q", base)  # extended: set address
    before = (0, 1 - first_file, 1, 0)
    for row in rows:
        at, file, line, column = row
        out += bytes([ADVANCE_PC]) + unsigned((at - before[0]) // 4)
        out += bytes([SET_FILE]) + unsigned(file + first_file)
        out += bytes([ADVANCE_LINE]) + signed(line - before[2])
        out += bytes([SET_COLUMN]) + unsigned(column) + bytes([COPY])
        before = row
    out += bytes([ADVANCE_PC]) + unsigned((end - before[0]) // 4)
    return out + b"\0\1\1"  # extended: end of sequence


def _line_section(version: int, folder: str, files: Sequence[str], program: bytes) -> bytes:
    """A unit's table; instructions are of 4 bytes, no special opcode is used."""
    tuning = struct.pack("<BBBbBB", 4, 1, 1, -5, 14, 13) + _OPERANDS
    if version == 5:
        tables = b"\1\1\x08" + unsigned(1) + folder.encode() + b"\0"  # path as a string
        tables += b"\2\1\x08\2\x0b" + unsigned(len(files))  # path, folder as one byte
        tables += b"".join(name.encode() + b"\0\0" for name in files)
        address = struct.pack("<BB", 8, 0)
    else:
        tables = b"\0" + b"".join(name.encode() + b"\0\0\0\0" for name in files) + b"\0"
        address = b""
    header = tuning + tables
    body = struct.pack("<H", version) + address + struct.pack("<I", len(header)) + header + program
    return struct.pack("<I", len(body)) + body


def _unit(version: int, folder: str) -> tuple[bytes, bytes]:
    """A unit that names its folder and line table, and the form of that."""
    # Tag compile_unit without children: DW_AT_stmt_list as an offset, DW_AT_comp_dir as a string.
    form = b"\1\x11\0\x10\x17\x1b\x08\0\0\0"
    values = unsigned(1) + struct.pack("<I", 0) + folder.encode() + b"\0"
    head = struct.pack("<BBI", 1, 8, 0) if version == 5 else struct.pack("<IB", 0, 8)
    body = struct.pack("<H", version) + head + values
    return struct.pack("<I", len(body)) + body, form


def with_lines(
    elf: bytes,
    version: int,
    folder: str,
    files: Sequence[str],
    base: int,
    rows: Sequence[Row],
    end: int,
) -> bytes:
    """The code object with a line table of DWARF `version` for the `end` bytes of code from `base` on."""
    assert all(a[0] < b[0] for a, b in pairwise(rows))
    program = _program(base, rows, end, 0 if version == 5 else 1)
    info, abbreviations = _unit(version, folder)
    return with_sections(
        elf,
        {
            ".debug_line": _line_section(version, folder, files, program),
            ".debug_info": info,
            ".debug_abbrev": abbreviations,
        },
    )


def with_sections(elf: bytes, sections: dict[str, bytes]) -> bytes:
    """The code object with sections that nothing loads; the headers stay its end."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = bytearray(elf[table : table + size * count])
    at, length = struct.unpack_from("<QQ", headers, size * names + 24)
    strings = bytearray(elf[at : at + length])
    out = bytearray(elf[:table])
    for name, data in sections.items():
        header = struct.pack("<IIQQQQ", len(strings), _SHT_PROGBITS, 0, 0, len(out), len(data))
        headers += header + struct.pack("<IIQQ", 0, 0, 1, 0)
        strings += name.encode() + b"\0"
        out += data
    struct.pack_into("<QQ", headers, size * names + 24, len(out), len(strings))
    out += strings
    struct.pack_into("<Q", out, 40, len(out))
    struct.pack_into("<H", out, 60, count + len(sections))
    return bytes(out + headers)
