# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""oneDNN's benchdnn lines: `benchdnn --conv --dir=BWD_W --dt=f32 g2mb8ic64ih56oc64kh3ph1n"res2"`.

Settings and the letters of a problem are those of oneDNN's tests/benchdnn/doc/driver_conv.md and
knobs in tests/benchdnn/conv/conv_aux.cpp: channels are totals over the groups, and a dilation of 0
is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from conv_compiler.errors import UnsupportedProblem, did_you_mean
from conv_compiler.frontends.request import Request
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import BIAS

PROGRAM = "benchdnn"

# --dir -> our direction, and whether a bias is part of it.
_DIRECTIONS = MappingProxyType(
    {
        "FWD_B": ("fwd", True),
        "FWD_D": ("fwd", False),
        "FWD_I": ("fwd", False),
        "BWD_D": ("bwd_data", False),
        "BWD_W": ("bwd_weight", False),
        "BWD_WB": ("bwd_weight", True),
    }
)
_DTYPES = MappingProxyType(
    {"f64": "f64", "f32": "f32", "f16": "f16", "bf16": "bf16", "s8": "i8", "s32": "i32"}
)
# Letters of a layout: `a` is the batch or K, `b` the channels, `x` space. `any` leaves it to who
# computes: images are then alike, and channels last, which ours reads best, where neither is given.
_TAGS = MappingProxyType({"any": None, "axb": True, "abx": False})
# How to measure, and which engine to do it on.
_IGNORED = ("mode", "engine", "reset", "fix-times-per-prb", "max-ms-per-prb", "perf-template", "v")
_SETTINGS = ("dir", "dt", "stag", "wtag", "dtag", "mb", "alg", *_IGNORED)

_SIZES = re.compile(r"(mb|[iokspd][dhw]|ic|oc|g)(\d+)_?")


@dataclass(frozen=True, kw_only=True)
class _Line:
    """What a line states: settings by name, sizes by letters, a name of its own."""

    settings: Mapping[str, str]
    sizes: Mapping[str, int]
    label: str


def parse(tokens: Sequence[str]) -> tuple[Request, ...]:
    """The requests of one line, with or without the leading program name.

    Raises UnsupportedProblem for settings that are unknown or not built, and for sizes that are
    missing or contradict one another.
    """
    words = list(tokens)
    if words and words[0].rpartition("/")[2] == PROGRAM:
        words = words[1:]
    line = _read(words)
    direction, has_bias = _row("dir", line.settings.get("dir", "FWD_B"), _DIRECTIONS)
    first, result = _types(line.settings.get("dt", "f32"), direction)
    problem = ConvProblem(
        direction=direction,
        dtype=first,
        weight_dtype=result,
        layout=_layout(line.settings),
        elementwise="bias" if has_bias and direction == "fwd" else "",
        **_problem(line),
    )
    problems = [problem]
    if has_bias and not problem.elementwise:
        problems.append(replace(problem, direction=BIAS))
    ignored = tuple(f"--{name}" for name in line.settings if name in _IGNORED)
    return tuple(Request(problem=one, label=line.label, ignored=ignored) for one in problems)


def _read(words: Sequence[str]) -> _Line:
    """The parts of a line."""
    settings: dict[str, str] = {}
    found = []
    for word in words:
        if not word.startswith("-"):
            found.append(word)
        elif word != "--conv":
            name, _, value = word.lstrip("-").partition("=")
            if name not in _SETTINGS:
                near = did_you_mean(name, _SETTINGS)
                raise UnsupportedProblem(
                    f"{word}: not a setting of benchdnn --conv that is built; {near}drop it"
                )
            settings[name] = value
    if settings.get("alg", "direct") not in ("direct", "auto"):
        raise UnsupportedProblem(f"--alg {settings['alg']}: not built; use direct or auto")
    if len(found) != 1:
        raise UnsupportedProblem(
            f"benchdnn line: {len(found)} problems; give one, such as mb8ic64ih56oc64kh3ph1"
        )
    text, _, label = found[0].partition("n")
    sizes: dict[str, int] = {}
    at = 0
    while match := _SIZES.match(text, at):
        sizes[match[1]] = int(match[2])
        at = match.end()
    if at < len(text):
        raise UnsupportedProblem(
            f"{found[0]}: what begins at {text[at:]} is no size; write letters and numbers, "
            "such as mb8ic64ih56oc64kh3ph1"
        )
    if "mb" in settings:
        sizes["mb"] = int(settings["mb"])
    return _Line(settings=settings, sizes=sizes, label=label)


def _problem(line: _Line) -> dict[str, Any]:
    """The fields of the sizes."""
    sizes = line.sizes
    spaces = [space for space in "dhw" if any(f"{what}{space}" in sizes for what in "iok")]
    if not spaces:
        raise UnsupportedProblem("ih: missing; every size must be given")
    # Fewer letters stand for squares and cubes: `ih56` is 56 x 56.
    spaces = list("dhw"["dhw".index(spaces[0]) :])
    groups = sizes.get("g", 1)
    image = _each(sizes, "i", spaces)
    filter = _each(sizes, "k", spaces)
    stride = _each(sizes, "s", spaces, 1)
    dilation = [1 + d for d in _each(sizes, "d", spaces, 0)]
    reach = [d * (f - 1) + 1 for d, f in zip(dilation, filter, strict=True)]
    rows = list(zip(image, reach, stride, strict=True))
    given = _each(sizes, "o", spaces, -1)
    # As benchdnn does: pads that centre the image, or none where the output is not given.
    low = [
        pad if pad >= 0 else max((out - 1) * s - i + r, 0) // 2 if out >= 0 else 0
        for pad, out, (i, r, s) in zip(_each(sizes, "p", spaces, -1), given, rows, strict=True)
    ]
    outs = [
        out if out >= 0 else (i + 2 * pad - r) // s + 1
        for pad, out, (i, r, s) in zip(low, given, rows, strict=True)
    ]
    high = [(o - 1) * s - i + r - p for o, p, (i, r, s) in zip(outs, low, rows, strict=True)]
    return {
        "n": sizes.get("mb", 2),
        "g": groups,
        "k": _per_group(sizes, "oc", groups),
        "c": _per_group(sizes, "ic", groups),
        "image": tuple(image),
        "filter": tuple(filter),
        "stride": tuple(stride),
        "dilation": tuple(dilation),
        "pad_low": tuple(low),
        "pad_high": tuple(max(one, 0) for one in high),
    }


def _each(
    sizes: Mapping[str, int], what: str, spaces: Sequence[str], default: int | None = None
) -> list[int]:
    """A size along each dimension; the last one given stands for those behind it."""
    found: list[int] = []
    for space in spaces:
        value = sizes.get(f"{what}{space}", found[-1] if found else default)
        if value is None:
            raise UnsupportedProblem(f"{what}{space}: missing; every size must be given")
        found.append(value)
    return found


def _per_group(sizes: Mapping[str, int], name: str, groups: int) -> int:
    if name not in sizes:
        raise UnsupportedProblem(f"{name}: missing; every size must be given")
    if not groups or sizes[name] % groups:
        raise UnsupportedProblem(
            f"{name} {sizes[name]}: not divisible by g {groups}; benchdnn's channels are totals "
            "over the groups"
        )
    return sizes[name] // groups


def _types(text: str, direction: str) -> tuple[str, str]:
    """(type of the operands, type of the result) of `f32` or of source, weight and output."""
    names = text.split(":")
    if len(names) not in (1, 3):
        raise UnsupportedProblem(f"--dt {text}: not one type or three; use f32 or bf16:f32:bf16")
    source, weight, output = (_row("dt", name, _DTYPES) for name in (names * 3)[:3])
    pairs = {
        "fwd": (source, weight, output),
        "bwd_data": (output, weight, source),
        "bwd_weight": (source, output, weight),
    }
    first, second, result = pairs[direction]
    if first != second:
        raise UnsupportedProblem(
            f"--dt {text}: operands of two types are not built; give both the same"
        )
    return first, result


def _layout(settings: Mapping[str, str]) -> str:
    last = {name: _row(name, settings.get(name, "any"), _TAGS) for name in ("stag", "wtag", "dtag")}

    def first_of(*names: str) -> bool:
        return next((last[name] for name in names if last[name] is not None), True)

    return "_".join(
        (
            "NHWC" if first_of("stag", "dtag") else "NCHW",
            "KYXC" if first_of("wtag") else "KCYX",
            "NHWK" if first_of("dtag", "stag") else "NKHW",
        )
    )


def _row(name: str, word: str, table: Mapping[str, Any]) -> Any:
    if word not in table:
        near = did_you_mean(word, table)
        raise UnsupportedProblem(f"--{name} {word}: not built; {near}use {', '.join(table)}")
    return table[word]
