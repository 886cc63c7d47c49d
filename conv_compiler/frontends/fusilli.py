# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lines of Fusilli's driver: `fusilli_benchmark_driver --iter 10 conv -F 4 --bf16 -n 16 ...`.

The flags of `conv` are MIOpenDriver's, but for the type, which flags of their own state, and the
bias, which takes no value. None has a default but the group count and those of a third dimension.
A line may begin with the flags in front of `conv`, as in the lists of `run_benchmark.py`.

Source: benchmarks/driver.cpp of iree-org/fusilli at e454f30.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends import miopen
from conv_compiler.frontends.miopen_flags import BY_SPELLING, SPATIAL, Flag
from conv_compiler.frontends.request import Request

PROGRAM = "fusilli_benchmark_driver"
_CONV, _OTHERS = "conv", ("layernorm", "matmul", "sdpa")
# In front of the operation; whether each takes a value. They say how to measure.
_MEASURES = MappingProxyType(
    {
        "--iter": True,
        "-i": True,
        "--device": True,
        "-D": True,
        "--dump": False,
        "-d": False,
    }
)
# The operation of MIOpenDriver of each type flag.
_TYPES = MappingProxyType({"--fp16": "convfp16", "--bf16": "convbfp16"})
_BIAS = ("--bias", "-b")
_DEPTH = tuple(flags[0].name for flags in SPATIAL.values())
_NEEDED = (
    "forw",
    "batchsize",
    "in_channels",
    "out_channels",
    "in_layout",
    "fil_layout",
    "out_layout",
    "spatial_dim",
    *(flag.name for flags in SPATIAL.values() for flag in flags[1:]),
)
# The driver's own names of flags -> MIOpen's.
_OWN = MappingProxyType({"--mode": "--forw"})


def starts(tokens: Sequence[str]) -> bool:
    """Whether words are a line of the driver without its name: from its first flags on."""
    first = tokens[0] if tokens else ""
    return first.partition("=")[0] in _MEASURES and _CONV in tokens


def parse(tokens: Sequence[str]) -> tuple[Request, ...]:
    """The requests of one line: with a bias the weight gradient's has the bias's gradient behind.

    Raises UnsupportedProblem for another operation, a flag that is missing, and as `miopen.parse`.
    """
    words = list(tokens[tokens[0].rpartition("/")[2] == PROGRAM :])
    ignored = []
    while words and (spelled := words[0].partition("=")[0]) in _MEASURES:
        ignored.append(spelled)
        del words[: 2 if _MEASURES[spelled] and "=" not in words[0] else 1]
    operation = words[0] if words else "line"
    if operation != _CONV:
        why = "not a convolution" if operation in _OTHERS else f"not an operation of {PROGRAM}"
        raise UnsupportedProblem(f"{operation}: {why}; use {_CONV}")
    found = miopen.parse(_as_miopen(words[1:]))
    return tuple(replace(one, ignored=(*ignored, *one.ignored)) for one in found)


def _as_miopen(words: Sequence[str]) -> list[str]:
    """The line as MIOpenDriver takes it."""
    types = [word for word in words if word in _TYPES]
    if len(set(types)) > 1:
        raise UnsupportedProblem(f"{types[0]}: contradicts {types[1]}; give one of them")
    rest, given = list[str](), dict[str, str]()
    following = iter(word for word in words if word not in _TYPES and word not in _BIAS)
    for word in following:
        spelled, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        flag = _flag(spelled)
        if not equals:
            value = next(following, "")
        given[flag.name] = value
        rest += [f"--{flag.name}", value] if value else [f"--{flag.name}"]
    needed = (*_NEEDED, *_DEPTH) if given.get("spatial_dim") == "3" else _NEEDED
    for name in needed:
        if name not in given:
            raise UnsupportedProblem(f"--{name}: missing, {PROGRAM} has no default; give it")
    if given["forw"] not in ("1", "2", "4"):
        raise UnsupportedProblem(
            f"-F {given['forw']}: not a direction; use 1 (fwd), 2 (bwd_data) or 4 (bwd_weight)"
        )
    bias = ["--bias", "1"] if any(word in _BIAS for word in words) else []
    return [_TYPES[types[0]] if types else "conv", *rest, *bias]


def _flag(spelled: str) -> Flag:
    flag = BY_SPELLING.get(_OWN.get(spelled, spelled))
    if flag is None or flag.name not in (*_NEEDED, *_DEPTH, "group_count"):
        raise UnsupportedProblem(f"{spelled}: not a flag of {PROGRAM} conv; drop it")
    return flag
