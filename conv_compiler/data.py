"""Which data a kernel is tried on: integers that must come out exactly, or random floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.dtypes import DTYPES
from conv_compiler.errors import InvalidArray, UnsupportedProblem
from conv_compiler.reference import multiplicand, reorder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.dtypes import DType
    from conv_compiler.problem import ConvProblem

    Array = NDArray[Any]

# Composable Kernel's tests draw from [-5, 5); float weights are compared in their own precision.
_WIDEST_FLOAT = 4
_WIDEST_INTEGER = 127


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
    top = 1
    for a in range(2, widest + 1):
        # a (a + 1) / 3 is the variance of integers drawn evenly from [-a, a].
        typical = math.sqrt(problem.gemm_k) * a * (a + 1) / 3
        if problem.gemm_k * a * a <= limit and typical <= spread:
            top = a
    numpy = problem.data_type.to_numpy()
    first, second = (
        rng.integers(-top, top + 1, shape, dtype=np.int8) for shape in problem.operand_shapes
    )
    if (share := limit / max(1, 2 * problem.gemm_k)) < 1:
        second *= rng.random(second.shape, dtype=np.float32) < share
    return first.astype(numpy), second.astype(numpy)


def _random(problem: ConvProblem, rng: np.random.Generator) -> tuple[Array, Array]:
    """Floats drawn evenly from [-1, 1); integers stay integers."""
    if problem.data_type.is_integer:
        return _integers(problem, rng)
    numpy = problem.data_type.to_numpy()
    drawn = np.float64 if problem.data_type.bits > 32 else np.float32
    first, second = (rng.random(shape, dtype=drawn) * 2 - 1 for shape in problem.operand_shapes)
    return first.astype(numpy), second.astype(numpy)


DATA: MappingProxyType[str, Callable[[ConvProblem, np.random.Generator], tuple[Array, Array]]] = (
    MappingProxyType({"integers": _integers, "random": _random})
)


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
    letters: str = getattr(problem.layout_row.grouped, problem.tensors[1])
    kept = _KEPT[problem.direction]
    sizes = np.abs(second).reshape(problem.shape(letters))
    order = kept + "".join(letter for letter in letters if letter not in kept)
    per_channel = reorder(sizes, letters, order, problem.ndim)
    channels = math.prod(per_channel.shape[:2])
    sums = per_channel.reshape(channels, math.prod(per_channel.shape[2:])).sum(axis=1)
    largest = np.abs(first).max(initial=0) * sums.max(initial=0)
    return bool(largest <= _exact_limit(problem.accumulator_type))


def without_denormals(problem: ConvProblem, number: int, array: Array) -> Array:
    """Operand 0 or 1 with 0 in place of each denormal, and of what its op makes one of.

    For chips that flush them: as it is there, so it is multiplied. 8-bit floats that others are
    multiplied as have wider ones in their place, to which theirs are none.
    """
    import ml_dtypes

    smallest = ml_dtypes.finfo(array.dtype).smallest_normal
    flushed = np.abs(array) < smallest
    if (multiplied := multiplicand(problem, number, array)).dtype == array.dtype:
        flushed |= np.abs(multiplied) < smallest
    return np.where(flushed, np.zeros_like(array), array)


def _d(problem: ConvProblem, data: str, rng: np.random.Generator) -> Array:
    """The elementwise op's d: small integers, or floats drawn evenly from [-1, 1)."""
    dtype, shape = problem.d_type, problem.result_shape
    if data == "integers" or dtype.is_integer:
        drawn = rng.integers(-_WIDEST_FLOAT, _WIDEST_FLOAT + 1, shape, dtype=np.int8)
        return drawn.astype(dtype.to_numpy())
    return (rng.random(shape, dtype=np.float32) * 2 - 1).astype(dtype.to_numpy())


def inputs(problem: ConvProblem, data: str = "integers", seed: int = 0) -> tuple[Array, ...]:
    """The operands in the problem's shapes and type, and d where its elementwise op takes one.

    `data` is a row of DATA.

    Raises UnsupportedProblem when integer data would not be exact, InvalidArray for unknown data.
    """
    if data not in DATA:
        raise InvalidArray(f"data {data}: not in the table; known: {', '.join(DATA)}")
    if seed < 0:
        raise InvalidArray(f"seed {seed}: below 0; use 0 or more")
    rng = np.random.default_rng(seed)
    drawn = DATA[data](problem, rng)
    integers = data == "integers" or problem.data_type.is_integer
    if integers and problem.operand_ops == (None, None) and not is_exact(problem, *drawn):
        raise UnsupportedProblem(
            f"gemm_k {problem.gemm_k}: integer data would not be exact in "
            f"{problem.accumulator_type.name}; use random data"
        )
    return (*drawn, _d(problem, data, rng)) if problem.takes_d else drawn
