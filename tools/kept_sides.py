# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `model_bench.py` modelled of modules, kept a line of JSON each, so that a run goes on.

A side hangs on the module's bytes, on the source of its counts, and on the files that model and
virtual GPU consist of. A line of other bytes or other files is never used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import conv_compiler

# The rooms that turn machine code into seconds, and the room of what a look counts with.
ROOMS = ("model", "vgpu", "targets", "binary")
SUFFIXES = (".py", ".cpp", ".hpp", ".h", ".inc", ".def")


def model_files(root: Path) -> Iterator[Path]:
    """The files of these rooms below the package's folder."""
    for room in ROOMS:
        yield from (one for one in (root / room).rglob("*") if one.suffix in SUFFIXES)


@lru_cache(maxsize=1)
def model_digest() -> str:
    """SHA-256 over the text of the rooms that model a module."""
    root = Path(conv_compiler.__file__).parent
    digest = hashlib.sha256()
    for one in sorted(model_files(root)):
        digest.update(str(one.relative_to(root)).encode() + b"\0" + one.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class KeptSides:
    """The sides of a file, by module and counts; without a file nothing is kept.

    What took too long to model is kept as an error, so that a run that goes on does not wait again.
    """

    path: Path | None = None
    known: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path | None) -> KeptSides:
        """What a file has; a last line that a stop cut short is left out."""
        known = {}
        text = path.read_text() if path and path.exists() else ""
        for line in text.splitlines():
            with suppress(ValueError):
                one = json.loads(line)
                known[one["key"]] = one
        if path and text and not text.endswith("\n"):
            with path.open("a") as file:
                file.write("\n")
        return cls(path, known)

    def side(self, vmfb: Path, counts: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The side of a module: what is kept, else what `make` returns.

        Raises TimeoutError where `make` does, and where a run before it did.
        """
        parts = [hashlib.sha256(vmfb.read_bytes()).hexdigest(), counts, model_digest()]
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        if key not in self.known:
            try:
                self._keep({"key": key, "values": make()})
            except TimeoutError as late:
                self._keep({"key": key, "error": str(late)})
        found = self.known[key]
        if "error" in found:
            raise TimeoutError(found["error"])
        return dict(found["values"])

    def apart(self) -> KeptSides:
        """The same sides without the file, for another process."""
        return KeptSides(known=dict(self.known))

    def take(self, found: KeptSides) -> None:
        """Keep what another process found."""
        for key in found.known.keys() - self.known.keys():
            self._keep(found.known[key])

    def _keep(self, line: dict[str, Any]) -> None:
        self.known[line["key"]] = line
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps(line) + "\n")
