# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Composable Kernel's example programs: `example_convnd_bwd_data_xdl_fp16 1 1 0 2 1 32 64 64 ...`.

Names are those of its CMakeLists, or as its documents have them: `./grouped_conv_bwd_weight_xdl`.

Those of example/ take `verify init time`, and behind these a problem of their own; those of
client_example/ take nothing. What a program is given no problem for is its default, here as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from conv_compiler.errors import UnsupportedProblem, did_you_mean
from conv_compiler.frontends.ckprofiler import read_integer, read_sizes, refuse_flags
from conv_compiler.frontends.request import Request, SplitK
from conv_compiler.problem.conv_problem import ConvProblem

_HEAD = ("verify", "init", "time")


@dataclass(frozen=True, kw_only=True)
class Example:
    """One program: its default problem, its split, and whether it takes another problem."""

    problem: ConvProblem
    split_k: tuple[SplitK, ...] = ()
    takes_problem: bool = False


def _same(ndim: int, direction: str = "bwd_weight", **values: Any) -> ConvProblem:
    """A filter of 3 in each dimension, and pads that keep the image's size."""
    settings = {"filter": (3,) * ndim, "pad_low": (1,) * ndim, **values}
    return ConvProblem(direction=direction, **settings)


_EXAMPLE_20 = _same(3, g=4, n=1, k=128, c=256, image=(14, 14, 14), layout="GNHWC_GKYXC_GNHWK")
_EXAMPLE_17 = _same(
    2, "bwd_data", n=128, k=256, c=256, image=(71, 71), stride=2, layout="GNHWC_GKYXC_GNHWK"
)
_CLIENT_11 = {
    ndim: _same(ndim, g=g, n=n, k=k, c=k, image=image, layout="GNHWC_GKYXC_GNHWK")
    for ndim, g, n, k, image in (
        (1, 32, 256, 192, (28,)),
        (2, 32, 256, 192, (28, 28)),
        (3, 8, 64, 128, (28, 28, 3)),
    )
}
_F8 = {"compute": "bf8,fp8"}
# What tells the programs of a kind apart.
_EXAMPLE_20_TYPES: dict[str, dict[str, Any]] = {
    "xdl_fp16": {},
    "xdl_bf16": {"dtype": "bf16", "weight_dtype": "f32"},
    "xdl_fp16_comp_bf8_fp8": _F8,
    "wmma_fp16": {},
    "dl_fp16": {},
}
_CLIENT_11_TYPES: dict[tuple[int, str], dict[str, Any]] = {
    (1, "fp16"): {},
    (2, "fp16"): {},
    (3, "fp16"): {},
    (3, "fp32"): {"dtype": "f32", "weight_dtype": "f32"},
    (3, "fp16_comp_bf8_fp8"): {**_F8, "layout": "NHWGC_GKYXC_NHWGK"},
}
_CLIENT_24 = {
    "bwd_weight": _same(3, g=32, n=32, k=32, c=32, image=(14, 14, 14)),
    "bwd_data": _same(3, "bwd_data", g=32, n=64, k=64, c=32, image=(14, 14, 14)),
}

EXAMPLES = MappingProxyType(
    {
        **{
            f"example_convnd_bwd_data_{kind}": Example(problem=_EXAMPLE_17, takes_problem=True)
            for kind in ("xdl", "xdl_fp16", "dl_fp16")
        },
        **{
            f"example_grouped_conv_bwd_weight_{kind}": Example(
                problem=replace(_EXAMPLE_20, **types), split_k=(1,), takes_problem=True
            )
            for kind, types in _EXAMPLE_20_TYPES.items()
        },
        **{
            f"client_grouped_conv{ndim}d_bwd_weight_{kind}": Example(
                problem=replace(_CLIENT_11[ndim], **types), split_k=(2,)
            )
            for (ndim, kind), types in _CLIENT_11_TYPES.items()
        },
        **{
            f"client_grouped_convnd_{direction}_{kind}_fp16": Example(
                problem=replace(problem, elementwise=op),
                split_k=(2,) if direction == "bwd_weight" else (),
            )
            for direction, problem in _CLIENT_24.items()
            for kind, op in (("bilinear_residual", "bilinear(2,2)"), ("scale", "scale(2)"))
        },
    }
)
# Name as typed -> that of EXAMPLES. Documents leave the folder's prefix out, and the type of one
# program (example/20_grouped_conv_bwd_weight/README.md, client_example/11_.../README.md).
PROGRAMS = MappingProxyType(
    {name.removeprefix("example_").removeprefix("client_"): name for name in EXAMPLES}
    | {name: name for name in EXAMPLES}
    | {"grouped_conv_bwd_weight_xdl": "example_grouped_conv_bwd_weight_xdl_fp16"}
)


def parse(tokens: Sequence[str]) -> tuple[Request, ...]:
    """The request of one line.

    Raises UnsupportedProblem for a program that is not in the table, and for arguments that it
    does not take or that are malformed.
    """
    name, words = tokens[0].rpartition("/")[2], list(tokens[1:])
    if name not in PROGRAMS:
        near = did_you_mean(name, EXAMPLES)
        raise UnsupportedProblem(
            f"{name}: not a program known here; {near}use {', '.join(EXAMPLES)}"
        )
    row = EXAMPLES[PROGRAMS[name]]
    refuse_flags(words, name)
    if words and not row.takes_problem:
        raise UnsupportedProblem(f"{name} {words[0]}: takes no arguments; leave it out")
    if 0 < len(words) < len(_HEAD):
        raise UnsupportedProblem(
            f"{_HEAD[len(words)]}: missing; {name} starts with {' '.join(_HEAD)}"
        )
    for unused, word in zip(_HEAD, words, strict=False):
        read_integer(unused, word)
    problem = row.problem
    if sizes := words[len(_HEAD) :]:
        problem = ConvProblem(
            direction=problem.direction,
            layout=problem.layout,
            dtype=problem.dtype,
            weight_dtype=problem.weight_dtype,
            compute=problem.compute,
            **read_sizes(name, sizes[0], sizes[1:])[0],
        )
    return (Request(problem=problem, split_k=row.split_k),)
