# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record inside a `.vmfb`: one more file of the archive that iree-compile writes.

Such a module is a zip archive. The runtime reads its first file and looks at nothing behind it, so
a module with a record runs wherever one without does. The record is signed (`record.signed`) with
all that lies before it.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from conv_compiler.artifacts.record import read_record, signed
from conv_compiler.binary.module_file import ModuleFile
from conv_compiler.errors import InvalidArtifact
from conv_compiler.storage.outputs import Kind, write

NAME = "conv_compiler.json"
# Far beyond any record of ours.
MOST_BYTES = 2**24


def is_ours(path: Path) -> bool:
    """Whether a file is a module with a record."""
    try:
        with zipfile.ZipFile(path) as archive:
            return NAME in archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError):
        return False


VMFB = Kind(name="a .vmfb of conv-compiler", is_one=is_ours)


def save_with_record(path: Path, module: bytes, record: dict[str, Any]) -> None:
    """Write a module to `path` with its record, in place of one that it has; equal ones make equal
    files.

    Raises InvalidOutput where something else than a `.vmfb` of ours is there, and InvalidArtifact
    where the module is no archive.
    """

    def fill(file: Path) -> None:
        file.write_bytes(module)
        with zipfile.ZipFile(file, "a") as archive:
            if old := archive.NameToInfo.pop(NAME, None):
                archive.filelist.remove(old)
                archive.start_dir = old.header_offset
            text = json.dumps(signed(record, module[: archive.start_dir]), indent=1)
            # A date of its own would make equal modules differ.
            archive.writestr(zipfile.ZipInfo(NAME), text)

    try:
        write(path, VMFB, fill)
    except zipfile.BadZipFile as error:
        raise InvalidArtifact(
            f"artifact {path}: its module is not what iree-compile writes ({error}); "
            "compile it again"
        ) from error


def has_record(module: ModuleFile) -> bool:
    """Whether a `.vmfb` holds a record of ours, whole or damaged; other compilers' hold none."""
    with zipfile.ZipFile(io.BytesIO(module.data)) as archive:
        return NAME in archive.NameToInfo


def record_of(module: ModuleFile) -> dict[str, Any]:
    """What the record of a `.vmfb` of ours states, by the types of `record.Record`.

    Raises InvalidArtifact where there is no record, where it is damaged, and where the module is
    not the one that it was written for.
    """
    data = module.data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:  # of entries that are whole
        place = archive.NameToInfo.get(NAME)
        text = archive.read(place) if place and place.file_size <= MOST_BYTES else b""
    if place is None or not text:
        raise InvalidArtifact("holds no record of ours; compile it with `conv-compiler compile -o`")
    return read_record(text, data[: place.header_offset])
