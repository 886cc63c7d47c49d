# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ckProfiler lines: `ckProfiler grouped_conv_bwd_weight 1 2 0 1 0 1 2 32 4 64 64 3 3 ... all`.

Arguments are positional; channels are per group. Each row of OPERATIONS has the order in which the
code of its `source` reads them, which its help text and the scripts beside it may contradict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

from conv_compiler.errors import UnsupportedProblem, did_you_mean
from conv_compiler.frontends.request import ALL_SPLITS, POWERS, Request, SplitK, is_count, is_number
from conv_compiler.problem.conv_problem import ConvProblem

_Row = TypeVar("_Row")
_Table = Mapping[str, _Row]
_Types = tuple[str, str, str]

_GROUPED = MappingProxyType(
    {
        "0": "GNHWC_GKYXC_GNHWK",
        "1": "NHWGC_GKYXC_NHWGK",
        "2": "NGCHW_GKYXC_NGKHW",
        "3": "NGCHW_GKCYX_NGKHW",
    }
)
_FOLDED = MappingProxyType({"0": "NCHW_KCYX_NKHW", "1": "NHWC_KYXC_NHWK"})
# (data type, result's type, compute types); TF32 as bf16x3, the closer one.
_FLOATS = MappingProxyType(
    {"0": ("f32", "f32", ""), "1": ("f16", "f16", ""), "2": ("bf16", "bf16", "")}
)
_WITH_I8 = MappingProxyType({**_FLOATS, "3": ("i8", "i8", "")})
_TF32 = ("f32", "f32", "bf16x3")

# Those that say how ckProfiler measures; `index`, the width of its indices, is ours to choose.
_UNUSED = ("verify", "init", "log", "time")
_NOTHING: Mapping[str, str] = MappingProxyType({})
_INDEX_WIDTHS = MappingProxyType({"0": "32-bit", "1": "64-bit"})
# Behind the head, in the order of Composable Kernel's library/src/utility/convolution_parameter.cpp
# (ROCm/composable_kernel @8e22e1ae3).
_SIZES = ("g", "n", "k", "c")
_SPATIAL = ("filter", "image", "stride", "dilation", "pad_low", "pad_high")
_OLD, _NEW = "composable_kernel @8e22e1ae3 ", "rocm-libraries @094564950 projects/composablekernel/"
# Each of these was read at a commit of its own before that one.
_TILE = "rocm-libraries @05cb1abf, @015930f7 or @0cbf492c projects/composablekernel/"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation of ckProfiler.

    `head` names the arguments before the sizes, in the order in which `source` (a repository of
    ROCm, a commit and a file) reads argv[2] and on. `dtypes` maps digits to (data type, result's
    type, compute types), `layouts` to layouts in the spelling of two dimensions; the unbuilt ones
    to what they mean. `split_k` tells whether the line ends with a split: "needed", "allowed" or
    not (""); `splits` are the words for it that are no number of 1 or more.
    """

    source: str
    direction: str
    head: tuple[str, ...]
    dtypes: _Table[_Types]
    layouts: _Table[str]
    split_k: str = ""
    splits: Mapping[str, tuple[SplitK, ...]] = field(default_factory=dict)
    unbuilt_dtypes: Mapping[str, str] = field(default_factory=dict)
    unbuilt_layouts: Mapping[str, str] = field(default_factory=dict)


_BWD_WEIGHT = Operation(
    source=f"{_NEW}profiler/src/profile_grouped_conv_bwd_weight.cpp",
    direction="bwd_weight",
    head=("dtype", "layout", "verify", "init", "log", "time", "ndim"),
    # CK's int8 instances write int8 weights.
    dtypes=MappingProxyType(
        {
            "0": ("f32", "f32", ""),
            "1": ("f16", "f16", ""),
            "2": ("bf16", "f32", ""),
            "3": ("f16", "f16", "bf8,fp8"),
            "4": ("i8", "i8", ""),
            "5": ("bf16", "bf16", ""),
            "6": _TF32,
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
    # Its operations take 0 as it is and clamp it to one part.
    splits=MappingProxyType({"all": ALL_SPLITS, "-1": ("auto",), "0": (1,)}),
)
_BWD_DATA = Operation(
    source=f"{_NEW}profiler/src/profile_grouped_conv_bwd_data.cpp",
    direction="bwd_data",
    head=("dtype", "layout", "verify", "init", "log", "time", "ndim"),
    dtypes=MappingProxyType({**_FLOATS, "3": _TF32}),
    layouts=_GROUPED,
    split_k="allowed",  # by older ones not taken
    # Numbers below 1 try all powers (profile_grouped_conv_bwd_data_impl.hpp).
    splits=MappingProxyType({"0": POWERS, "-1": POWERS}),
)
_FWD = Operation(
    source=f"{_NEW}profiler/src/profile_grouped_conv_fwd.cpp",
    direction="fwd",
    # So argv[3] and argv[4] are read there and @8e22e1ae3; the help of that one swaps the two.
    head=("dtype", "layout", "index", "verify", "init", "log", "time", "ndim"),
    dtypes=MappingProxyType({**_WITH_I8, "8": _TF32}),
    unbuilt_dtypes=MappingProxyType(dict.fromkeys("4567", "8-bit floats as the output")),
    layouts=_GROUPED,
)
_CONV_FWD = Operation(
    source=f"{_OLD}profiler/src/profile_conv_fwd.cpp",
    direction="fwd",
    head=("dtype", "layout", "verify", "init", "log", "time", "ndim"),
    dtypes=_WITH_I8,
    layouts=_FOLDED,
)


def _some(table: _Table[_Row], digits: str) -> _Table[_Row]:
    return MappingProxyType({digit: table[digit] for digit in digits})


OPERATIONS = MappingProxyType(
    {
        "grouped_conv_bwd_weight": _BWD_WEIGHT,
        "grouped_conv_bwd_data": _BWD_DATA,
        "grouped_conv_fwd": _FWD,
        "conv_bwd_data": replace(
            _CONV_FWD, direction="bwd_data", source=f"{_OLD}profiler/src/profile_conv_bwd_data.cpp"
        ),
        "conv_fwd": _CONV_FWD,
        # Those of CK Tile: the same arguments, fewer cases. Their data gradient's split 0 is its
        # instances' to choose.
        "grouped_conv_bwd_weight_tile": replace(
            _BWD_WEIGHT,
            source=f"{_TILE}profiler/src/profile_grouped_conv_bwd_weight_tile.cpp",
            dtypes=_some(_BWD_WEIGHT.dtypes, "15"),
            layouts=_some(_BWD_WEIGHT.layouts, "2"),
            unbuilt_layouts={},
            splits=MappingProxyType({"all": ALL_SPLITS, "-1": ("auto",)}),
        ),
        "grouped_conv_bwd_data_tile": replace(
            _BWD_DATA,
            source=f"{_TILE}profiler/src/profile_grouped_conv_bwd_data_tile.cpp",
            dtypes=_some(_FLOATS, "12"),
            layouts=_some(_GROUPED, "1"),
            split_k="needed",
            splits={},
        ),
        "grouped_conv_fwd_tile": replace(
            _FWD,
            source=f"{_TILE}profiler/src/profile_grouped_conv_fwd_tile.cpp",
            dtypes=_some(_FLOATS, "012"),
            unbuilt_dtypes={},
            layouts=_some(_GROUPED, "1"),
        ),
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
        near = did_you_mean(name, OPERATIONS)
        raise UnsupportedProblem(
            f"{name or 'line'}: not an operation of ckProfiler; {near}use {', '.join(OPERATIONS)}"
        )
    words, names = words[1:], operation.head
    if "--instances" in words:
        raise UnsupportedProblem(
            "--instances: lists ckProfiler's kernels and states no problem; "
            "conv-compiler list strategies lists ours, conv-compiler sweep times those of a problem"
        )
    refuse_flags(words, "ckProfiler")
    if len(words) < len(names):
        raise UnsupportedProblem(
            f"{names[len(words)]}: missing; {name} starts with {' '.join(names)}"
        )
    head = dict(zip(names, words, strict=False))
    for unused in _UNUSED:
        read_integer(unused, head[unused])
    if "index" in head:
        _row("index", head["index"], _INDEX_WIDTHS)
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
    return (_with_split(Request(problem=problem), split_k, operation),)


def _with_split(request: Request, word: str, operation: Operation) -> Request:
    """The request with the split that a word asks for, and a note where that is not what it says.

    Raises UnsupportedProblem for a word that is neither in the operation's table nor a number.
    """
    if not word:
        return request
    if (known := operation.splits.get(word)) is None:
        if not (is_count(word) and int(word) >= 1):
            words = ", ".join(operation.splits)
            raise UnsupportedProblem(
                f"splitK {word}: not a split; use {f'{words}, or ' if words else ''}"
                "a number of 1 or more"
            )
        known = (int(word),)
    note = ""
    if word == "0":
        note = f"splitK 0: Composable Kernel takes it as {', '.join(map(str, known))}, and so do we"
    return replace(request, split_k=known, note=note)


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


def refuse_flags(words: Sequence[str], program: str) -> None:
    """Raise UnsupportedProblem where a flag stands among the numbers of a line."""
    if flag := next((word for word in words if word.startswith("-") and not is_number(word)), ""):
        raise UnsupportedProblem(
            f"{flag}: not an argument of {program} that states a problem; drop it, or put a flag "
            f"of conv-compiler before {program}"
        )


def read_integer(name: str, text: str) -> int:
    """The number a word states; UnsupportedProblem unless it is an integer of 0 or more."""
    if not is_count(text):
        raise UnsupportedProblem(f"{name} {text}: not an integer of 0 or more; mend the line")
    return int(text)


def _row(
    name: str,
    digit: str,
    table: _Table[_Row],
    unbuilt: Mapping[str, str] = _NOTHING,
) -> _Row:
    """The row of a digit; UnsupportedProblem for one that is unknown or not built."""
    if digit in table:
        return table[digit]
    why = f"means {unbuilt[digit]}, which is not built" if digit in unbuilt else "not in the table"
    known = ", ".join(f"{d} ({_spell(row)})" for d, row in table.items())
    raise UnsupportedProblem(f"{name} {digit}: {why}; use {known}")


def _spell(row: object) -> str:
    return "/".join(row) if isinstance(row, tuple) else str(row)
