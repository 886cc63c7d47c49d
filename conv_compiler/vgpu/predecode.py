# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decode the code objects of a module in this process, before the library starts one for it.

A process of its own takes most of its time to start. The library finds the entry that is left here
and checks it as any other; what cannot be decoded or kept is left for it to refuse.
"""

from __future__ import annotations

import contextlib

from conv_compiler.errors import CacheRefused
from conv_compiler.storage.private_folder import make_private_folder


def predecode(objects: tuple[bytes, ...], chip: str) -> None:
    """Keep the decoded programs of a chip's code objects, each where it is not kept already."""
    from conv_compiler.vgpu.decode import entry_of
    from conv_compiler.vgpu.programs import Programs

    programs = Programs.default()
    with contextlib.suppress(CacheRefused, OSError, ValueError, IndexError):
        for folder in (programs.folder.parent, programs.folder):
            make_private_folder(folder)
        for elf in objects:
            path = programs.path(elf, chip)
            if not path.exists():
                programs.put(path, entry_of(elf, chip))
