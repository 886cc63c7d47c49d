"""Cycles and arithmetic of matrix instructions, from their mnemonics.

Cycles are those of ROCm/amd_matrix_instruction_calculator (commit 2ef9189: gfx90a, gfx942, gfx1100,
gfx1201); gfx950's are those that give the published peaks (LLVM: `SIDPGFX950FullSpeedModel`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from conv_compiler.errors import ModelRefused

_SHAPE = re.compile(r"_(\d+)x(\d+)x(\d+)_?(?:(\d+)b_)?([a-z]\w*)$")

# By operand type: cycles of (m, blocks). Instructions with several blocks are as fast everywhere.
_BLOCKS = {(4, 16): 8, (16, 4): 32, (32, 2): 64}
_SLOW = {(16, 1): 32, (32, 1): 64, **_BLOCKS}
_FAST = {(16, 1): 16, (32, 1): 32, **_BLOCKS}
_F64 = {(16, 1): 32, (4, 4): 16}
_WMMA_32, _WMMA_16, _WMMA_8 = {(16, 1): 32}, {(16, 1): 16}, {(16, 1): 8}
_NARROW = ("f16", "bf16", "i8", "fp8", "bf8")

CYCLES: Mapping[str, Mapping[str, Mapping[tuple[int, int], int]]] = MappingProxyType(
    {
        "gfx90a": {**dict.fromkeys(("f16", "bf16", "i8", "f32"), _SLOW), "f64": _F64},
        "gfx942": {**dict.fromkeys(_NARROW, _FAST), "f32": _SLOW, "f64": _F64},
        "gfx950": {**dict.fromkeys(_NARROW, _FAST), "f32": _SLOW, "f64": _F64},
        "gfx1100": dict.fromkeys(("f16", "bf16", "i8"), _WMMA_32),
        # i8 and fp8 at twice the rate of f16, as the published peaks say.
        "gfx1201": {
            **dict.fromkeys(("f16", "bf16"), _WMMA_16),
            **dict.fromkeys(("i8", "fp8", "bf8"), _WMMA_8),
        },
    }
)


def is_matrix(name: str) -> bool:
    """Whether a mnemonic is a matrix instruction's."""
    return name.startswith(("v_mfma", "v_wmma"))


class MatrixWork(NamedTuple):
    """Cycles of a SIMD's matrix unit, and arithmetic operations, of one wave-instruction."""

    cycles: int
    flops: int


def matrix_work(chip: str, name: str) -> MatrixWork:
    """What one matrix instruction takes and does.

    Raises ModelRefused for one that is in no table.
    """
    if match := _SHAPE.search(name):
        m, n, k, blocks = (int(part or 1) for part in match.groups()[:4])
        kind = match[5].removesuffix("_1k").replace("iu8", "i8").split("_")[0]
        if cycles := CYCLES[chip].get(kind, {}).get((m, blocks)):
            return MatrixWork(cycles, 2 * m * n * k * blocks)
    raise ModelRefused(f"instruction {name}: its cycles on {chip} are in no table of the model")
