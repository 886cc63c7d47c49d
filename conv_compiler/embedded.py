"""The record inside a `.vmfb`: one more file of the archive that iree-compile writes.

Such a module is a zip archive whose first file is what the runtime reads; it looks at nothing
behind it, so that a module with a record runs wherever one without does. The record has the
checksum of all that lies before it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

from conv_compiler.errors import InvalidArtifact
from conv_compiler.outputs import Kind, write

NAME = "conv_compiler.json"
# Far beyond any record of ours.
MOST_BYTES = 2**24
# How the last record of an archive begins, and its size where no comment is behind it.
END, END_BYTES = b"PK\x05\x06", 22


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
            signed = {**record, "sha256": _checksum(module[: archive.start_dir])}
            # A date of its own would make equal modules differ.
            archive.writestr(zipfile.ZipInfo(NAME), json.dumps(signed, indent=1))

    try:
        write(path, VMFB, fill)
    except zipfile.BadZipFile as error:
        raise InvalidArtifact(
            f"artifact {path}: its module is not what iree-compile writes ({error}); "
            "compile it again"
        ) from error


def read_record(path: Path) -> Any:
    """What the record of a `.vmfb` of ours states, whatever that is.

    Raises InvalidArtifact for a file that is not there, has no record or a damaged one, and where
    the module is not the one that the record was written for.
    """
    if not os.path.isfile(path):
        raise InvalidArtifact(f"artifact {path}: no such file; compile it first")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidArtifact(
            f"artifact {path}: {error.strerror or error}; see that it may be read"
        ) from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if not data[-END_BYTES:].startswith(END):
                raise zipfile.BadZipFile("bytes behind its end")
            place = archive.NameToInfo.get(NAME)
            text = archive.read(place) if place and place.file_size <= MOST_BYTES else b""
        record = json.loads(text) if text else None
    except Exception as error:  # a flipped bit can come out as any error of the reader
        raise InvalidArtifact(
            f"artifact {path}: corrupt or not compiled code ({error}); compile it again"
        ) from error
    if place is None or not isinstance(record, dict):
        raise InvalidArtifact(
            f"artifact {path}: holds no record of ours; compile it with `conv-compiler compile -o`"
        )
    if record.pop("sha256", None) != _checksum(data[: place.header_offset]):
        raise InvalidArtifact(
            f"artifact {path}: not the module that its record was written for; compile it again"
        )
    return record


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
