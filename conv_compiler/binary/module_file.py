# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one door to a `.vmfb`: read once, checked, and only then looked into or handed to IREE.

A `.vmfb` is a zip archive of stored entries (IREE's writer), so what an entry holds is where the
file says and its CRC-32 tells an altered one. What lies outside the entries is held to the one form
that the writer has.
"""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from conv_compiler.errors import InvalidArtifact
from conv_compiler.targets.cpu_features import Needs, needs_of

# No module of ours is a hundredth of it.
MOST_BYTES = 2**30
# How the last record of an archive begins, and its size where no comment is behind it.
END, END_BYTES = b"PK\x05\x06", 22


@dataclass(frozen=True, kw_only=True)
class ModuleFile:
    """A whole `.vmfb`: its bytes, the device target and the chip that it names, and what its code
    needs of a CPU, if it is a CPU's."""

    path: Path
    data: bytes
    built_for: str
    chip: str
    needs: Needs | None

    @classmethod
    def read(cls, path: Path) -> ModuleFile:
        """The module of a file; InvalidArtifact where there is none, or it is damaged."""
        try:
            status = path.stat()
            if not S_ISREG(status.st_mode):
                raise InvalidArtifact(f"artifact {path}: not a file; name a .vmfb")
            if status.st_size > MOST_BYTES:
                raise InvalidArtifact(
                    f"artifact {path}: {status.st_size} bytes, over {MOST_BYTES}; "
                    "no compiled module is as large, name another"
                )
            data = path.read_bytes()
        except (OSError, ValueError) as error:  # ValueError: a name with a zero in it
            reason = getattr(error, "strerror", None) or str(error)
            missing = "no such file" if isinstance(error, FileNotFoundError) else reason
            raise InvalidArtifact(f"artifact {path}: {missing}; compile it first") from error
        return cls.of(path, data)

    @classmethod
    def of(cls, path: Path, data: bytes) -> ModuleFile:
        """The module of a file's bytes."""
        target = re.search(rb'#hal\.device\.target<"([\w-]+)"', data)
        why = damage(data) or ("" if target else "it names no device")
        if why or target is None:
            raise InvalidArtifact(
                f"artifact {path.name}: corrupt or not compiled code ({why}); compile it again"
            )
        chip = re.search(rb'(?:arch|target_triple) = "(\w+)', data)
        return cls(
            path=path,
            data=data,
            built_for=target[1].decode("ascii", "replace"),
            chip=(chip or target)[1].decode("ascii", "replace"),
            needs=needs_of(data),
        )


def damage(data: bytes) -> str:
    """What is wrong with the archive; empty where nothing is."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            packed = [one.filename for one in entries if one.compress_type != zipfile.ZIP_STORED]
            if packed:
                return f"{packed[0]} is compressed"
            if broken := archive.testzip():
                return f"{broken} is altered"
            # Python finds entries behind what was put in front of an archive, IREE does not.
            if not data[-END_BYTES:].startswith(END):
                return "bytes behind its end"
            if min((one.header_offset for one in entries), default=0):
                return "it has bytes in front"
    except Exception as error:  # a flipped bit can come out as any error of the reader
        return " ".join(str(error).split()) or type(error).__name__
    return "" if entries else "it is empty"
