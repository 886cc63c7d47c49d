"""What the right answer is: each convolution by definition, in float64 or int64.

Two forms that are tested against each other: `plain` walks filter taps and output pixels as the
formula reads, `blocked` gives each tap to BLAS and is fast enough for the layers of real models.
Both return the exact sum, or what the problem's elementwise op makes of it in float64, before it
is rounded to the weight type; but integer weights are saturated to their type, as kernels do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.dtypes import DTYPES
from conv_compiler.errors import InvalidArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.problem import ConvProblem

    Array = NDArray[Any]

# Elements of one operand that `blocked` holds as float64 at a time (64 MB).
_BLOCK_ELEMENTS = 2**23


def _axes(letters: str, ndim: int) -> list[str]:
    """One name an axis; `*` stands for the spatial axes s0, s1, ..."""
    names: list[str] = []
    for letter in letters:
        names += [f"s{i}" for i in range(ndim)] if letter == "*" else [letter]
    return names


def reorder(array: Array, letters: str, order: str, ndim: int) -> Array:
    """The view of an array whose axes are `letters` with its axes in `order`."""
    names = _axes(letters, ndim)
    return array.transpose([names.index(name) for name in _axes(order, ndim)])


def _operand(problem: ConvProblem, name: str, array: Array, order: str) -> Array:
    """An operand as the user holds it, with G split off and its axes in `order`.

    Raises InvalidArray when the shape is not the problem's.
    """
    shape: tuple[int, ...] = getattr(problem, f"{name}_shape")
    if array.shape != shape:
        raise InvalidArray(f"{name} {array.shape}: not the shape of the problem; give {shape}")
    if problem.compute:
        row = DTYPES[problem.operand_dtypes[name == "input"]]
        array = array.clip(-row.largest, row.largest).astype(row.to_numpy())
    letters: str = getattr(problem.layout_row.grouped, name)
    return reorder(array.reshape(problem.shape(letters)), letters, order, problem.ndim)


def _weight(problem: ConvProblem, weight: Array, order: str) -> Array:
    """A weight with axes in `order` as the user holds it."""
    letters = problem.layout_row.grouped.weight
    return reorder(weight, order, letters, problem.ndim).reshape(problem.weight_shape)


def finished(problem: ConvProblem, sums: Array, d: Array | None = None) -> Array:
    """The weight gradient of exact sums: after the elementwise op; integers saturate to their type.

    Raises InvalidArray unless `d` is there, in the weight's shape, just where the op takes it.
    """
    if (d is not None) != problem.takes_d or (d is not None and d.shape != problem.weight_shape):
        wanted = f"give {problem.weight_shape}" if problem.takes_d else "leave it out"
        raise InvalidArray(f"d {None if d is None else d.shape}: not the problem's; {wanted}")
    if problem.fused:
        d = None if d is None else d.astype(np.float64)
        sums = problem.fused.on_arrays(sums.astype(np.float64), d)
    if problem.weight_type.is_integer:
        top = 2 ** (problem.weight_type.bits - 1)
        sums = np.rint(sums).clip(-top, top - 1).astype(np.int64)
    return sums


def _plain_bwd_weight(problem: ConvProblem, input: Array, d_output: Array) -> Array:
    exact = np.int64 if problem.data_type.is_integer else np.float64
    image = _operand(problem, "input", input, "*GNC").astype(exact)
    gradient = _operand(problem, "output", d_output, "*GNK").astype(exact)
    weight = np.zeros(problem.shape("*GKC"), exact)
    for tap in np.ndindex(*problem.filter):
        for pixel in np.ndindex(*problem.out_image):
            at = tuple(
                o * s + f * d - low
                for o, s, f, d, low in zip(
                    pixel, problem.stride, tap, problem.dilation, problem.pad_low, strict=True
                )
            )
            if all(0 <= p < size for p, size in zip(at, problem.image, strict=True)):
                weight[tap] += np.einsum("gnk,gnc->gkc", gradient[pixel], image[at])
    return _weight(problem, weight, "*GKC")


def _window(problem: ConvProblem, axis: int, tap: int) -> tuple[slice, slice]:
    """Output pixels of one dimension whose tap is in the image, and the image pixels they meet."""
    stride, size = problem.stride[axis], problem.image[axis]
    offset = tap * problem.dilation[axis] - problem.pad_low[axis]
    first = max(0, -(offset // stride))  # ceil(-offset / stride)
    last = min(problem.out_image[axis] - 1, (size - 1 - offset) // stride)
    if last < first:
        return slice(0, 0), slice(0, 0)
    start = first * stride + offset
    return slice(first, last + 1), slice(start, start + (last - first) * stride + 1, stride)


def _blocked_bwd_weight(problem: ConvProblem, input: Array, d_output: Array) -> Array:
    image = _operand(problem, "input", input, "GN*C")
    gradient = _operand(problem, "output", d_output, "GN*K")
    weight = np.zeros(problem.shape("*GKC"), np.float64)
    pixels = max(math.prod(problem.image) * problem.c, math.prod(problem.out_image) * problem.k)
    batch = max(1, _BLOCK_ELEMENTS // (problem.g * pixels))
    for first in range(0, problem.n, batch):
        # float64 holds every product and sum of 8-bit integers exactly up to gemm_k 2**39.
        images = image[:, first : first + batch].astype(np.float64)
        gradients = gradient[:, first : first + batch].astype(np.float64)
        for tap in np.ndindex(*problem.filter):
            windows = [_window(problem, axis, f) for axis, f in enumerate(tap)]
            rows = gradients[(slice(None), slice(None), *(out for out, _ in windows))]
            columns = images[(slice(None), slice(None), *(pixel for _, pixel in windows))]
            rows = rows.reshape(problem.g, -1, problem.k)
            columns = columns.reshape(problem.g, -1, problem.c)
            weight[tap] += rows.swapaxes(1, 2) @ columns
    return _weight(problem, weight, "*GKC")


Definition = Callable[["ConvProblem", "Array", "Array"], "Array"]

PLAIN: MappingProxyType[str, Definition] = MappingProxyType({"bwd_weight": _plain_bwd_weight})
BLOCKED: MappingProxyType[str, Definition] = MappingProxyType({"bwd_weight": _blocked_bwd_weight})


def plain(problem: ConvProblem, input: Array, d_output: Array, d: Array | None = None) -> Array:
    """The definition, for small problems.

    Arrays have the problem's shapes and any type; the result has the weight's shape and is float64,
    or int64 for integers. `d` is what the elementwise op takes. Raises InvalidArray for a wrong
    shape.
    """
    return finished(problem, PLAIN[problem.direction](problem, input, d_output), d)


def exact_sums(problem: ConvProblem, input: Array, d_output: Array) -> Array:
    """The sums before the elementwise op, tap by tap through BLAS."""
    return BLOCKED[problem.direction](problem, input, d_output)


def reference(problem: ConvProblem, input: Array, d_output: Array, d: Array | None = None) -> Array:
    """The same as `plain`, tap by tap through BLAS."""
    return finished(problem, exact_sums(problem, input, d_output), d)
