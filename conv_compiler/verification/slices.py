# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands and results as slices of larger arrays, beside which nothing is to be touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.problem.slices import is_sliced, taken_shapes, within_of
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
    for number, (larger, own) in enumerate(taken_shapes(problem)):
        if larger != own:
            array = operands[number]
            found[number] = _unwritten(larger, array.dtype)
            found[number][tuple(map(slice, own))] = array
    return found


def _unwritten(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An array whose bytes are BESIDE."""
    found: Array = np.full((*shape, dtype.itemsize), BESIDE, np.uint8).view(dtype)[..., 0]
    return found


def memory_of(problem: ConvProblem) -> Array | None:
    """What a result that is a slice goes into; None for one that is none."""
    name = problem.tensors[-1]
    if not is_sliced(problem, name):
        return None
    return _unwritten(within_of(problem, name), problem.result_type.to_numpy())


def cut_out(problem: ConvProblem, given: Array) -> tuple[Array, int]:
    """The result in an array of `memory_of`, and how many elements beside it have changed."""
    corner = tuple(map(slice, problem.result_shape))
    bytes_of = np.ascontiguousarray(given).view(np.uint8).reshape(*given.shape, -1)
    changed = (bytes_of != BESIDE).any(-1)
    changed[corner] = False
    return np.ascontiguousarray(given[corner]), int(changed.sum())


def call_operands(problem: ConvProblem, data: str = "integers", seed: int = 0) -> list[Array]:
    """The operands of a call on `inputs`."""
    return in_larger_arrays(problem, inputs(problem, data, seed))
