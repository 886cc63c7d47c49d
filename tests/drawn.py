"""The random problems of all numeric suites: one generator that draws every feature together.

A feature with few values (`FEATURES`) takes each of them in turn, in an order of its own, so that a
few draws have all. Everything else is drawn by hypothesis (`tests/problems.py`). A draw depends on
its target and number alone.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.canonical import summed_products
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.problem.dtypes import CONVERSIONS, DTYPES, TERMS
from conv_compiler.problem.elementwise import ELEMENTWISE
from conv_compiler.problem.layouts import LAYOUTS, MIXED
from conv_compiler.problem.slices import is_sliced
from conv_compiler.targets import find_target
from tests.chips import EXECUTED
from tests.problems import F8_TYPES, KINDS, TYPES, elementwise_texts, independent, problems

# Those that the virtual GPU executes.
CHIPS = EXECUTED
# The first draws of a target: each arithmetic once. Every test run tries them on the CPU, and every
# second of them on each chip. With the slow tests, all, and blocks of so many draws besides.
DRAWS = MappingProxyType({"cpu": 17, **dict.fromkeys(CHIPS, 16), "gfx942": 17})
BLOCK = 50
SLOW_BLOCKS = MappingProxyType({"cpu": 30, **dict.fromkeys(CHIPS, 8)})
MOST_PARTS = 12


class Arithmetic(NamedTuple):
    """Types of data and weights, with what the data are rounded to before they are multiplied.

    A weight type of "" is drawn among those the data type may have.
    """

    data: str
    weight: str
    compute: str = ""


F8_DATA = tuple(dict.fromkeys(data for data, _ in F8_TYPES))
ARITHMETIC = (
    *(Arithmetic(data, weight) for data, weight in TYPES),
    *(Arithmetic(data, "") for data in F8_DATA),
    *(Arithmetic("f32", "f32", terms) for terms in TERMS),
    *(Arithmetic(data, "", name) for name, row in CONVERSIONS.items() for data in row.of),
    Arithmetic("f16", "", "bf8,fp8"),
    Arithmetic("bf16", "", "f8E4M3FN,f8E5M2"),
)
FEATURES: Mapping[str, Sequence[Any]] = MappingProxyType(
    {
        "direction": tuple(DIRECTIONS),
        "layout": (*LAYOUTS, "mixed"),
        "elementwise": ("", *ELEMENTWISE),
        "split": ("auto", 1, "several"),
        "kind": tuple(dict.fromkeys(KINDS)),
        "operand_op": ("", "", "relu", "scale(-0.5)", "scale(3)", "scale(0.3)"),
        "dynamic": (False, False, True),
        "result operand": (False, True),
        "amax": (False, True, True),
        "kept weight": (False, True, False),
        "slice": ("", "*", "channel"),
        "result slice": ("*", "channel", ""),
    }
)


class Draw(NamedTuple):
    """A problem with the split-K that it is compiled with."""

    problem: ConvProblem
    split_k: int | str


def arithmetic_of(target: str) -> tuple[Arithmetic, ...]:
    """What may be drawn on a target: f64 is for CPUs, xf32 for chips that have it."""
    of_f64 = (Arithmetic("f64", "f64"),) if target == "cpu" else ()
    row = find_target(target)
    there = (
        one
        for one in ARITHMETIC
        if one.compute not in CONVERSIONS
        or not DTYPES[CONVERSIONS[one.compute].dtype].multiplied_only
        or row.has_xf32
    )
    return (*there, *of_f64)


def _sliced(problem: ConvProblem, name: str, axis: str) -> ConvProblem:
    """The problem with a tensor that is a slice: of longer rows ("*"), or of more channels."""
    letters, shape = getattr(problem.layout_row, name), getattr(problem, f"{name}_shape")
    letters = letters.replace("*", "*" * problem.ndim)
    at = letters.rindex(axis if axis == "*" else "K" if name == "output" else "C")
    within = tuple(size + 3 * (place == at) for place, size in enumerate(shape))
    return replace(problem, **{f"{name}_within": within})


def _with_amax(problem: ConvProblem) -> ConvProblem:
    """The problem with the largest absolute value asked for; itself where it has none."""
    try:
        return replace(problem, amax=True)
    except UnsupportedProblem:
        return problem


def _turn(values: Sequence[Any], number: int, name: str) -> Any:
    """Value `number` of a sequence that repeats all values, in another order each time."""
    turn, place = divmod(number, len(values))
    order = list(range(len(values)))
    random.Random(f"{name} {turn}").shuffle(order)
    return values[order[place]]


@st.composite
def _problem(draw: st.DrawFn, ndim: int, arithmetic: Arithmetic, chosen: Mapping[str, Any]) -> Draw:
    """A problem of the chosen features; one that it cannot have is left out."""
    data, weight, compute = arithmetic
    pairs = [pair for pair in (*TYPES, *F8_TYPES, ("f64", "f64")) if pair[0] == data]
    types = draw(st.sampled_from([pair for pair in pairs if weight in ("", pair[1])]))
    kind = chosen["kind"]
    problem = draw(problems(ndim, types, kind))
    layout = draw(st.sampled_from(MIXED)) if chosen["layout"] == "mixed" else chosen["layout"]
    name, direction = chosen["elementwise"], chosen["direction"]
    if name and ELEMENTWISE[name].d_per == "channel" and direction == "bwd_weight":
        direction = "fwd"  # a weight gradient has no channels of an image
    op = draw(elementwise_texts(name, direction)) if name else ""
    problem = replace(
        problem,
        direction=direction,
        layout=layout.spell(ndim),
        elementwise=op,
        compute=compute,
    )
    side = draw(st.sampled_from(problem.tensors[:2]))
    problem = replace(problem, **{f"{side}_op": chosen["operand_op"]})
    # A kernel for any batch is tried on several: of small ones.
    if chosen["dynamic"] and problem.layout_row.batch_is_outermost(problem.g):
        problem = replace(problem.with_batch(min(problem.n, 5)), dynamic_batch=True)
    problem = replace(problem, result_operand=chosen["result operand"])
    if axis := chosen["slice"]:
        problem = _sliced(problem, problem.tensors[0], axis)
    if problem.result_operand and (axis := chosen["result slice"]):
        problem = _sliced(problem, problem.tensors[-1], axis)
    if "weight" in problem.tensors[:-1] and not problem.dynamic_batch:
        problem = replace(problem, kept_weight=chosen["kept weight"])
    if chosen["amax"]:
        problem = _with_amax(problem)
    most = min(summed_products(problem), MOST_PARTS)
    parts = draw(st.integers(2, most)) if most > 1 else 1
    return Draw(problem, parts if chosen["split"] == "several" else chosen["split"])


@cache
def drawn(target: str, number: int, direction: str = "") -> Draw:
    """Draw `number` of a target, of one direction or of each in turn: the same one in every run."""
    rows = arithmetic_of(target)
    index = rows.index(arithmetic := _turn(rows, number, f"{target} arithmetic"))
    ndim = 1 + (index + number // len(rows)) % 3  # each arithmetic meets each dimension
    chosen = {name: _turn(values, number, f"{target} {name}") for name, values in FEATURES.items()}
    if direction:
        chosen |= {"direction": direction, "elementwise": _op_of(direction, number, target)}
    name = " ".join(filter(None, ("drawn", target, str(number), direction)))
    (found,) = independent(_problem(ndim, arithmetic, chosen), 1, name)
    return found


def _op_of(direction: str, number: int, target: str) -> str:
    """The elementwise op of a draw of one direction, of those it has."""
    there = [
        name
        for name in FEATURES["elementwise"]
        if not name or direction != "bwd_weight" or ELEMENTWISE[name].d_per != "channel"
    ]
    return str(_turn(there, number, f"{target} elementwise"))


def features_of(target: str, draw: Draw) -> set[tuple[str, Any]]:
    """What a draw covers, read from the problem and not from what was chosen."""
    problem, split_k = draw
    ops = {getattr(problem, f"{name}_op").partition("(")[0] for name in problem.tensors[:2]}
    steps = [step.row.name for step in problem.fused.steps] if problem.fused else [""]
    plain = not problem.compute and not DTYPES[problem.dtype].is_f8
    return {
        ("direction", problem.direction),
        ("layout", problem.layout_row if problem.layout_row in LAYOUTS else "mixed"),
        ("dimensions", problem.ndim),
        ("data type", problem.dtype),
        ("compute", problem.compute),
        *(("elementwise", name) for name in steps),
        ("split", split_k if split_k in ("auto", 1) else "several"),
        ("any batch", problem.dynamic_batch),
        ("result operand", problem.result_operand),
        ("amax", problem.amax),
        ("kept weight", problem.kept_weight),
        ("slices", is_sliced(problem, problem.tensors[0])),
        ("result slices", is_sliced(problem, problem.tensors[-1])),
        ("amax into memory", problem.amax and problem.result_operand),
        ("depthwise", problem.g > 1 and problem.k == problem.c == 1),
        ("groups", problem.g > 1),
        ("one tap", max(problem.filter) == 1),
        ("strides", max(problem.stride) > 1),
        ("dilations", max(problem.dilation) > 1),
        ("pads", max(*problem.pad_low, *problem.pad_high) > 0),
        *(("operand op", op) for op in ops),
        *([("types", (problem.dtype, problem.weight_dtype))] if plain else []),
    }


def seed_of(target: str, number: int) -> int:
    """A seed for a draw's data."""
    return zlib.crc32(f"{target} {number}".encode())
