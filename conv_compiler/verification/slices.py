# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands as slices of larger arrays, beside which nothing is to be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.verification.inputs import inputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.problem.conv_problem import ConvProblem

    Array = NDArray[Any]

# Every byte of what is not to be read: NaN as any float, and -1 as an integer.
BESIDE = 0xFF


def in_larger_arrays(problem: ConvProblem, operands: Sequence[Array]) -> list[Array]:
    """The operands of a call, each slice in the corner of an array of the larger shape."""
    found = list(operands)
    for number, name in enumerate(problem.tensors[:-1]):
        if within := getattr(problem, f"{name}_within"):
            array = operands[number]
            bytes_of = np.full((*within, array.itemsize), BESIDE, np.uint8)
            found[number] = larger = bytes_of.view(array.dtype)[..., 0]
            larger[tuple(map(slice, array.shape))] = array
    return found


def call_operands(problem: ConvProblem, data: str = "integers", seed: int = 0) -> list[Array]:
    """The operands of a call on `inputs`."""
    return in_larger_arrays(problem, inputs(problem, data, seed))
