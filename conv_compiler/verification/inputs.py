# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which data a kernel is tried on: integers that must come out exactly, random floats, tiny ones,
and integers among which one number is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.errors import InvalidArray, UnsupportedProblem, did_you_mean
from conv_compiler.problem.canonical import equivalent_wgrad, summed_products
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.problem.extended import most_places
from conv_compiler.verification.block_scales import (
    GROWTH,
    WHOLE,
    draw_scales,
    held,
    put_zeros,
    values,
)
from conv_compiler.verification.ones import alone
from conv_compiler.verification.reference import multiplicand, reorder
from conv_compiler.verification.special_inputs import put_special, specials_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.problem.dtypes import DType

    Array = NDArray[Any]

# Composable Kernel's tests draw from [-5, 5); float weights are compared in their own precision.
_WIDEST_FLOAT = 4
_WIDEST_INTEGER = 127
# Of random elements of 4 and 6 bits, which have few numbers below 1.
_WIDEST_PACKED = 2


def _exact_limit(accumulator: DType) -> int:
    """Up to where every integer is a value of the type."""
    if accumulator.is_integer:
        return int(2 ** (accumulator.bits - 1) - 1)
    return int(2 ** (accumulator.mantissa_bits + 1))


def _integers(problem: ConvProblem, rng: np.random.Generator) -> tuple[Array, Array]:
    """The widest range of integers that keeps sums exact and mostly within the result's own range.

    Where even +-1 would not, the second operand is mostly zeros.
    """
    limit = _exact_limit(problem.accumulator_type)
    weight = problem.result_type
    spread = _exact_limit(weight) / (3 if weight.is_integer else 4)
    widest = _WIDEST_INTEGER if problem.data_type.is_integer else _WIDEST_FLOAT
    growth = GROWTH if problem.block_scales else 1
    summed, top = summed_products(problem) * growth, 1
    for a in range(2, widest + 1):
        # a (a + 1) / 3 is the variance of integers drawn evenly from [-a, a].
        typical = math.sqrt(summed) * a * (a + 1) / 3
        if summed * a * a <= limit and typical <= spread:
            top = a
    numpy = problem.data_type.to_numpy()
    first, second = (
        rng.integers(-top, top + 1, shape, dtype=np.int8) for shape in problem.operand_shapes
    )
    if (share := limit / max(1, 2 * summed)) < 1:
        second *= rng.random(second.shape, dtype=np.float32) < share
    return first.astype(numpy), second.astype(numpy)


def _random(problem: ConvProblem, rng: np.random.Generator) -> tuple[Array, Array]:
    """Floats drawn evenly from [-1, 1), packed ones from [-2, 2); integers stay integers."""
    if problem.data_type.is_integer:
        return _integers(problem, rng)
    numpy = problem.data_type.to_numpy()
    top = _WIDEST_PACKED if problem.data_type.is_packed else 1
    drawn = np.float64 if problem.data_type.bits > 32 else np.float32
    first, second = (
        (rng.random(shape, dtype=drawn) * 2 - 1) * drawn(top) for shape in problem.operand_shapes
    )
    return first.astype(numpy), second.astype(numpy)


def tiny_operand(problem: ConvProblem) -> int:
    """Which operand is tiny in `denormal` data: the gradient, and of a convolution the input."""
    return problem.tensors.index("output") if problem.tensors[2] != "output" else 0


def least_whole(problem: ConvProblem) -> float:
    """From which size on arithmetic without denormals multiplies numbers with all their bits.

    It is the smallest normal number of the data, and in terms one whose low part is normal.
    """
    import ml_dtypes

    least = float(ml_dtypes.finfo(problem.data_type.to_numpy()).smallest_normal)
    return least * 2.0 ** (1 + 2 * DTYPES[problem.terms.dtype].bits) if problem.terms else least


def _denormal(problem: ConvProblem, rng: np.random.Generator) -> tuple[Array, Array]:
    """Random data of which one operand is tiny.

    Let s be the type's smallest normal number. Half of it is 0.65 s randn (4e-5 randn in f16), a
    quarter is even below s, and a quarter even below 256 s.
    """
    found = list(_random(problem, rng))
    if problem.data_type.is_integer:
        return found[0], found[1]
    number = tiny_operand(problem)
    shape, least = problem.operand_shapes[number], least_whole(problem)
    kind = rng.integers(0, 4, shape)
    even = rng.random(shape) * 2 - 1
    drawn = np.choose(kind, [rng.standard_normal(shape) * 0.65] * 2 + [even, 256 * even]) * least
    if problem.data_type.is_packed:  # of so few exponents that 256 s may be no number
        drawn = drawn.clip(-problem.data_type.largest, problem.data_type.largest)
    found[number] = drawn.astype(problem.data_type.to_numpy())
    return found[0], found[1]


DATA: MappingProxyType[str, Callable[[ConvProblem, np.random.Generator], tuple[Array, Array]]] = (
    MappingProxyType(
        {"integers": _integers, "random": _random, "denormal": _denormal, "special": _integers}
    )
)
# Data that are integers wherever they are finite.
_WHOLE = ("integers", "special")


def trials_of(data: str, problem: ConvProblem) -> int:
    """How many sets of inputs a kernel is tried on."""
    if problem.data_type.is_integer:
        return 1
    trials = 2 * len(specials_of(problem)) if data == "special" else 1
    if problem.block_scales and trials > 1:
        trials += 2
    return max(1, trials // 2) if problem.sums_alone else trials


# Axes of the second operand that a sum does not run over, by direction.
_KEPT = MappingProxyType({"bwd_weight": "GK", "bwd_data": "GC", "fwd": "GK"})


def is_exact(problem: ConvProblem, first: Array, second: Array) -> bool:
    """Whether arrays hold integers, as they are multiplied, whose sums are exact in the
    accumulator, in any order.

    No partial sum can pass the largest |first| times the sum of |second| over one channel.
    """
    first, second = (
        multiplicand(problem, number, array).astype(np.float64)
        for number, array in enumerate((first, second))
    )
    if any((array != np.rint(array)).any() for array in (first, second)):
        return False
    if problem.terms:  # and no number has a low part, of which a product would be left out
        part = DTYPES[problem.terms.dtype].to_numpy()
        if any((array.astype(part) != array).any() for array in (first, second)):
            return False
    if problem.operand_type.multiplied_only:  # and none has bits that an instruction leaves out
        most = _exact_limit(problem.operand_type)
        if any(np.abs(array).max(initial=0) > most for array in (first, second)):
            return False
    letters: str = getattr(problem.layout_row.grouped, problem.tensors[1])
    kept = _KEPT[problem.direction]
    sizes = np.abs(second).reshape(problem.shape(letters))
    order = kept + "".join(letter for letter in letters if letter not in kept)
    per_channel = reorder(sizes, letters, order, problem.ndim)
    channels = math.prod(per_channel.shape[:2])
    sums = per_channel.reshape(channels, math.prod(per_channel.shape[2:])).sum(axis=1)
    largest = np.abs(first).max(initial=0) * sums.max(initial=0)
    if problem.tensors[-1] == "input":
        largest = largest * most_places(problem)
    return bool(largest <= _exact_limit(problem.accumulator_type))


def _are_exact(problem: ConvProblem, operands: tuple[Array, ...]) -> bool:
    """`is_exact` of drawn operands; multiples of a power of two are as exact as integers."""
    first, second, *_ = values(problem, operands)
    if problem.block_scales:
        first, second = first * WHOLE, second * WHOLE
    return is_exact(problem, first, second)


def is_flushed(
    problem: ConvProblem, number: int, array: Array, types: Collection[str] = ("f16", "bf16")
) -> Array:
    """Where operand 0 or 1 counts as 0 in arithmetic that takes denormals of some types as 0.

    What is multiplied may be a denormal of them, and what its op is applied to where that is of the
    same type. 8-bit floats have wider ones in their place, to which theirs are none.
    """
    import ml_dtypes

    multiplied = multiplicand(problem, number, array)
    name = problem.operand_dtypes[1 - number]
    if name not in types:
        return np.zeros(array.shape, bool)
    smallest = ml_dtypes.finfo(multiplied.dtype).smallest_normal
    with np.errstate(invalid="ignore"):  # NaN
        found: Array = (np.abs(multiplied) < smallest) & (array != 0)
        if multiplied.dtype == array.dtype:
            found |= (np.abs(array) < smallest) & (array != 0)
    return found


def without_flushed(
    problem: ConvProblem, operands: tuple[Array, ...], types: Collection[str]
) -> tuple[Array, ...]:
    """`without_denormals` of the operands of a call; of block scales the elements are 0."""
    if not problem.block_scales:
        first, second, *others = operands
        pair = (without_denormals(problem, i, one, types) for i, one in enumerate((first, second)))
        return (*pair, *others)
    numbers = values(problem, operands)[:2]
    flushed = [is_flushed(problem, i, one, types) for i, one in enumerate(numbers)]
    return put_zeros(problem, operands, flushed)


def without_denormals(
    problem: ConvProblem, number: int, array: Array, types: Collection[str] = ("f16", "bf16")
) -> Array:
    """Operand 0 or 1 with 0 where arithmetic that takes denormals of `types` as 0 has none."""
    return np.where(is_flushed(problem, number, array, types), np.zeros_like(array), array)


def _d(problem: ConvProblem, data: str, rng: np.random.Generator) -> Array:
    """The elementwise op's d: small integers, or floats drawn evenly from [-1, 1).

    A number for each call is not 0, as one may divide by it: a power of two, or any number from 1/4
    to 4, of either sign.
    """
    dtype, shape = problem.d_type, problem.d_shape
    if problem.fused and problem.fused.d_per == "call":
        whole = data in _WHOLE or problem.data_type.is_integer
        power = rng.integers(-2, 3) if whole else rng.random() * 4 - 2
        return np.array(rng.choice([-1.0, 1.0]) * 2.0**power, dtype.to_numpy())
    if data in _WHOLE or dtype.is_integer:
        drawn = rng.integers(-_WIDEST_FLOAT, _WIDEST_FLOAT + 1, shape, dtype=np.int8)
        return drawn.astype(dtype.to_numpy())
    return (rng.random(shape, dtype=np.float32) * 2 - 1).astype(dtype.to_numpy())


def inputs(
    problem: ConvProblem, data: str = "integers", seed: int = 0, trial: int | None = None
) -> tuple[Array, ...]:
    """The operands in the problem's shapes and type, their block scales where it has them, and d
    where its elementwise op takes one.

    `data` is a row of DATA. Of `special` data each of `trials_of` is one set; left out, `trial` is
    none of them: all numbers are integers.

    Raises UnsupportedProblem when integer data would not be exact, InvalidArray for unknown data.
    """
    if data not in DATA:
        near = did_you_mean(data, DATA)
        raise InvalidArray(f"data {data}: not in the table; {near}known: {', '.join(DATA)}")
    if seed < 0:
        raise InvalidArray(f"seed {seed}: below 0; use 0 or more")
    if problem.sums_alone:  # what is special stands in the second operand of odd trials
        at = None if trial is None else 2 * trial + 1
        return alone(problem, inputs(equivalent_wgrad(problem), data, seed, at))
    rng = np.random.default_rng(seed)
    drawn: tuple[Array, ...] = tuple(held(problem, one) for one in DATA[data](problem, rng))
    drawn += draw_scales(problem, data, tiny_operand(problem), rng)
    integers = data in _WHOLE or problem.data_type.is_integer
    if integers and problem.operand_ops == (None, None) and not _are_exact(problem, drawn):
        raise UnsupportedProblem(
            f"gemm_k {summed_products(problem)}: integer data would not be exact in "
            f"{problem.accumulator_type.name}; use random data"
        )
    found = (*drawn, _d(problem, data, rng)) if problem.takes_d else drawn
    if data != "special" or trial is None:
        return found
    return put_special(problem, found, trial, np.random.default_rng((seed, trial)))
