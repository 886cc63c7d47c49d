# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A problem as text: its name, and what a JSON object states of it."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import UnsupportedProblem, did_you_mean
from conv_compiler.problem.dtypes import default_weight_dtype
from conv_compiler.typed import fields

if TYPE_CHECKING:
    from conv_compiler.problem.shapes import Shapes

_NEEDED = frozenset({"n", "k", "c", "image", "filter"})
_SPATIAL = ("image", "filter", "stride", "dilation", "pad_low", "pad_high")
_OPERAND_OPS = ("input_op", "weight_op", "output_op")
# Of an elementwise op's text, as file names may have them.
_NAME_CHARACTERS = str.maketrans("(,:>", "----", ")")


def _times(values: tuple[int, ...]) -> str:
    return "x".join(map(str, values))


def name_of(problem: Shapes) -> str:
    """A short readable name; equal problems have equal names. What is the default is left out."""
    unit, zero = (1,) * problem.ndim, (0,) * problem.ndim
    any_ = "any" if problem.dynamic_batch else ""
    parts = [
        f"{problem.direction}_n{any_}{problem.n}g{problem.g}k{problem.k}c{problem.c}",
        f"i{_times(problem.image)}",
        f"f{_times(problem.filter)}",
    ]
    if problem.stride != unit:
        parts.append(f"s{_times(problem.stride)}")
    if problem.dilation != unit:
        parts.append(f"d{_times(problem.dilation)}")
    if (problem.pad_low, problem.pad_high) != (zero, zero):
        high = "" if problem.pad_low == problem.pad_high else f"-{_times(problem.pad_high)}"
        parts.append(f"p{_times(problem.pad_low)}{high}")
    if problem.pad_mode:
        parts.append(problem.pad_mode)
    parts += [problem.layout.lower().replace("_", "-"), problem.dtype]
    if problem.weight_dtype != default_weight_dtype(problem.dtype):
        parts.append(problem.weight_dtype)
    if problem.block_scales:
        parts.append(problem.block_scales)
    if problem.compute:
        parts.append(problem.compute.replace(",", "-"))
    if problem.elementwise:
        parts.append(problem.elementwise.translate(_NAME_CHARACTERS))
    for name in _OPERAND_OPS:
        if op := getattr(problem, name):
            parts.append(f"{name.removesuffix('_op')}-{op.translate(_NAME_CHARACTERS)}")
    for name in ("input", "weight", "output"):
        if within := getattr(problem, f"{name}_within"):
            parts.append(f"{name}-in-{_times(within)}")
    if problem.result_operand:
        parts.append("into")
    if problem.kept_weight:
        parts.append("kept")
    if problem.amax:
        parts.append("amax")
    return "_".join(parts)


def fields_of(values: Any, kind: type[Shapes]) -> dict[str, Any]:
    """The fields that a JSON object states, lists as tuples; a lone number stands for a list.

    Raises UnsupportedProblem for anything but an object, for unknown or missing keys and for values
    of other types.
    """
    if not isinstance(values, dict):
        shown = reprlib.repr(values)
        raise UnsupportedProblem(f"problem {shown}: not a JSON object; give name: value pairs")
    known = tuple(kind.__dataclass_fields__)
    if unknown := sorted(set(values) - set(known)):
        near = did_you_mean(str(unknown[0]), known)
        raise UnsupportedProblem(
            f"key {unknown[0]}: not of a problem; {near}known: {', '.join(known)}"
        )
    if missing := sorted(_NEEDED - set(values)):
        raise UnsupportedProblem(f"problem: {missing[0]} is missing; every size must be given")
    lists = dict.fromkeys(_SPATIAL, int | tuple[int, ...])
    return fields(values, kind, "", UnsupportedProblem, **lists)
