# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The disassembly of a code object, as the decoder writes it."""

from __future__ import annotations

from typing import NamedTuple

from conv_compiler.errors import InvalidArtifact


class Line(NamedTuple):
    """An instruction: its address in the code object, and its text."""

    address: int
    text: str


def listing(elf: bytes, chip: str) -> tuple[Line, ...]:
    """Every instruction of `.text`, padding included."""
    from conv_compiler.vgpu.decode import decode_text, text_section, wave_size_of

    try:
        base, code = text_section(elf)
    except ValueError as error:
        raise InvalidArtifact(f"code object: {error}; compile it again") from error
    program = decode_text(chip, base, code, wave_size=wave_size_of(elf, chip))
    return tuple(Line(base + one.offset, one.text) for one in program.records if not one.part)
