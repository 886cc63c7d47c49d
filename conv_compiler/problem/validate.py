# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a problem's fields must hold, and what the ones left out stand for."""

from __future__ import annotations

import math
import operator
import reprlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import UnsupportedProblem, did_you_mean
from conv_compiler.problem.block_checks import check_block_scales, check_packed, compute_of
from conv_compiler.problem.dtypes import (
    check_pair,
    default_weight_dtype,
    name_of_dtype,
)
from conv_compiler.problem.elementwise import Fused, parse, parse_operand
from conv_compiler.problem.layouts import find_layout
from conv_compiler.problem.pad_modes import MODES, SAME, SPARE, ZEROS, same_pads
from conv_compiler.problem.spelling import name_of

if TYPE_CHECKING:
    from conv_compiler.problem.shapes import Shapes

# Least values of the sizes. A batch of none is one: frameworks meet it at the end of a data set.
SIZES = {"n": 0, "g": 1, "k": 1, "c": 1}
# What the spatial settings stand for where they are left out, and their least values.
SPATIAL = (("filter", 1), ("stride", 1), ("dilation", 1), ("pad_low", 0), ("pad_high", 0))
OPERAND_OPS = ("input", "weight", "output")
# Fields of text, or of what stands for one: a numpy type, an op.
TEXTS = (
    *("layout", "dtype", "weight_dtype", "direction", "elementwise", "compute", "pad_mode"),
    "block_scales",
    *(f"{name}_op" for name in OPERAND_OPS),
)
MAX_INDEX = 2**62
MAX_SIZE = 2**31 - 1


def check_texts(problem: Shapes) -> None:
    """Refuse anything but text in a field of text, by UnsupportedProblem."""
    for name in TEXTS:
        kinds = str | Fused if name == "elementwise" else str
        if not isinstance(value := name_of_dtype(getattr(problem, name)), kinds):
            raise UnsupportedProblem(
                f"{name.replace('_', ' ')} {reprlib.repr(value)}: not a text; "
                "give a name of its table, or leave it out"
            )


def settings_of(problem: Shapes) -> dict[str, Any]:
    """The fields in full: tuples for ints, defaults for what is empty, texts as they are spelled.

    Raises UnsupportedProblem for a size, a dimension, a type, a layout or an op that there is not.
    """
    dynamic = _truth("dynamic batch", problem.dynamic_batch)
    settings: dict[str, Any] = {
        name: _size(name, getattr(problem, name), 1 if name == "n" and dynamic else least)
        for name, least in SIZES.items()
    }
    settings["dynamic_batch"] = dynamic
    settings["result_operand"] = _truth("result operand", problem.result_operand)
    settings["kept_weight"] = _truth("kept weight", problem.kept_weight)
    settings["amax"] = _truth("amax", problem.amax)
    settings["dtype"] = dtype = name_of_dtype(problem.dtype)
    weight_dtype = name_of_dtype(problem.weight_dtype)
    image = tuple(problem.image) if isinstance(problem.image, Iterable) else (problem.image,)
    if (ndim := len(image)) not in (1, 2, 3):
        raise UnsupportedProblem(f"image {problem.image}: {ndim} dimensions; give 1, 2 or 3")
    spatial = {"image": _spatial("image", image, ndim, 1)}
    low: Any = problem.pad_low
    if low == SAME and problem.pad_high not in (SAME, ()):
        raise UnsupportedProblem(f"pad_high {problem.pad_high}: contradicts {SAME}; leave it out")
    for name, least in SPATIAL:
        given = getattr(problem, name)
        if name.startswith("pad") and low == SAME and given in (SAME, ()):
            given = same_pads(**spatial)[name == "pad_high"]
        left_out = spatial["pad_low"] if name == "pad_high" else least
        empty = isinstance(given, tuple) and not given
        wanted = left_out if empty and name != "filter" else given
        spatial[name] = _spatial(name, wanted, ndim, least)
    within = {f"{name}_within": _within(name, problem) for name in OPERAND_OPS}
    return (
        settings
        | spatial
        | within
        | {
            "layout": find_layout(problem.layout, ndim).spell(ndim),
            "pad_mode": _pad_mode(problem.pad_mode),
            "weight_dtype": weight_dtype or default_weight_dtype(dtype),
            "compute": compute_of(problem, dtype),
            "elementwise": parse(str(problem.elementwise)).text if problem.elementwise else "",
            **{
                f"{name}_op": parse_operand(text, name).text
                for name in OPERAND_OPS
                if (text := getattr(problem, f"{name}_op"))
            },
        }
    )


def _within(name: str, problem: Shapes) -> tuple[int, ...]:
    """The shape that an operand is a slice of, or UnsupportedProblem for what is none."""
    given: Any = getattr(problem, f"{name}_within")
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise UnsupportedProblem(
            f"{name} within {given!r}: not a shape; give a size for each axis of its layout"
        )
    return tuple(_size(f"{name} within", one, 0) for one in given)


def _pad_mode(word: str) -> str:
    """A mode of MODES, empty for zeros."""
    if word and word not in MODES:
        raise UnsupportedProblem(
            f"pad mode {word}: not in the table; {did_you_mean(word, MODES)}"
            f"known: {', '.join(MODES)}"
        )
    return "" if word == ZEROS else word


def check(problem: Shapes) -> None:
    """Refuse fields that do not go together, by UnsupportedProblem."""
    check_pair(problem.dtype, problem.weight_dtype)
    if problem.dynamic_batch and not problem.layout_row.batch_is_outermost(problem.g):
        plain = find_layout("NHWGC_GKYXC_NHWGK", problem.ndim).spell(problem.ndim)
        raise UnsupportedProblem(
            f"dynamic batch: in layout {problem.layout} images do not follow one another; "
            f"use {plain} or another with N first"
        )
    *operands, result = problem.tensors
    for name in OPERAND_OPS:
        if (op := getattr(problem, f"{name}_op")) and name not in operands:
            rule = (
                "of the result, not of an operand; use elementwise"
                if name == result
                else f"{problem.direction} has no such operand; leave it out"
            )
            raise UnsupportedProblem(f"{name} op {op}: {rule}")
    for name in OPERAND_OPS:
        if within := getattr(problem, f"{name}_within"):
            _check_slice(problem, name, within)
    if problem.block_scales:
        check_block_scales(problem)
    if problem.sums_alone:
        _check_sums(problem)
    if problem.amax:
        _check_amax(problem)
    if problem.kept_weight:
        _check_kept(problem)
    if problem.pad_mode and (spare := SPARE[problem.pad_mode]) is not None:
        for size, *pads in zip(problem.image, problem.pad_low, problem.pad_high, strict=True):
            if max(pads) > size + spare:
                raise UnsupportedProblem(
                    f"pad {max(pads)}: more than {problem.pad_mode} has of an image of {size}; "
                    f"use {size + spare} or less"
                )
    if problem.fused and problem.fused.d_dtype not in ("", "f32", problem.weight_dtype):
        raise UnsupportedProblem(
            f"elementwise {problem.elementwise}: d is the result's {problem.weight_dtype} or f32; "
            f"leave {problem.fused.d_dtype} out"
        )
    if (
        problem.fused
        and problem.fused.d_per == "channel"
        and problem.tensors[-1] in ("weight", "bias")
    ):
        raise UnsupportedProblem(
            f"elementwise {problem.elementwise}: a bias has an element for each channel of an "
            f"image, and the result is a {problem.tensors[-1]} gradient; use it in fwd or bwd_data"
        )
    for padded, extent in zip(problem.padded_image, problem.filter_extent, strict=True):
        if padded < extent:
            raise UnsupportedProblem(
                f"filter {problem.filter}: spans {problem.filter_extent} of a padded image of "
                f"{problem.padded_image}, so the output has no size; shrink it or pad more"
            )
    shapes = (problem.input_shape, problem.weight_shape, problem.output_shape)
    if max(map(math.prod, shapes)) > MAX_INDEX:
        raise UnsupportedProblem(
            f"problem {name_of(problem)}: a tensor of over 2^62 elements; shrink it"
        )
    check_packed(problem)


def _check_slice(problem: Shapes, name: str, within: tuple[int, ...]) -> None:
    """Refuse a larger shape that a tensor is no slice of, by UnsupportedProblem."""
    what, shape = f"{name} within {within}", getattr(problem, f"{name}_shape")
    if name not in problem.tensors:
        raise UnsupportedProblem(f"{what}: {problem.direction} has no such tensor; leave it out")
    if name == problem.tensors[-1] and not problem.result_operand:
        raise UnsupportedProblem(
            f"{what}: a result is a slice of the caller's memory alone; set result_operand too"
        )
    if len(within) != len(shape) or any(map(operator.lt, within, shape)):
        raise UnsupportedProblem(
            f"{what}: {shape} is no slice of it; give the larger tensor's shape"
        )
    if within == shape:
        raise UnsupportedProblem(f"{what}: the tensor's own shape; leave it out")
    letters = getattr(problem.layout_row, name)
    if problem.dynamic_batch and "N" in letters:
        before = letters.index("N") + 1
        if within[:before] != shape[:before]:
            raise UnsupportedProblem(
                f"{what}: of a dynamic batch a slice has all images; give it {shape[:before]} in "
                "front"
            )


def _check_sums(problem: Shapes) -> None:
    """Refuse what has no meaning where nothing is multiplied."""
    if problem.compute:
        raise UnsupportedProblem(
            f"compute {problem.compute}: {problem.direction} multiplies nothing; leave it out"
        )
    if problem.dynamic_batch:
        raise UnsupportedProblem(
            f"dynamic batch: not built for {problem.direction}; compile for each batch size"
        )


def _check_amax(problem: Shapes) -> None:
    """Refuse what has no largest absolute value here, by UnsupportedProblem."""
    wrong = {
        f"of {problem.direction}: it multiplies nothing": problem.sums_alone,
        f"of {problem.dtype}: sums of integers are no floats": problem.data_type.is_integer,
        "of a batch of 0: there is no number": problem.n == 0,
        "of a dynamic batch: not built": problem.dynamic_batch,
        f"of {problem.elementwise}: d is of the type of the sums then, not {problem.d_type.name}": (
            problem.takes_d and problem.d_type != problem.accumulator_type
        ),
    }
    for rule, is_wrong in wrong.items():
        if is_wrong:
            raise UnsupportedProblem(f"amax {rule}; leave one out")


def _check_kept(problem: Shapes) -> None:
    """Refuse what has no weight to keep, by UnsupportedProblem."""
    if "weight" not in problem.tensors[:-1]:
        raise UnsupportedProblem(f"kept weight of {problem.direction}: it reads none; leave it out")
    if problem.dynamic_batch or problem.weight_within:
        what = "a slice" if problem.weight_within else "a dynamic batch"
        raise UnsupportedProblem(f"kept weight of {what}: not built; leave one out")


def _size(name: str, value: Any, least: int) -> int:
    """A size from an integer of Python or numpy, or UnsupportedProblem."""
    try:
        size = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        size = -1
    if not least <= size <= MAX_SIZE:
        raise UnsupportedProblem(
            f"{name} {value!r}: not a size; use an integer from {least} to {MAX_SIZE}"
        )
    return size


def _truth(name: str, value: Any) -> bool:
    """A truth value of Python or numpy, or UnsupportedProblem."""
    if not isinstance(value, bool) and getattr(getattr(value, "dtype", None), "kind", "") != "b":
        raise UnsupportedProblem(f"{name} {value!r}: not a truth value; use true or false")
    return bool(value)


def _spatial(name: str, value: Any, ndim: int, lowest: int) -> tuple[int, ...]:
    """A per-dimension tuple from an int (repeated) or a sequence, or UnsupportedProblem."""
    try:
        values = tuple(value) if isinstance(value, Iterable) else (value,) * ndim
        sizes = tuple(-1 if isinstance(v, bool) else operator.index(v) for v in values)
    except TypeError:
        sizes = ()
    if len(sizes) != ndim:
        raise UnsupportedProblem(f"{name} {value}: not {ndim} integers; give one a dimension")
    if min(sizes) < lowest:
        raise UnsupportedProblem(f"{name} {value}: below {lowest}; use {lowest} or more")
    if max(sizes) > MAX_SIZE:
        raise UnsupportedProblem(f"{name} {value}: over {MAX_SIZE}; use less")
    return sizes
