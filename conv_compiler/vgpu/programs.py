# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoded programs on disk: `<cache>/vgpu/<digest of the code object>-<chip>-<decoder>.prog`.

An entry is what `sealed` makes. The native library reads it (`native/decode_cache.cpp`): one with
a byte changed, of another decoder, code object or chip is decoded anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from conv_compiler.vgpu.identity import decoder_identity

MAGIC = b"VGPUENT1"
CHIP_BYTES = 16
LIMIT_BYTES = 512 * 1024**2
_ABANDONED_SECONDS = 3600  # no decoder takes so long: what it left is nobody's


def sealed(elf: bytes, chip: str, program: bytes) -> bytes:
    """An entry: the checksum of all behind it, decoder, code object, chip and program."""
    body = decoder_identity().encode() + hashlib.sha256(elf).hexdigest().encode()
    body += chip.encode().ljust(CHIP_BYTES, b"\0") + program
    return MAGIC + hashlib.sha256(body).hexdigest().encode() + body


@dataclass(frozen=True)
class Programs:
    """The folder of decoded programs, kept below `limit_bytes` as `cache.Cache` is."""

    folder: Path
    limit_bytes: int = LIMIT_BYTES

    @classmethod
    def default(cls) -> Programs:
        """Those of the user's cache."""
        from conv_compiler.storage.cache import Cache

        return cls(Cache.default().folder / "vgpu")

    def path(self, elf: bytes, chip: str) -> Path:
        """Where the program of a code object is, or would be."""
        digest, decoder = hashlib.sha256(elf).hexdigest(), decoder_identity()
        # Half of the decoder's digest: `native/decode_cache.cpp` says why.
        return self.folder / f"{digest}-{chip}-{decoder[: len(decoder) // 2]}.prog"

    def entries(self) -> list[tuple[Path, int, float]]:
        """(file, bytes, time of last use) of every program, latest first."""
        found = []
        for path in self.folder.glob("*.prog"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((path, status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: -entry[2])

    def rows(self) -> list[dict[str, Any]]:
        """One row a program for `conv-compiler cache --json`."""
        return [
            {
                "program": str(path),
                "target": "-".join(path.stem.split("-")[1:2]),
                "bytes": size,
                "used": datetime.fromtimestamp(used).isoformat(sep=" ", timespec="seconds"),
            }
            for path, size, used in self.entries()
        ]

    def text(self) -> str:
        """Count and size on one line."""
        sizes = [size for _, size, _ in self.entries()]
        return (
            f"{len(sizes)} decoded programs of the virtual GPU, {sum(sizes)} bytes of at most "
            f"{self.limit_bytes}, in {self.folder}"
        )

    def put(self, path: Path, entry: bytes) -> None:
        """Write an entry whole or not at all, readable by whom the folder lets in."""
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix="tmp-", delete=False) as file:
            try:
                file.write(entry)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
        self.trim(keep=path)

    def trim(self, keep: Path | None = None) -> None:
        """Drop the longest unused programs but `keep`, and what killed decoders left."""
        total = 0
        for path, size, _ in self.entries():
            total += size
            if total > self.limit_bytes and path != keep:
                _drop(path)
        for path in self.folder.glob("tmp-*"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                    _drop(path)

    def clear(self) -> int:
        """Drop everything; returns how many programs there were."""
        count = len(self.entries())
        for pattern in ("*.prog", "tmp-*"):
            for path in self.folder.glob(pattern):
                _drop(path)
        return count


def _drop(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
