# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of places in the code of a code object."""

from __future__ import annotations

import io
from collections.abc import Mapping

from conv_compiler.errors import InvalidArtifact

_CODE = ("STT_FUNC", "STT_NOTYPE")  # an assembler's label has no type unless it is given one
_TABLES = (".dynsym", ".symtab")


def code_symbols(elf: bytes) -> Mapping[str, int]:
    """Address of each name in `.text`; InvalidArtifact where the tables are damaged."""
    from elftools.elf.elffile import ELFFile

    from conv_compiler.binary.code_note import DAMAGE

    try:
        file = ELFFile(io.BytesIO(elf))
        return {
            symbol.name: symbol["st_value"]
            for table in map(file.get_section_by_name, _TABLES)
            for symbol in (table.iter_symbols() if table else ())
            if symbol["st_info"]["type"] in _CODE and _is_text(file, symbol["st_shndx"])
        }
    except DAMAGE as error:
        raise InvalidArtifact(
            f"code object: its symbols are damaged ({error}); compile it again"
        ) from error


def _is_text(file: object, index: object) -> bool:
    return isinstance(index, int) and file.get_section(index).name == ".text"  # type: ignore[attr-defined]
