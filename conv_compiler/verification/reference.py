# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the right answer is: each direction by definition, in float64 or int64.

Two forms are tested against each other. `plain` walks filter taps and output pixels as the formula
reads. `blocked` gives each tap to BLAS and is fast enough for the layers of real models. Both
return the exact sum, or what the problem's elementwise op makes of it in float64, before it is
rounded to the weight type. But integer weights are saturated to their type, as kernels do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.errors import InvalidArray
from conv_compiler.problem.dtypes import DTYPES, WIDER
from conv_compiler.problem.extended import is_extended, over_extended, pixels_of
from conv_compiler.verification.block_scales import values
from conv_compiler.verification.ones import multiplying

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.problem.dtypes import DType
    from conv_compiler.problem.elementwise import Fused

    Array = NDArray[Any]

# Elements of one operand that `blocked` holds as float64 at a time (64 MB).
_BLOCK_ELEMENTS = 2**23


def axes_of(letters: str, ndim: int) -> list[str]:
    """One name an axis; `*` stands for the spatial axes s0, s1, ..."""
    names: list[str] = []
    for letter in letters:
        names += [f"s{i}" for i in range(ndim)] if letter == "*" else [letter]
    return names


def reorder(array: Array, letters: str, order: str, ndim: int) -> Array:
    """The view of an array whose axes are `letters` with its axes in `order`."""
    names = axes_of(letters, ndim)
    return array.transpose([names.index(name) for name in axes_of(order, ndim)])


def _operand(problem: ConvProblem, name: str, array: Array, order: str) -> Array:
    """An operand as the user holds it, with G split off and its axes in `order`.

    Raises InvalidArray when the shape is not the problem's.
    """
    shape: tuple[int, ...] = getattr(problem, f"{name}_shape")
    if array.shape != shape:
        raise InvalidArray(f"{name} {array.shape}: not the shape of the problem; give {shape}")
    array = multiplicand(problem, problem.tensors.index(name), array)
    letters: str = getattr(problem.layout_row.grouped, name)
    return reorder(array.reshape(problem.shape(letters)), letters, order, problem.ndim)


def multiplicand(problem: ConvProblem, number: int, array: Array) -> Array:
    """Operand 0 or 1 as it is multiplied: after its op, in the type that `compute` names.

    Of products in terms the whole number: what they are off by is the tolerance's. Elements with
    block scales are given as what these stand for.
    """
    row, op = DTYPES[problem.operand_dtypes[1 - number]], problem.operand_ops[number]
    if op is None and (problem.terms or not problem.compute):
        return array
    if problem.block_scales:  # behind an op there are no elements and scales any more
        row = DTYPES[WIDER]
    # Infinities and NaN are among what there may be.
    with np.errstate(over="ignore", invalid="ignore"):
        return _converted(problem, op, row, array)


def _converted(problem: ConvProblem, op: Fused | None, row: DType, array: Array) -> Array:
    if op is not None:
        wide = DTYPES[problem.accumulator_type.elementwise].to_numpy()
        array = op.on_arrays(array.astype(wide))
    if row.is_integer:
        top = 2 ** (row.bits - 1)
        array = np.rint(array).clip(-top, top - 1)
    elif row.is_f8:
        array = array.clip(-row.largest, row.largest)
    return array.astype(row.to_numpy())


def as_multiplied(problem: ConvProblem) -> ConvProblem:
    """The problem whose operands are those of another as they are multiplied."""
    return replace(problem, compute="", input_op="", weight_op="", output_op="")


def _tensors(
    problem: ConvProblem, operands: tuple[Array, Array], orders: dict[str, str], exact: Any
) -> tuple[dict[str, Array], Callable[[], Array]]:
    """(the three tensors by name, axes in `orders`; what gives the result as the user holds it).

    The result is zeros of type `exact`, to be filled.
    """
    *names, result = problem.tensors
    found = {
        name: _operand(problem, name, array, orders[name])
        for name, array in zip(names, operands, strict=True)
    }
    found[result] = sums = np.zeros(problem.shape(orders[result]), exact)

    def held() -> Array:
        letters: str = getattr(problem.layout_row.grouped, result)
        return reorder(sums, orders[result], letters, problem.ndim).reshape(problem.result_shape)

    return found, held


def spread(problem: ConvProblem, d: Array) -> Array:
    """The elementwise op's d in the result's shape: of one element a channel a view, repeated. A
    number stays one."""
    if not (problem.fused and problem.fused.d_per == "channel"):
        return d
    name = problem.tensors[2]
    letters: str = getattr(problem.layout_row, name)
    channel = "K" if name == "output" else "C"
    axes = [i for i, one in enumerate(axes_of(letters, problem.ndim)) if one in ("G", channel)]
    shape = [1] * len(problem.result_shape)
    for axis, size in zip(axes, d.shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(d.reshape(shape), problem.result_shape)


def finished(problem: ConvProblem, sums: Array, d: Array | None = None) -> Array:
    """The weight gradient of exact sums: after the elementwise op; integers and 8-bit floats
    saturate to their type.

    Raises InvalidArray unless `d` is there, in its shape, just where the op takes it.
    """
    if (d is not None) != problem.takes_d or (d is not None and d.shape != problem.d_shape):
        wanted = f"give {problem.d_shape}" if problem.takes_d else "leave it out"
        raise InvalidArray(f"d {None if d is None else d.shape}: not the problem's; {wanted}")
    if problem.fused:
        d = None if d is None else spread(problem, d.astype(np.float64))
        sums = problem.fused.on_arrays(sums.astype(np.float64), d)
    if problem.result_type.is_integer:
        top = 2 ** (problem.result_type.bits - 1)
        sums = np.rint(sums).clip(-top, top - 1).astype(np.int64)
    elif problem.result_type.is_f8:
        sums = sums.clip(-problem.result_type.largest, problem.result_type.largest)
    return sums


# Axes of the tensors at one tap and pixel.
_AT_A_PIXEL = {"input": "gnc", "output": "gnk", "weight": "gkc"}


def _plain(problem: ConvProblem, *operands: Array) -> Array:
    exact = np.int64 if problem.data_type.is_integer else np.float64
    orders = {name: f"*{axes.upper()}" for name, axes in _AT_A_PIXEL.items()}
    tensors, held = _tensors(problem, (operands[0], operands[1]), orders, exact)
    first, second, result = problem.tensors
    product = f"{_AT_A_PIXEL[first]},{_AT_A_PIXEL[second]}->{_AT_A_PIXEL[result]}"
    for tap in np.ndindex(*problem.filter):
        for pixel in np.ndindex(*problem.out_image):
            at = tuple(
                o * s + f * d - low
                for o, s, f, d, low in zip(
                    pixel, problem.stride, tap, problem.dilation, problem.pad_low, strict=True
                )
            )
            if all(0 <= p < size for p, size in zip(at, problem.image, strict=True)):
                place = {"input": at, "output": pixel, "weight": tap}
                a, b = (tensors[name][place[name]].astype(exact) for name in (first, second))
                tensors[result][place[result]] += np.einsum(product, a, b)
    return held()


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


def _pixels(array: Array) -> Array:
    """[g, pixels, channel] of [g, n, spatial..., channel]."""
    return array.reshape(array.shape[0], -1, array.shape[-1])


# What a tap adds to the result, by direction: of image pixels, output pixels and the tap's weights
# [g, k, c].
_PRODUCTS: MappingProxyType[str, Callable[[Array, Array, Array], Array]] = MappingProxyType(
    {
        "bwd_weight": lambda image, output, _: _pixels(output).swapaxes(1, 2) @ _pixels(image),
        "bwd_data": lambda _, output, weight: _pixels(output) @ weight,
        "fwd": lambda image, _, weight: _pixels(image) @ weight.swapaxes(1, 2),
    }
)


def _blocked(problem: ConvProblem, *operands: Array) -> Array:
    orders = {"input": "GN*C", "output": "GN*K", "weight": "*GKC"}
    tensors, held = _tensors(problem, (operands[0], operands[1]), orders, np.float64)
    image, output, weight = (tensors[name] for name in orders)
    pixels = max(math.prod(problem.image) * problem.c, math.prod(problem.out_image) * problem.k)
    batch = max(1, _BLOCK_ELEMENTS // (problem.g * pixels))
    for first in range(0, problem.n, batch):
        # float64 holds every product and sum of 8-bit integers exactly up to gemm_k 2**39.
        # What is float64 already, as the result is, is not copied.
        images = image[:, first : first + batch].astype(np.float64, copy=False)
        outputs = output[:, first : first + batch].astype(np.float64, copy=False)
        for tap in np.ndindex(*problem.filter):
            windows = [_window(problem, axis, f) for axis, f in enumerate(tap)]
            at = {
                "input": images[(slice(None), slice(None), *(pixel for _, pixel in windows))],
                "output": outputs[(slice(None), slice(None), *(out for out, _ in windows))],
                "weight": weight[tap].astype(np.float64, copy=False),
            }
            result = at[problem.tensors[2]]
            result += _PRODUCTS[problem.direction](*at.values()).reshape(result.shape)
    return held()


def plain(problem: ConvProblem, *operands: Array, d: Array | None = None) -> Array:
    """The definition, for small problems.

    The operands are those of the direction in COMPUTED, and their block scales behind them. Arrays
    have the problem's shapes and any type; the result has its shape and is float64, or int64 for
    integers. `d` is what the elementwise op takes, also as last operand. Raises InvalidArray for a
    wrong shape.
    """
    return _finished_of(lambda *given: _over_pads(_plain, *given), problem, operands, d)


def _over_pads(
    sums: Callable[..., Array], problem: ConvProblem, first: Array, second: Array
) -> Array:
    """The sums of a problem by those of the one over the image with its pads in place."""
    if not is_extended(problem):
        return sums(problem, first, second)
    start = axes_of(problem.layout_row.input, problem.ndim).index("s0")
    dimensions = [
        (start + at, np.array(pixels_of(problem.pad_mode, *sizes)))
        for at, sizes in enumerate(
            zip(problem.pad_low, problem.image, problem.pad_high, strict=True)
        )
    ]
    if problem.tensors[-1] != "input":
        for axis, pixels in dimensions:
            first = first.take(pixels, axis)
        return sums(over_extended(problem), first, second)
    found = sums(over_extended(problem), first, second)
    for axis, pixels in dimensions:
        moved = np.moveaxis(found, axis, 0)
        whole = np.zeros((pixels.max() + 1, *moved.shape[1:]), found.dtype)
        np.add.at(whole, pixels, moved)
        found = np.moveaxis(whole, 0, axis)
    return found


def exact_sums(problem: ConvProblem, first: Array, second: Array) -> Array:
    """The sums before the elementwise op, tap by tap through BLAS."""
    return _over_pads(_blocked, problem, first, second)


def reference(problem: ConvProblem, *operands: Array, d: Array | None = None) -> Array:
    """The same as `plain`, tap by tap through BLAS."""
    return _finished_of(exact_sums, problem, operands, d)


def _finished_of(
    sums: Callable[[ConvProblem, Array, Array], Array],
    problem: ConvProblem,
    operands: tuple[Array, ...],
    d: Array | None,
) -> Array:
    given = operands if d is None else (*operands, d)
    wgrad, given = multiplying(problem, given)
    first, second, *extra = values(wgrad, given)
    found = finished(wgrad, sums(wgrad, first, second), *extra)
    return found.reshape(problem.result_shape)
