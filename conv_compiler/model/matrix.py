# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cycles and arithmetic of matrix instructions, from their mnemonics and the row of the chip."""

from __future__ import annotations

import re
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from conv_compiler.errors import ModelRefused
from conv_compiler.targets import find_target
from conv_compiler.targets.mma import F6F4, cycles_of

_SHAPE = re.compile(r"_(\d+)x(\d+)x(\d+)(_?)(?:(\d+)b_)?([a-z]\w*)$")
# Mnemonics up to gfx90a have no separator in front of the type, and do not say how many blocks
# there are. A wave of 64 lanes holds all of A, so many elements of it a lane (the tables of
# registers of the CDNA2 ISA document, chapter 7).
_A_ELEMENTS = MappingProxyType({"f16": 4, "bf16": 2, "bf16_1k": 4, "i8": 4, "f32": 1, "f64": 1})
_LANES = 64
_FIRST_HALF = "v_mfma_ld_scale_b32"


def is_matrix(name: str) -> bool:
    """Whether a mnemonic is a matrix instruction's; the first half of one that takes scales is
    told apart, and only hands these on."""
    return name.startswith(("v_mfma", "v_wmma")) and name != _FIRST_HALF


def operand_type(name: str) -> str:
    """A's type in a matrix instruction's mnemonic; "f8" for any of eight bits or fewer."""
    match = _SHAPE.search(name)
    kind = _kind(match[6]) if match else ""
    return "f8" if kind.startswith(("fp8", "bf8", "f8")) else kind


def _kind(types: str) -> str:
    return types.removesuffix("_1k").replace("iu8", "i8").split("_")[0]


class MatrixWork(NamedTuple):
    """Cycles of a SIMD's matrix unit, and arithmetic operations, of one wave-instruction."""

    cycles: int
    flops: int


@lru_cache(maxsize=256)
def matrix_work(chip: str, name: str, is_short: bool = False) -> MatrixWork:
    """What one matrix instruction takes and does; `is_short` tells of one whose fields name the
    types of its operands that both have 4 or 6 bits.

    Raises ModelRefused for one that is in no table.
    """
    if match := _SHAPE.search(name):
        m, n, k = (int(part) for part in match.groups()[:3])
        kind, blocks = F6F4 if is_short else _kind(match[6]), int(match[5] or 1)
        if not match[4]:
            blocks = max(1, _LANES * _A_ELEMENTS.get(match[6], 0) // (m * k))
        if cycles := cycles_of(find_target(chip).cycles, kind, m, blocks):
            return MatrixWork(cycles, 2 * m * n * k * blocks)
    raise ModelRefused(f"instruction {name}: its cycles on {chip} are not in its row")
