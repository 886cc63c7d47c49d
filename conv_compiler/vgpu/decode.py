# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decode the machine code of a code object once: `python -m conv_compiler.vgpu.decode CHIP IN OUT`.

IN is an ELF for `CHIP`, OUT an entry of `conv_compiler.vgpu.programs`, written whole or not at all.
Words that no encoding fits become records named `?`; they stop a kernel that reaches them, not the
decoding, because code sections also hold padding and data.
"""

from __future__ import annotations

import dataclasses
import struct
import sys
from pathlib import Path

from conv_compiler.errors import UnsupportedTarget
from conv_compiler.targets import executed_isa
from conv_compiler.vgpu import disasm, formats, program
from conv_compiler.vgpu.fields import clean_name
from conv_compiler.vgpu.index_mode import with_index_mode
from conv_compiler.vgpu.lower import lower
from conv_compiler.vgpu.program import Program, Record
from conv_compiler.vgpu.programs import Programs, sealed

_SHT_PROGBITS = 1


def text_section(elf: bytes) -> tuple[int, bytes]:
    """Address and bytes of .text. Raises ValueError when `elf` has none."""
    if elf[:5] != b"\x7fELF\x02":
        raise ValueError("not a 64-bit ELF")
    try:
        (table,) = struct.unpack_from("<Q", elf, 40)
        count, names_index = struct.unpack_from("<HH", elf, 60)
        headers = [struct.unpack_from("<IIQQQQ", elf, table + 64 * i) for i in range(count)]
        names = headers[names_index][4]
    except (struct.error, OverflowError, IndexError) as error:
        raise ValueError(f"section headers outside the file ({error})") from error
    for name, kind, _, address, offset, size in headers:
        if kind == _SHT_PROGBITS and elf[names + name :].startswith(b".text\0"):
            if offset + size > len(elf):
                raise ValueError("a .text that ends outside the file")
            return address, elf[offset : offset + size]
    raise ValueError("no .text section")


def decode_text(chip: str, base: int, code: bytes, *, wave_size: int) -> Program:
    """Decode every word of `code`, which is loaded at `base`."""
    family = formats.family_of(chip)
    out = Program(base)
    seen: dict[bytes, tuple[Record, ...]] = {}
    offset = 0
    while offset + 4 <= len(code):
        window = code[offset : offset + 16]
        key = window
        if key not in seen:
            seen[key] = _decode_one(window, chip, family, wave_size)
        records = seen[key]
        out.records += [dataclasses.replace(r, offset=offset) for r in records]
        offset += records[0].size
    out.records = with_index_mode(out.records)
    return out


def _decode_one(
    window: bytes, chip: str, family: formats.Family, wave_size: int
) -> tuple[Record, ...]:
    try:
        raw = formats.decode(window, chip)
        records = lower(raw, family, 0, wave_size // 32)
    except ValueError as error:
        word = int.from_bytes(window[:4], "little")
        return (
            Record(
                offset=0,
                name="?",
                size=4,
                text=f".long {word:#010x} ({error})",
                flags=program.UNDECODABLE,
            ),
        )
    mnemonics = _mnemonics(raw, records)
    line = " :: ".join(disasm.text(r, m) for r, m in zip(records, mnemonics, strict=False))
    return tuple(dataclasses.replace(r, text=line) for r in records)


def _mnemonics(raw: formats.Raw, records: list[Record]) -> list[str]:
    """The names to print: as encoded, not the executor's canonical ones."""
    if raw.renamed:
        return [raw.renamed.name]
    if hasattr(raw.inst, "opx"):
        return [f"v_dual_{r.name[2:]}" for r in records if r.part < 2]
    if len(records) > 1:
        return [r.name for r in records]
    return [clean_name(raw.inst.op.name)]


def wave_size_of(elf: bytes, chip: str) -> int:
    """Lanes of a wave: 64 on gfx9; on RDNA from the first kernel descriptor's wave32 bit."""
    if executed_isa(chip).generation == 9:
        return 64
    # .wavefront_size in the metadata note is a one-byte msgpack integer behind its key.
    key = b".wavefront_size"
    at = elf.find(key)
    return elf[at + len(key)] if at >= 0 else 32


def entry_of(elf: bytes, chip: str) -> bytes:
    """The entry of a code object's program. Raises ValueError where `elf` is none."""
    base, code = text_section(elf)
    program = decode_text(chip, base, code, wave_size=wave_size_of(elf, chip))
    return sealed(elf, chip, program.to_bytes())


def main(argv: list[str]) -> int:
    """Command line; the only place that touches files."""
    if len(argv) != 3:
        print("usage: python -m conv_compiler.vgpu.decode CHIP IN.hsaco OUT.prog", file=sys.stderr)
        return 2
    chip, source, target = argv[0], Path(argv[1]), Path(argv[2])
    try:
        entry = entry_of(source.read_bytes(), chip)
        target.parent.mkdir(parents=True, exist_ok=True)
        Programs(target.parent).put(target, entry)
    except (OSError, ValueError, UnsupportedTarget) as error:
        print(f"{source}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
