# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cycles and arithmetic of matrix instructions, from their mnemonics and the row of the chip."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from conv_compiler.errors import ModelRefused
from conv_compiler.targets import find_target
from conv_compiler.targets.mma import cycles_of

_SHAPE = re.compile(r"_(\d+)x(\d+)x(\d+)_?(?:(\d+)b_)?([a-z]\w*)$")


def is_matrix(name: str) -> bool:
    """Whether a mnemonic is a matrix instruction's."""
    return name.startswith(("v_mfma", "v_wmma"))


class MatrixWork(NamedTuple):
    """Cycles of a SIMD's matrix unit, and arithmetic operations, of one wave-instruction."""

    cycles: int
    flops: int


@lru_cache(maxsize=256)
def matrix_work(chip: str, name: str) -> MatrixWork:
    """What one matrix instruction takes and does.

    Raises ModelRefused for one that is in no table.
    """
    if match := _SHAPE.search(name):
        m, n, k, blocks = (int(part or 1) for part in match.groups()[:4])
        kind = match[5].removesuffix("_1k").replace("iu8", "i8").split("_")[0]
        if cycles := cycles_of(find_target(chip).cycles, kind, m, blocks):
            return MatrixWork(cycles, 2 * m * n * k * blocks)
    raise ModelRefused(f"instruction {name}: its cycles on {chip} are not in its row")
