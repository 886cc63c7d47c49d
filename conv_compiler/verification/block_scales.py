# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands with block scales: what they stand for, by definition, and scales to try kernels on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.errors import InvalidArray
from conv_compiler.problem.block_scales import BIAS, NAN_CODE, row_of, scale_names
from conv_compiler.runtime.packing import pack, unpack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.problem.conv_problem import ConvProblem

    Array = NDArray[Any]

# Exponents of scales, by data: (least, most).
_EXPONENTS = MappingProxyType(
    {"integers": (-1, 1), "special": (-1, 1), "random": (-4, 4), "denormal": (-4, 4)}
)
# The same of the tiny operand of `denormal` data: elements of up to 1 are around 2^-126 by it.
_TINY = (-BIAS, 8 - BIAS)
# What multiples of integers by the least scale are multiplied by to be integers.
WHOLE = 2.0 ** -_EXPONENTS["integers"][0]
# How much larger a product in these multiples may be than one of the elements.
GROWTH = int(2.0 ** (_EXPONENTS["integers"][1] - _EXPONENTS["integers"][0])) ** 2


def numbers_of_codes(codes: Array) -> Array:
    """What E8M0 codes stand for, as float64."""
    codes = codes.view(np.uint8)
    return np.where(codes == NAN_CODE, np.nan, np.ldexp(1.0, codes.astype(np.int32) - BIAS))


def values(problem: ConvProblem, operands: Sequence[Array]) -> tuple[Array, ...]:
    """The operands as the numbers that they stand for, in float64 and without scales, and d as it
    is; all as they are of a problem without block scales.

    Raises InvalidArray for scales of another number, shape or type, and packed elements of another
    shape or type.
    """
    row = row_of(problem)
    if row is None:
        return tuple(operands)
    count, names = len(problem.operand_shapes), scale_names(problem)
    scales = operands[count : 2 * count]
    elements = [unpacked(problem, number, one) for number, one in enumerate(operands[:count])]
    if len(scales) < len(names):
        raise InvalidArray(f"{names[len(scales)]}: not given; give uint8 codes of each block")
    made = []
    for element, codes, name, shape, axis in zip(
        elements, scales, names, problem.scale_shapes, problem.blocked_axes, strict=True
    ):
        if codes.shape != shape or codes.dtype.name not in ("uint8", "float8_e8m0fnu"):
            raise InvalidArray(
                f"{name} {codes.shape} {codes.dtype}: not the problem's; give {shape} uint8"
            )
        scale = np.repeat(numbers_of_codes(codes), row.size, axis)
        with np.errstate(invalid="ignore"):  # NaN
            made.append(element.astype(np.float64) * scale)
    return (*made, *operands[2 * count :])


def unpacked(problem: ConvProblem, number: int, array: Array) -> Array:
    """Operand 0 or 1 with a byte for each element that is packed.

    Raises InvalidArray for packed elements of another shape or type.
    """
    if not problem.data_type.is_packed:
        return array
    shape, name = problem.held_shapes[number], problem.tensors[number]
    if array.shape != shape or array.dtype != np.uint8:
        raise InvalidArray(
            f"{name} {array.shape} {array.dtype}: not the problem's packed elements; give "
            f"{shape} uint8 (conv_compiler.pack)"
        )
    return unpack(array, problem.dtype)


def held(problem: ConvProblem, array: Array) -> Array:
    """Elements of the problem's type as an operand has them: packed, where they are."""
    return pack(array) if problem.data_type.is_packed else array


def draw_scales(
    problem: ConvProblem, data: str, tiny: int, rng: np.random.Generator
) -> tuple[Array, ...]:
    """Codes for the scales of both operands, of which `tiny` has the least ones in `denormal`
    data; none for a problem without."""
    found = []
    for number, shape in enumerate(problem.scale_shapes):
        least, most = _TINY if data == "denormal" and number == tiny else _EXPONENTS[data]
        found.append((rng.integers(least, most + 1, shape) + BIAS).astype(np.uint8))
    return tuple(found)


def put_zeros(
    problem: ConvProblem, operands: Sequence[Array], where: Collection[Array]
) -> tuple[Array, ...]:
    """The operands with elements that are 0 at some places of each."""
    count = len(problem.operand_shapes)
    made = []
    for number, zero in enumerate(where):
        array = unpacked(problem, number, operands[number])
        made.append(held(problem, np.where(zero, np.zeros_like(array), array)))
    return (*made, *operands[count:])
