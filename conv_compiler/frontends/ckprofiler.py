"""ckProfiler lines: `ckProfiler grouped_conv_bwd_weight 1 2 0 1 0 1 2 32 4 64 64 3 3 ... all`.

Arguments are positional, as in Composable Kernel's profiler/src/profile_<operation>.cpp; channels
are per group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends.request import Request, is_count, parse_split_k
from conv_compiler.problem import ConvProblem

_Row = TypeVar("_Row")
_Table = Mapping[str, _Row]
_Types = tuple[str, str, str]

_GROUPED = MappingProxyType({"0": "GNHWC_GKYXC_GNHWK", "1": "NHWGC_GKYXC_NHWGK"})
_FOLDED = MappingProxyType({"0": "NCHW_KCYX_NKHW", "1": "NHWC_KYXC_NHWK"})
_FLOATS = MappingProxyType(
    {"0": ("f32", "f32", ""), "1": ("f16", "f16", ""), "2": ("bf16", "bf16", "")}
)
_WITH_I8 = MappingProxyType({**_FLOATS, "3": ("i8", "i8", "")})

# Positional arguments before the sizes; those from `verify` to `time` say how ckProfiler measures.
_HEAD = ("dtype", "layout", "verify", "init", "log", "time", "ndim")
_UNUSED = ("index", "verify", "init", "log", "time")
_SIZES = ("g", "n", "k", "c")
_SPATIAL = ("filter", "image", "stride", "dilation", "pad_low", "pad_high")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation of ckProfiler.

    `dtypes` maps digits to (data type, result's type, compute types), `layouts` to layouts in the
    spelling of two dimensions; the unbuilt ones to what they mean. `split_k` tells whether the line
    ends with a split: "needed", "allowed" or not ("").
    """

    direction: str
    dtypes: _Table[_Types]
    layouts: _Table[str]
    head: tuple[str, ...] = _HEAD
    split_k: str = ""
    unbuilt_dtypes: Mapping[str, str] = field(default_factory=dict)
    unbuilt_layouts: Mapping[str, str] = field(default_factory=dict)


OPERATIONS = MappingProxyType(
    {
        "grouped_conv_bwd_weight": Operation(
            direction="bwd_weight",
            # CK's int8 instances write int8 weights.
            dtypes=MappingProxyType(
                {
                    "0": ("f32", "f32", ""),
                    "1": ("f16", "f16", ""),
                    "2": ("bf16", "f32", ""),
                    "3": ("f16", "f16", "bf8,fp8"),
                    "4": ("i8", "i8", ""),
                    "5": ("bf16", "bf16", ""),
                    # As TF32, of which bf16x3 is the closer one.
                    "6": ("f32", "f32", "bf16x3"),
                }
            ),
            layouts=MappingProxyType(
                {
                    "1": "GNHWC_GKYXC_GNHWK",
                    "2": "NHWGC_GKYXC_NHWGK",
                    "3": "NGCHW_GKYXC_NGKHW",
                    "4": "NGCHW_GKCYX_NGKHW",
                }
            ),
            unbuilt_layouts=MappingProxyType({"0": "GNCHW"}),
            split_k="needed",
        ),
        # Newer ckProfilers take a split at the end.
        "grouped_conv_bwd_data": Operation(
            direction="bwd_data", dtypes=_FLOATS, layouts=_GROUPED, split_k="allowed"
        ),
        "grouped_conv_fwd": Operation(
            direction="fwd",
            dtypes=_WITH_I8,
            unbuilt_dtypes=MappingProxyType(dict.fromkeys("4567", "8-bit floats as the output")),
            layouts=MappingProxyType({**_GROUPED, "2": "NGCHW_GKYXC_NGKHW"}),
            head=("dtype", "index", *_HEAD[1:]),
        ),
        "conv_bwd_data": Operation(direction="bwd_data", dtypes=_WITH_I8, layouts=_FOLDED),
        "conv_fwd": Operation(direction="fwd", dtypes=_WITH_I8, layouts=_FOLDED),
    }
)


def parse(tokens: Sequence[str]) -> tuple[Request, ...]:
    """The request of one line, with or without the leading program name.

    Raises UnsupportedProblem naming the argument that is missing, malformed or not built.
    """
    words = list(tokens)
    if words and words[0].rpartition("/")[2] == "ckProfiler":
        words = words[1:]
    name = words[0] if words else ""
    if (operation := OPERATIONS.get(name)) is None:
        raise UnsupportedProblem(
            f"{name or 'line'}: not an operation of ckProfiler; use {', '.join(OPERATIONS)}"
        )
    words, names = words[1:], operation.head
    if len(words) < len(names):
        raise UnsupportedProblem(
            f"{names[len(words)]}: missing; {name} starts with {' '.join(names)}"
        )
    head = dict(zip(names, words, strict=False))
    for unused in _UNUSED:
        read_integer(unused, head.get(unused, "0"))
    types = _row("dtype", head["dtype"], operation.dtypes, operation.unbuilt_dtypes)
    data, result, compute = types
    layout = _row("layout", head["layout"], operation.layouts, operation.unbuilt_layouts)
    sizes, split_k = read_sizes(name, head["ndim"], words[len(names) :], operation.split_k)
    problem = ConvProblem(
        direction=operation.direction,
        layout=layout,
        dtype=data,
        weight_dtype=result,
        compute=compute,
        **sizes,
    )
    asked = parse_split_k(split_k, "splitK") if split_k else ()
    return (Request(problem=problem, split_k=asked),)


# Numbers of words behind the sizes.
_BEHIND = MappingProxyType({"needed": (1,), "allowed": (0, 1), "": (0,)})


def read_sizes(
    name: str, dimensions: str, words: Sequence[str], split_k: str = ""
) -> tuple[dict[str, Any], str]:
    """(the problem's sizes by field, the split behind them, empty without one).

    Raises UnsupportedProblem where the words are not G N K C and the spatial arguments of so many
    dimensions, or malformed.
    """
    ndim = read_integer("ndim", dimensions)
    if ndim not in (1, 2, 3):
        raise UnsupportedProblem(f"ndim {ndim}: not a number of dimensions; use 1, 2 or 3")
    expected = len(_SIZES) + len(_SPATIAL) * ndim
    if len(words) - expected not in _BEHIND[split_k]:
        behind = {"needed": " and splitK", "allowed": " and splitK or nothing", "": ""}
        raise UnsupportedProblem(
            f"{name}: {len(words)} arguments behind ndim {ndim}; it takes {expected}"
            f"{behind[split_k]}: G N K C, {ndim} each of {', '.join(_SPATIAL)}"
        )
    rest = iter(words)
    sizes: dict[str, Any] = {size: read_integer(size, next(rest)) for size in _SIZES}
    for kind in _SPATIAL:
        sizes[kind] = tuple(read_integer(kind, next(rest)) for _ in range(ndim))
    return sizes, next(rest, "")


def read_integer(name: str, text: str) -> int:
    """The number a word states; UnsupportedProblem unless it is an integer of 0 or more."""
    if not is_count(text):
        raise UnsupportedProblem(f"{name} {text}: not an integer of 0 or more; mend the line")
    return int(text)


def _row(
    name: str,
    digit: str,
    table: _Table[_Row],
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
