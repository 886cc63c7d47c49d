# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Our own flags: `--image 56x56 --filter 3x3 -n 32 -g 1 -k 64 -c 64 --layout ... --dtype f16`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends.request import Request, is_count, parse_split_k
from conv_compiler.parser import PROBLEM_GROUP, Parser, completed
from conv_compiler.problem.block_scales import BLOCK_SCALES
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import COMPUTED, TENSORS
from conv_compiler.problem.pad_modes import MODES, SAME

# The tensors' layouts, each with words of it.
_LAYOUTS = {"in_layout": "NCHW", "filter_layout": "KCYX", "out_layout": "NHWC"}
_NEEDED = ("n", "k", "c", "image", "filter")


def _flag(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def _layouts() -> list[str]:
    from conv_compiler.problem.layouts import LAYOUTS

    return [row.spell(n) for row in LAYOUTS for n in (1, 2, 3)]


def _dtypes() -> tuple[str, ...]:
    from conv_compiler.problem.dtypes import DTYPES

    return tuple(DTYPES)


class _Once(argparse.Action):
    """Store a value; the same flag with another value is refused."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        earlier = getattr(namespace, self.dest, None)
        if earlier is not None and earlier != values:
            parser.error(f"{option_string}: contradicts an earlier value; give it once")
        setattr(namespace, self.dest, values)


def sizes(text: str) -> tuple[int, ...] | int:
    """`56x56` as a tuple; a lone number stays a number."""
    parts = text.replace(",", "x").split("x")
    if not all(map(is_count, parts)):
        raise argparse.ArgumentTypeError(f"{text}: not sizes; write them as 56x56")
    values = tuple(map(int, parts))
    return values[0] if len(values) == 1 else values


def _pads(text: str) -> tuple[int, ...] | int | str:
    """Sizes, or the word `same`."""
    return text if text == SAME else sizes(text)


def size(text: str) -> int:
    """A count of 1 or more, for argparse."""
    if not (is_count(text) and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"{text}: not a size; use an integer of 1 or more")
    return int(text)


def batch(text: str) -> int:
    """A count of 0 or more, for argparse."""
    return int(text) if text == "0" else size(text)


def add_problem_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that state a problem, each absent from the namespace's values as None."""
    group = parser.add_argument_group(
        PROBLEM_GROUP, "channels are per group; spatial sizes as HxW; (what is taken if not given)"
    )

    def add(*names: str, type: Any = str, metavar: str, help: str) -> argparse.Action:
        return group.add_argument(*names, action=_Once, type=type, metavar=metavar, help=help)

    add("-n", type=batch, metavar="N", help="batch size")
    add("-g", type=size, metavar="G", help="groups (1)")
    add("-k", type=size, metavar="K", help="output channels per group")
    add("-c", type=size, metavar="C", help="input channels per group")
    add("--image", type=sizes, metavar="HxW", help="input image: W, HxW or DxHxW")
    add("--filter", type=sizes, metavar="YxX", help="filter, as many dimensions as the image")
    add("--stride", type=sizes, metavar="S", help="one for all dimensions, or one each (1)")
    add("--dilation", type=sizes, metavar="S", help="likewise (1)")
    add("--pad", type=_pads, metavar="S", help="zeros on both sides, likewise (0), or same")
    add("--pad-low", type=sizes, metavar="S", help="zeros before the image")
    add("--pad-high", type=sizes, metavar="S", help="zeros after the image (as --pad-low)")
    modes = add("--pad-mode", metavar="WORD", help=f"what pads are: {', '.join(MODES)}")
    completed(modes, lambda: MODES)
    layout = add("--layout", metavar="NAME", help="see list layouts (NHWGC_GKYXC_NHWGK)")
    completed(layout, _layouts)
    for name in _LAYOUTS:
        add(_flag(name), metavar="NAME", help=f"of one tensor, as {_LAYOUTS[name]}; give all three")
    completed(add("--dtype", metavar="TYPE", help="type of both operands (f16)"), _dtypes)
    completed(add("--weight-dtype", metavar="TYPE", help="type of the result"), _dtypes)
    add(
        "--compute",
        metavar="A,B",
        help="multiply in bf16, f16, 8-bit floats (bf8,fp8), bf16x3, xf32, tf32; see docs/types.md",
    )
    scales = add("--block-scales", metavar="WORD", help="mx: 8-bit floats, a scale for each 32")
    completed(scales, lambda: tuple(BLOCK_SCALES))
    add("--elementwise", metavar="OP", help="op on the result, fused: see list elementwise")
    group.add_argument(
        "--amax",
        action="store_const",
        const=True,
        help="the largest absolute value of the result beside it",
    )
    for name in TENSORS:
        add(
            f"--{name}-op",
            metavar="OP",
            help=f"op on {name} or its gradient, first: scale(0.5), relu",
        )
    for name in TENSORS:
        add(
            f"--{name}-within",
            type=sizes,
            metavar="SHAPE",
            help=f"of the larger tensor that {name} or its gradient is a slice of",
        )
    group.add_argument(
        "--result-operand",
        action="store_const",
        const=True,
        help="take memory for the result, and write it there",
    )
    group.add_argument(
        "--kept-weight",
        action="store_const",
        const=True,
        help="rearrange the weight in a function of its own, @keep_weight",
    )
    words = "bwd_weight, bwd_data, fwd or bwd_bias, or some: a,b (bwd_weight)"
    completed(add("--direction", metavar="WORD", help=words), lambda: tuple(COMPUTED))
    group.add_argument(
        "--dynamic-batch",
        action="store_const",
        const=True,
        help="a kernel that takes any batch, N images at a time",
    )


def _layout(values: dict[str, Any], ndim: int) -> dict[str, Any]:
    """The fields with one layout in place of those of the tensors."""
    words = [values.pop(name, None) for name in _LAYOUTS]
    if not any(words):
        return values
    given, missing = (
        [_flag(name) for name, word in zip(_LAYOUTS, words, strict=True) if bool(word) is there]
        for there in (True, False)
    )
    if missing:
        raise UnsupportedProblem(f"{given[0]}: without {', '.join(missing)}; give all three")
    if "layout" in values:
        raise UnsupportedProblem(f"{given[0]}: contradicts --layout; give one of them")
    from conv_compiler.problem.layouts import of_tensors

    return {**values, "layout": of_tensors(words, ndim).spell(ndim)}


_FIELDS = (
    *("n", "g", "k", "c", "image", "filter", "stride", "dilation", "pad", "pad_low", "pad_high"),
    *("pad_mode", "layout", "dtype", "weight_dtype", "direction", "compute", "elementwise"),
    "block_scales",
    *_LAYOUTS,
    *(f"{name}_op" for name in TENSORS),
    *("dynamic_batch", "amax", "result_operand", "kept_weight"),
    *(f"{name}_within" for name in TENSORS),
)


def stated(values: Mapping[str, Any]) -> dict[str, Any]:
    """The problem flags a user gave, by field; empty when there are none."""
    return {name: values[name] for name in _FIELDS if values.get(name) is not None}


def every_from_values(given: Mapping[str, Any]) -> tuple[ConvProblem, ...]:
    """The problems of the flags, one for each of the directions that commas separate; raises as
    `from_values`."""
    words = str(given.get("direction", "")).split(",")
    if len(words) == 1:
        return (from_values(given),)
    return tuple(from_values(_of_direction(given, word)) for word in dict.fromkeys(words))


def _of_direction(given: Mapping[str, Any], word: str) -> dict[str, Any]:
    """The flags for one of several directions: slices are those of its operands."""
    operands = COMPUTED[word][0] if word in COMPUTED else ()
    read = {f"{name.removeprefix('d_')}_within" for name in operands}
    apart = {f"{name}_within" for name in TENSORS} - read
    return {**{name: one for name, one in given.items() if name not in apart}, "direction": word}


def from_values(given: Mapping[str, Any]) -> ConvProblem:
    """The problem of the flags `stated` found.

    Raises UnsupportedProblem for a missing or contradictory flag and for an unsound problem.
    """
    for name in _NEEDED:
        if name not in given:
            dash = "-" if len(name) == 1 else "--"
            raise UnsupportedProblem(f"{dash}{name}: missing; every size must be given")
    values = dict(given)
    if (pad := values.pop("pad", None)) is not None:
        for name in ("pad_low", "pad_high"):
            if name in values:
                flag = f"--{name.replace('_', '-')}"
                raise UnsupportedProblem(f"{flag}: contradicts --pad; give one of them")
        values["pad_low"] = values["pad_high"] = pad
    ndim = 1 if isinstance(values["image"], int) else len(values["image"])
    if isinstance(values["filter"], int) and ndim > 1:
        raise UnsupportedProblem(
            f"--filter {values['filter']}: not {ndim} dimensions; write one size for each"
        )
    if "pad_high" in values and "pad_low" not in values:
        values["pad_low"] = 0
    return ConvProblem(**_layout(values, ndim))


def parse(tokens: Sequence[str]) -> tuple[Request, ...]:
    """The request of a line of our flags, with `--split-k` among them."""
    parser = Parser(prog="problem", add_help=False)
    add_problem_flags(parser)
    parser.add_argument("--split-k", action=_Once)
    values = vars(parser.parse_args(list(tokens)))
    split_k = () if values["split_k"] is None else parse_split_k(values["split_k"])
    problems = every_from_values(stated(values))
    return tuple(Request(problem=problem, split_k=split_k) for problem in problems)
