# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One decoded instruction word to the executor's records: which rule each encoding follows."""

from __future__ import annotations

from collections.abc import Callable

from conv_compiler.vgpu import lower_memory as memory
from conv_compiler.vgpu import lower_vector as vector
from conv_compiler.vgpu.fields import Fields
from conv_compiler.vgpu.formats import Family, Raw
from conv_compiler.vgpu.program import Record

# Encoding class prefixes in the order they are tried.
_RULES: tuple[tuple[str, Callable[[Fields], list[Record]]], ...] = (
    ("VOPD", vector.dual),
    ("VOP3P_MFMA", vector.matrix),
    ("VOP3PX2", vector.matrix),
    ("VOP", vector.vop_any),
    ("SOP", memory.sop),
    ("SMEM", memory.smem),
    ("MUBUF", memory.buffer),
    ("VBUFFER", memory.buffer),
    ("FLAT", memory.flat),
    ("GLOBAL", memory.flat),
    ("SCRATCH", memory.flat),
    ("VFLAT", memory.flat),
    ("VGLOBAL", memory.flat),
    ("VSCRATCH", memory.flat),
    ("DS", memory.ds),
)


def lower(raw: Raw, family: Family, offset: int, wave_dwords: int) -> list[Record]:
    """The records of one instruction. `wave_dwords`: dwords of a lane mask (1: wave32).

    Raises ValueError for encodings that have no place in the executor (images, exports).
    """
    kind = type(raw.inst).__name__
    for prefix, rule in _RULES:
        if kind.startswith(prefix):
            return rule(Fields(raw, family, offset, wave_dwords))
    raise ValueError(f"encoding {kind}")
