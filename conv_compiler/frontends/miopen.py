# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MIOpenDriver lines: `MIOpenDriver convfp16 -n 32 -c 256 -H 14 -W 14 -k 256 -y 3 ... -F 4`.

Flags, their short forms and their defaults are those of MIOpen's driver/conv_driver.hpp. Channels
are totals over the groups; tensors are NCHW, NHWC and their kin, so every problem has a folded
layout.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from conv_compiler.errors import UnsupportedProblem, did_you_mean
from conv_compiler.frontends.miopen_flags import BY_SPELLING, FLAGS, NEUTRAL, OUTPUT_PADS, SPATIAL
from conv_compiler.frontends.request import Request, is_count
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import BIAS
from conv_compiler.problem.layouts import Layout

# IREE's driver takes the same lines.
PROGRAMS = ("MIOpenDriver", "iree-boo-driver")
# The driver's operation -> our data type.
OPERATIONS = MappingProxyType(
    {
        "conv": "f32",
        "convfp16": "f16",
        "convbfp16": "bf16",
        "convint8": "i8",
        "convfp64": "f64",
    }
)
_UNBUILT_OPERATIONS = ("convfp8", "convbfp8")

# Bit of -F -> direction.
DIRECTION_BITS = MappingProxyType({1: "fwd", 2: "bwd_data", 4: "bwd_weight"})
# A transposed convolution is the adjoint of a convolution whose input is its output.
_ADJOINT = MappingProxyType({"fwd": "bwd_data", "bwd_data": "fwd", "bwd_weight": "bwd_weight"})
TRANSPOSED = "a transposed convolution: its input is our output, and its forward pass our bwd_data"
# What IREE's lists of layers have behind a line: `-31.12 (-12.3%) 252.95 => 221.83`.
_TIME = re.compile(r"\(?[-+]?[\d.]+%?\)?(?:[mun]?s|x)?|=>|->|us|ms")


def parse(tokens: Sequence[str]) -> tuple[Request, ...]:
    """The requests of one line, with or without the leading program name.

    Raises UnsupportedProblem naming the flag for unknown, repeated, contradictory or unbuilt ones.
    """
    words = list(tokens)
    if words and words[0].rpartition("/")[2] in PROGRAMS:
        words = words[1:]
    operation = words[0] if words else ""
    if operation not in OPERATIONS:
        why = (
            "not built" if operation in _UNBUILT_OPERATIONS else "not an operation of MIOpenDriver"
        )
        near = did_you_mean(operation, OPERATIONS)
        raise UnsupportedProblem(f"{operation or 'line'}: {why}; {near}use {', '.join(OPERATIONS)}")
    given, ignored, note = _read(words[1:])
    values = {flag.name: flag.default for flag in FLAGS} | given
    ndim = _dimensions(values)
    groups = _integer(values, "group_count", lowest=1)
    fields: dict[str, Any] = {}
    for field, flags in SPATIAL.items():
        for flag in flags[: 3 - ndim]:
            if given.get(flag.name, NEUTRAL[field][0]) not in NEUTRAL[field]:
                raise UnsupportedProblem(
                    f"--{flag.name} {given[flag.name]}: {flag.reason}; "
                    "add --spatial_dim 3 or drop it"
                )
        fields[field] = tuple(_integer(values, flag.name) for flag in flags[3 - ndim :])
    for flag in OUTPUT_PADS:
        if values["mode"] == "conv" and given.get(flag.name, "0") != "0":
            raise UnsupportedProblem(
                f"--{flag.name} {given[flag.name]}: is for transposed convolutions; add -m trans"
            )
    if values["mode"] == "trans" and values["pad_mode"] in ("same", "valid"):
        raise UnsupportedProblem(
            f"--pad_mode {values['pad_mode']}: MIOpenDriver ignores it for transposed "
            "convolutions; give the pads"
        )
    fields["pad_low"] = _padding(values["pad_mode"], fields, given)
    is_transposed = values["mode"] == "trans"
    if is_transposed:
        fields["image"] = _transposed_image(values, fields)
        note = "; ".join(filter(None, (note, TRANSPOSED)))
    outer, inner = ("in", "out") if is_transposed else ("out", "in")
    problem = ConvProblem(
        n=_integer(values, "batchsize"),
        g=groups,
        k=_per_group(values, f"{outer}_channels", groups),
        c=_per_group(values, f"{inner}_channels", groups),
        layout=_layout(values, ndim, f"{inner}_layout", f"{outer}_layout"),
        dtype=OPERATIONS[operation],
        **fields,
    )
    asked, has_bias = _directions(values), values["bias"] == "1"
    found = [
        replace(
            problem,
            direction=_ADJOINT[one] if is_transposed else one,
            elementwise="bias" if has_bias and one == "fwd" else "",
        )
        for one in asked
    ]
    if has_bias and "bwd_weight" in asked:  # the driver computes it with the weight's
        found.append(_of_bias(problem, is_transposed))
    return tuple(Request(problem=one, ignored=ignored, note=note) for one in found)


def _of_bias(problem: ConvProblem, is_transposed: bool) -> ConvProblem:
    """The gradient of the bias: sums of the output's, which of a transposed convolution is the
    input of the one whose adjoint it is."""
    if not is_transposed:
        return replace(problem, direction=BIAS)
    row, unit = problem.layout_row, (1,) * problem.ndim
    output = row.input.replace("C", "K")
    return replace(
        problem,
        direction=BIAS,
        k=problem.c,
        filter=unit,
        stride=unit,
        dilation=unit,
        pad_low=(0,) * problem.ndim,
        pad_high=(0,) * problem.ndim,
        layout=replace(row, output=output).spell(problem.ndim),
    )


def _transposed_image(
    values: Mapping[str, str], fields: Mapping[str, tuple[int, ...]]
) -> tuple[int, ...]:
    """The output's size of a transposed convolution: the image of the one whose adjoint it is.

    `stride * (in - 1) + dilation * (filter - 1) + 1 - 2 * pad + output pad`.
    """
    sizes = [fields[name] for name in ("image", "filter", "stride", "dilation", "pad_low")]
    found = []
    for flag, size, filter, stride, dilation, pad in zip(
        OUTPUT_PADS[3 - len(sizes[0]) :], *sizes, strict=True
    ):
        more = _integer(values, flag.name)
        if more >= max(stride, 1):
            raise UnsupportedProblem(
                f"--{flag.name} {more}: not below the stride {stride}; use less"
            )
        found.append(stride * (size - 1) + dilation * (filter - 1) + 1 - 2 * pad + more)
    return tuple(found)


def _read(words: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...], str]:
    """Flag values by long name, the flags that are ignored, and a note on times behind them."""
    given: dict[str, str] = {}
    ignored: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if at and all(map(_TIME.fullmatch, words[at:])):
            return given, tuple(ignored), "times behind a line are not read"
        spelled, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        flag = BY_SPELLING.get(spelled)
        if flag is None:
            raise UnsupportedProblem(
                f"{word}: not a flag of MIOpenDriver conv; drop it, or put a flag of conv-compiler "
                "before the line"
            )
        at += 1
        if not equals:
            if at == len(words) or words[at] in BY_SPELLING:
                raise UnsupportedProblem(
                    f"{word}: has no value; every flag of MIOpenDriver takes one"
                )
            value = words[at]
            at += 1
        if flag.only and value not in flag.only:
            allowed = " or ".join(text for text in flag.only if text)
            raise UnsupportedProblem(
                f"{spelled} {value}: {flag.reason}; {f'use {allowed}' if allowed else 'drop it'}"
            )
        if given.get(flag.name, value) != value:
            raise UnsupportedProblem(
                f"{spelled} {value}: contradicts the earlier {given[flag.name]}; give it once"
            )
        if flag.ignored:
            ignored.append(spelled)
        else:
            given[flag.name] = value
    return given, tuple(ignored), ""


def _integer(values: Mapping[str, str], name: str, lowest: int = 0) -> int:
    text = values[name]
    if not is_count(text) or int(text) < lowest:
        raise UnsupportedProblem(f"--{name} {text}: not a size; use an integer of {lowest} or more")
    return int(text)


def _dimensions(values: Mapping[str, str]) -> int:
    ndim = _integer(values, "spatial_dim")
    if ndim not in (1, 2, 3):
        raise UnsupportedProblem(f"--spatial_dim {ndim}: not a number of dimensions; use 1, 2 or 3")
    return ndim


def _directions(values: Mapping[str, str]) -> list[str]:
    """What -F asks for, in the driver's order; all three for 0, its default."""
    bits = _integer(values, "forw")
    if bits > sum(DIRECTION_BITS):
        raise UnsupportedProblem(
            f"-F {bits}: not a sum of 1 (fwd), 2 (bwd_data) and 4 (bwd_weight); use one"
        )
    return [name for bit, name in DIRECTION_BITS.items() if not bits or bits & bit]


def _per_group(values: Mapping[str, str], name: str, groups: int) -> int:
    total = _integer(values, name, lowest=1)
    if total % groups:
        raise UnsupportedProblem(
            f"--{name} {total}: not divisible by --group_count {groups}; MIOpenDriver's channels "
            f"are totals over the groups, so use a multiple of {groups}"
        )
    return total // groups


def _padding(
    mode: str, fields: Mapping[str, tuple[int, ...]], given: Mapping[str, str]
) -> tuple[int, ...]:
    """Pads of both sides; `same` and `valid` compute them as the driver does."""
    if mode in ("default", "conv"):
        return fields["pad_low"]
    if stated := [flag.name for flag in SPATIAL["pad_low"] if given.get(flag.name, "0") != "0"]:
        raise UnsupportedProblem(
            f"--{stated[0]} {given[stated[0]]}: contradicts --pad_mode {mode}; give one of them"
        )
    if mode == "valid":
        return fields["pad_low"]
    if any(d > 1 for d in fields["dilation"]) and any(f > 1 for f in fields["filter"]):
        raise UnsupportedProblem(
            f"--pad_mode {mode}: MIOpenDriver ignores it for dilated filters; give the pads"
        )
    sizes = zip(fields["image"], fields["filter"], fields["stride"], strict=True)
    return tuple(max(f - (i % s or s), 0) // 2 if s else 0 for i, f, s in sizes)


def _layout(values: Mapping[str, str], ndim: int, input: str, output: str) -> str:
    """Name of the folded layout row the three layout flags state, of which these two are the
    input's and the output's."""
    letters: dict[str, str] = {}
    for name in ("in_layout", "fil_layout", "out_layout"):
        space = "DHW"[-ndim:]
        text = values[name] or f"NC{space}"
        # The driver's 2D words are accepted for 1D problems, which it does not have itself.
        words = {word: kind for kind in ("NC*", "N*C") for word in _spellings(kind, ndim)}
        if text not in words:
            raise UnsupportedProblem(
                f"--{name} {text}: not built for {ndim}D; use NC{space} or N{space}C"
            )
        letters[name] = words[text]
    row = Layout(
        input=letters[input],
        weight=letters["fil_layout"].replace("N", "K"),
        output=letters[output].replace("C", "K"),
    )
    return row.spell(ndim)


def _spellings(kind: str, ndim: int) -> tuple[str, ...]:
    spaces = ("W", "HW") if ndim == 1 else ("DHW"[-ndim:],)
    return tuple(kind.replace("*", space) for space in spaces)
