# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands among the integers of `special` data, and where."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.problem.block_scales import NAN_CODE
from conv_compiler.verification.block_scales import held, unpacked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.problem.conv_problem import ConvProblem

    Array = NDArray[Any]

# What stands in an operand of `special` data: not a number, an infinity, and the largest power of
# two, whose products may be none of the result's numbers. Packed types have the last one alone.
SPECIAL = ("nan", "infinity", "large")


def specials_of(problem: ConvProblem) -> tuple[str, ...]:
    """Those of SPECIAL that the data of a problem has."""
    return SPECIAL[-1:] if problem.data_type.is_packed else SPECIAL


def put_special(
    problem: ConvProblem, operands: tuple[Array, ...], trial: int, rng: np.random.Generator
) -> tuple[Array, ...]:
    """Operands with the value of a trial at a drawn place of one of them, and a NaN in d.

    A place is at the edge of an axis as often as not, where pads and the ends of tiles are.
    """
    if problem.data_type.is_integer:
        return operands
    import ml_dtypes

    def placed(array: Array, number: float) -> Array:
        if not array.size:  # of an empty batch
            return array
        at = tuple(int(rng.choice([0, size - 1, rng.integers(size)])) for size in array.shape)
        array = array.copy()
        array[at] = number
        return array

    which, kind = trial % 2, trial // 2
    specials = specials_of(problem)
    if kind == len(specials):  # a scale that is none
        at = len(problem.operand_shapes) + which
        return (*operands[:at], placed(operands[at], NAN_CODE), *operands[at + 1 :])
    value = specials[kind]
    numbers = {"nan": math.nan, "infinity": math.inf}
    if value in numbers:
        number = numbers[value]
    else:
        largest = ml_dtypes.finfo(problem.data_type.to_numpy()).max
        number = 2.0 ** (math.frexp(float(largest))[1] - 1)

    sign = 1 if value == "nan" else rng.choice([-1, 1])
    found = list(operands)
    found[which] = held(problem, placed(unpacked(problem, which, found[which]), sign * number))
    if problem.takes_d and not problem.d_type.is_integer:
        found[-1] = placed(found[-1], math.nan)
    return tuple(found)
