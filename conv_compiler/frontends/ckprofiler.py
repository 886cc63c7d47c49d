"""ckProfiler lines: `ckProfiler grouped_conv_bwd_weight 1 2 0 1 0 1 2 32 4 64 64 3 3 ... all`.

Arguments are positional, as in Composable Kernel's profiler/src/
profile_grouped_conv_bwd_weight.cpp; channels are per group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends.request import Request, is_count, parse_split_k
from conv_compiler.problem import ConvProblem

_Row = TypeVar("_Row")

OPERATIONS = ("grouped_conv_bwd_weight",)
_UNBUILT_OPERATIONS = (
    "conv_fwd",
    "conv_bwd_data",
    "grouped_conv_fwd",
    "grouped_conv_bwd_data",
)

# Digit -> (data type, weight type, compute types); CK's int8 instances write int8 weights.
DTYPES = MappingProxyType(
    {
        "0": ("f32", "f32", ""),
        "1": ("f16", "f16", ""),
        "2": ("bf16", "f32", ""),
        "3": ("f16", "f16", "bf8,fp8"),
        "4": ("i8", "i8", ""),
        "5": ("bf16", "bf16", ""),
    }
)
_UNBUILT_DTYPES = MappingProxyType({"6": "f32 as tf32"})

# Digit -> layout, in the spelling of two dimensions.
LAYOUTS = MappingProxyType(
    {
        "1": "GNHWC_GKYXC_GNHWK",
        "2": "NHWGC_GKYXC_NHWGK",
        "3": "NGCHW_GKYXC_NGKHW",
        "4": "NGCHW_GKCYX_NGKHW",
    }
)

_UNBUILT_LAYOUTS = MappingProxyType({"0": "GNCHW"})

# Positional arguments before the sizes; those from `verify` to `time` say how ckProfiler measures.
_HEAD = ("dtype", "layout", "verify", "init", "log", "time", "ndim")
_SIZES = ("g", "n", "k", "c")
_SPATIAL = ("filter", "image", "stride", "dilation", "pad_low", "pad_high")


def parse(tokens: Sequence[str]) -> tuple[Request, ...]:
    """The request of one line, with or without the leading program name.

    Raises UnsupportedProblem naming the argument that is missing, malformed or not built.
    """
    words = list(tokens)
    if words and words[0].rpartition("/")[2] == "ckProfiler":
        words = words[1:]
    operation = words[0] if words else ""
    if operation not in OPERATIONS:
        why = "not built" if operation in _UNBUILT_OPERATIONS else "not an operation of ckProfiler"
        raise UnsupportedProblem(f"{operation or 'line'}: {why}; use {', '.join(OPERATIONS)}")
    words = words[1:]
    if len(words) < len(_HEAD):
        raise UnsupportedProblem(
            f"{_HEAD[len(words)]}: missing; {operation} starts with {' '.join(_HEAD)}"
        )
    head = dict(zip(_HEAD, words, strict=False))
    for name in ("verify", "init", "log", "time"):
        _integer(name, head[name])
    data, weight, compute = _row("dtype", head["dtype"], DTYPES, _UNBUILT_DTYPES)
    types: dict[str, Any] = {"dtype": data, "weight_dtype": weight, "compute": compute}
    layout = _row("layout", head["layout"], LAYOUTS, _UNBUILT_LAYOUTS)
    ndim = _integer("ndim", head["ndim"])
    if ndim not in (1, 2, 3):
        raise UnsupportedProblem(f"ndim {ndim}: not a number of dimensions; use 1, 2 or 3")
    expected = len(_HEAD) + len(_SIZES) + len(_SPATIAL) * ndim + 1
    if len(words) != expected:
        raise UnsupportedProblem(
            f"{operation}: {len(words)} arguments for ndim {ndim}; it takes {expected}: "
            f"{' '.join(_HEAD)} G N K C, {ndim} each of {', '.join(_SPATIAL)}, and splitK"
        )
    rest = iter(words[len(_HEAD) :])
    sizes: dict[str, Any] = {name: _integer(name, next(rest)) for name in _SIZES}
    spatial: dict[str, Any] = {
        name: tuple(_integer(name, next(rest)) for _ in range(ndim)) for name in _SPATIAL
    }
    problem = ConvProblem(layout=layout, **types, **sizes, **spatial)
    return (Request(problem=problem, split_k=parse_split_k(next(rest), "splitK")),)


def _integer(name: str, text: str) -> int:
    if not is_count(text):
        raise UnsupportedProblem(f"{name} {text}: not an integer of 0 or more; mend the line")
    return int(text)


def _row(
    name: str,
    digit: str,
    table: Mapping[str, _Row],
    unbuilt: Mapping[str, str],
) -> _Row:
    """The row of a digit; UnsupportedProblem for one that is unknown or not built."""
    if digit in table:
        return table[digit]
    why = f"means {unbuilt[digit]}, which is not built" if digit in unbuilt else "not in the table"
    known = ", ".join(f"{d} ({_spell(row)})" for d, row in table.items())
    raise UnsupportedProblem(f"{name} {digit}: {why}; use {known}")


def _spell(row: object) -> str:
    return "/".join(row) if isinstance(row, tuple) else str(row)
