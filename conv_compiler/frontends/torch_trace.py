# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions in a trace of PyTorch's profiler, recorded with `record_shapes=True`.

A trace is the JSON that `profile.export_chrome_trace` writes. Of its events those of ATen's ops
have `Input Dims` and `Concrete Inputs`, in the order of PyTorch's
`aten/src/ATen/native/native_functions.yaml`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends.request import Request
from conv_compiler.problem.conv_problem import ConvProblem

# Names of C++ types in a trace -> our types.
_DTYPES = {"float": "f32", "double": "f64", "c10::Half": "f16", "c10::BFloat16": "bf16"}
# Op -> places of input, weight, output gradient (-1: none), and of stride, pad, dilation,
# transposed, groups, and of the mask of what is wanted (-1: none).
_OPS = {
    "aten::convolution": (0, 1, -1, 3, 4, 5, 6, 8, -1),
    "aten::convolution_backward": (1, 2, 0, 4, 5, 6, 7, 9, 10),
}


def is_event(value: Any) -> bool:
    """Whether a JSON object is an event of a trace."""
    return isinstance(value, dict) and "name" in value and "args" in value


def is_trace(value: Any) -> bool:
    """Whether a JSON object is a whole trace."""
    return isinstance(value, dict) and "traceEvents" in value


def parse_trace(trace: Mapping[str, Any]) -> tuple[Request, ...]:
    """The requests of all convolutions of a trace, each once; UnsupportedProblem without any."""
    events = [one for one in trace["traceEvents"] if is_event(one) and one["name"] in _OPS]
    found = dict.fromkeys(request for event in events for request in parse_event(event))
    if not found:
        raise UnsupportedProblem(
            "trace: has no aten::convolution with shapes; record it with record_shapes=True"
        )
    return tuple(found)


def parse_event(event: Mapping[str, Any]) -> tuple[Request, ...]:
    """The requests of one event: a forward pass, or the gradients that are wanted.

    Raises UnsupportedProblem for another op, and for an event without shapes and values.
    """
    name = event["name"]
    if name not in _OPS:
        raise UnsupportedProblem(f"event {name}: not a convolution; use {' or '.join(_OPS)}")
    x, w, y, stride, pad, dilation, transposed, groups, mask = _OPS[name]
    try:
        shapes, values = event["args"]["Input Dims"], event["args"]["Concrete Inputs"]
        kind = event["args"]["Input type"][x]
        read = [json.loads(values[place]) for place in (stride, pad, dilation, groups)]
        is_transposed = values[transposed].lower() == "true"
        wanted = json.loads(values[mask].lower()) if mask >= 0 else []
        (n, channels, *image), (outputs, c, *filter) = shapes[x], shapes[w]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise UnsupportedProblem(
            f"event {name}: lacks shapes or values; record it with record_shapes=True"
        ) from error
    if is_transposed:
        raise UnsupportedProblem(f"event {name}: of a transposed convolution, which is not built")
    if kind not in _DTYPES:
        raise UnsupportedProblem(f"event {name}: type {kind}; use {', '.join(_DTYPES)}")
    directions = ["fwd"] if y < 0 else _wanted(wanted)
    strides, pads, dilations = (_each(one, len(image)) for one in read[:3])
    if channels != c * read[3] or outputs % read[3]:
        raise UnsupportedProblem(
            f"event {name}: {channels} channels and a weight of {c} for {read[3]} groups; "
            "mend the event"
        )
    return tuple(
        Request(
            problem=ConvProblem(
                direction=direction,
                n=n,
                g=read[3],
                k=outputs // read[3],
                c=c,
                image=tuple(image),
                filter=tuple(filter),
                layout="NCHW",
                dtype=_DTYPES[kind],
                weight_dtype=_DTYPES[kind],
                stride=strides,
                pad_low=pads,
                dilation=dilations,
            )
        )
        for direction in directions
    )


def _wanted(mask: list[bool]) -> list[str]:
    """The directions of an output mask: input, weight, and bias, which is no convolution."""
    return [name for name, one in zip(("bwd_data", "bwd_weight"), mask, strict=False) if one]


def _each(value: Any, ndim: int) -> tuple[int, ...]:
    sizes = value if isinstance(value, list) else [value]
    return tuple(sizes * ndim if len(sizes) == 1 else sizes)
