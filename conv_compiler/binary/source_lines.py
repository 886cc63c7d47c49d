# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which line of a source an instruction comes from: the DWARF line tables of a code object.

Compilers write them when asked: Triton does by itself, clang and assemblers with `-g`, IREE with
`--iree-rocm-emit-debug-info`.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from conv_compiler.errors import InvalidArtifact

# Since this version of DWARF files and folders are numbered from 0, and folder 0 is the unit's.
_FROM_ZERO = 5


class Place(NamedTuple):
    """A line of a source file, from 1; `column` is 0 where the table has none."""

    file: str
    line: int
    column: int

    @property
    def text(self) -> str:
        """As in `softmax.py:17`, without the folder."""
        return f"{PurePosixPath(self.file).name}:{self.line}"

    def described(self) -> str:
        """The place, and what is written there where that may be read."""
        line = self.quoted()
        return f"{self.text}: {line}" if line else self.text

    def quoted(self) -> str:
        """The line itself without its indent; empty where the file is shorter or cannot be read.

        Only files below the working directory are read: a code object of somebody else's must not
        say which file a log quotes.
        """
        path = Path(self.file)
        try:
            if not (path.resolve().is_relative_to(Path.cwd()) and path.is_file()):
                return ""
            with path.open(errors="replace") as file:
                return next(islice(file, self.line - 1, None), "").strip()
        except (OSError, ValueError):
            return ""


class _Row(NamedTuple):
    """From an address on; None is code that no source is known of."""

    address: int
    place: Place | None


@dataclass(frozen=True)
class SourceLines:
    """The line table of a code object, by address; empty where it has none."""

    rows: Sequence[_Row] = ()

    def __bool__(self) -> bool:
        return bool(self.rows)

    def at(self, address: int) -> Place | None:
        """Where the instruction at an address comes from."""
        index = bisect_right(self.rows, address, key=lambda row: row.address)
        return self.rows[index - 1].place if index else None

    def addresses(self, file: str, line: int) -> tuple[int, ...]:
        """Where the code of a line begins, each time; `file` is a path or its last parts, or empty
        for the only file."""
        if not file and len(self.files) > 1:
            raise InvalidArtifact(
                f"line {line}: the code is of {', '.join(self.files)}; write FILE:{line}"
            )
        found = []
        for before, row in zip((None, *self.rows), self.rows, strict=False):
            here = row.place
            if here is None or here.line != line or not _ends_in(here.file, file):
                continue
            earlier = before.place if before else None
            if earlier is None or (earlier.file, earlier.line) != (here.file, line):
                found.append(row.address)
        return tuple(found)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that code comes from."""
        return tuple(dict.fromkeys(row.place.file for row in self.rows if row.place))


def source_lines(elf: bytes) -> SourceLines:
    """The line table of a code object; InvalidArtifact where it is damaged."""
    from conv_compiler.binary.code_note import DAMAGE

    try:
        rows = sorted(_rows(elf), key=lambda row: row.address)
    except (*DAMAGE, RecursionError) as error:
        raise InvalidArtifact(
            f"code object: its debug information is damaged ({error}); compile it again, or strip "
            "it"
        ) from error
    # Of several rows of an address the last one holds.
    return SourceLines(tuple({row.address: row for row in rows}.values()))


def _rows(elf: bytes) -> Iterator[_Row]:
    from elftools.elf.elffile import ELFFile

    file = ELFFile(io.BytesIO(elf))
    if file.get_section_by_name(".debug_line") is None or not file.has_dwarf_info():
        return
    dwarf = file.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        folder = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        paths = _paths(program, folder.value.decode(errors="replace") if folder else "")
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            named = state.line > 0 and not state.end_sequence and state.file in paths
            place = Place(paths[state.file], state.line, state.column) if named else None
            yield _Row(state.address, place)


def _paths(program: Any, folder: str) -> dict[int, str]:
    """The files of a unit's line table by number."""
    header = program.header
    first = 0 if header.version >= _FROM_ZERO else 1
    folders = [name.decode(errors="replace") for name in header.include_directory]
    if first:
        folders = [folder, *folders]
    found = {}
    for number, entry in enumerate(header.file_entry, first):
        base = folders[entry.dir_index] if entry.dir_index < len(folders) else ""
        path = PurePosixPath(folder, base, entry.name.decode(errors="replace"))
        found[number] = path.as_posix()
    return found


def _ends_in(path: str, wanted: str) -> bool:
    """Whether `wanted` are a path's last parts."""
    parts = PurePosixPath(wanted).parts
    return not parts or PurePosixPath(path).parts[-len(parts) :] == parts
