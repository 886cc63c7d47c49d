# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which decoder this interpreter has: `python -m conv_compiler.vgpu.identity` prints its digest.

A decoded program is kept under it, so that one written by other sources, or from other tables of
instructions, is never used.
"""

from __future__ import annotations

import functools
import hashlib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from conv_compiler import targets

_TABLES = ("renderer/amd", "runtime/autogen/amd")
_NOT_READ = ("str_pcode.py",)  # pseudocode of every instruction


def _sources() -> list[Path]:
    """The files that decide what an instruction is decoded to: the package's tables, ours, and the
    rows of the chips."""
    spec = find_spec("tinygrad")
    if spec is None or not spec.submodule_search_locations:
        raise ValueError("tinygrad is not installed; it has the instruction tables")
    tables = Path(spec.submodule_search_locations[0])
    found = [path for folder in _TABLES for path in sorted((tables / folder).rglob("*.py"))]
    found = [path for path in found if path.name not in _NOT_READ]
    rooms = Path(__file__).parent, Path(targets.__file__).parent
    return found + [path for room in rooms for path in sorted(room.glob("*.py"))]


@functools.cache
def decoder_identity() -> str:
    """SHA-256 over tinygrad's version, its tables and our sources, as 64 hexadecimal digits."""
    digest = hashlib.sha256(version("tinygrad").encode())
    for path in _sources():
        text = path.read_bytes()
        digest.update(f"\0{path.parent.name}/{path.name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


if __name__ == "__main__":
    print(decoder_identity())
