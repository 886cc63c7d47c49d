"""Random problems small enough to compile and run in about a second."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, assume, given, reject, seed, settings
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.block_scales import ALONG, BLOCK_SCALES
from conv_compiler.problem.canonical import summed_products
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.problem.dtypes import CONVERSIONS, DTYPES, TERMS, TYPE_PAIRS
from conv_compiler.problem.elementwise import ELEMENTWISE, Elementwise
from conv_compiler.problem.layouts import LAYOUTS, find_layout
from conv_compiler.problem.slides import Spaced

# One for tests of the commands.
SMALL = tuple("-n 2 -k 8 -c 4 --image 8x8 --filter 3x3 --pad 1 --dtype f32".split())  # noqa: SIM905
MOST_MULTIPLY_ADDS = 2**22
# 8-bit floats have lists of their own (`tests/numerics/test_f8.py`), f64 is for the CPU alone. f16
# results of bf16 data are those of block scales (`tests/numerics/test_block_scales.py`).
TYPES = tuple(
    pair
    for pair in TYPE_PAIRS
    if not DTYPES[pair[0]].is_f8 and pair[0] != "f64" and pair != ("bf16", "f16")
)
F8_TYPES = tuple(pair for pair in TYPE_PAIRS if DTYPES[pair[0]].is_f8)
# How far an image may reach beyond the least that gives an output, by number of dimensions.
_SPARE = {1: 40, 2: 12, 3: 5}
_FILTER = {1: 7, 2: 5, 3: 3}

CHANNELS = st.one_of(st.integers(1, 9), st.sampled_from([16, 17, 31, 32, 48, 64, 65]))
GROUPS = st.one_of(st.just(1), st.integers(2, 5), st.sampled_from([8, 16, 24]))
STRIDES = st.sampled_from([1, 1, 1, 2, 3, 5])
DILATIONS = st.sampled_from([1, 1, 1, 2, 3])
PADS = st.sampled_from([0, 0, 1, 1, 2, 3])
# Axes are drawn with room for more outputs, or tiny: an image within one stride between pads that
# whole windows, and several strides, fit in.
AXES = ("roomy",) * 4 + ("tiny",)
WIDE_PADS = (0, 1, 2, 3)  # strides beyond the filter
KINDS = ("dense",) * 6 + ("depthwise",) * 2 + ("pointwise",) + ("tiny",) * 2
BATCHES = st.one_of(st.integers(1, 5), st.sampled_from([8, 13, 16, 32]))


def _shrink(problem: ConvProblem) -> ConvProblem:
    """The problem with its largest of n, g, k, c halved until it is quick."""
    while problem.flops > 2 * MOST_MULTIPLY_ADDS:
        name = max(("n", "g", "k", "c"), key=lambda size: getattr(problem, size))
        problem = replace(problem, **{name: getattr(problem, name) // 2})
    return problem


@st.composite
def _axes(draw: st.DrawFn, ndim: int, kind: str) -> dict[str, int]:
    """The sizes of one spatial axis of a kind of problem."""
    if kind == "pointwise":
        taps = spread = stride = 1
        low = high = 0
    else:
        taps, spread = draw(st.integers(1, _FILTER[ndim])), draw(DILATIONS)
        stride = draw(STRIDES)
    tiny = kind == "tiny" or (kind != "pointwise" and draw(st.sampled_from(AXES)) == "tiny")
    if tiny:
        reach = (taps - 1) * spread + 1
        low, high = (
            strides and reach + (strides - 1) * stride
            for strides in (draw(st.sampled_from(WIDE_PADS)) for _ in range(2))
        )
    elif kind != "pointwise":
        low, high = draw(PADS), draw(PADS)
    least = max(1, (taps - 1) * spread + 1 - low - high)
    spare = max(0, stride - least) if tiny else _SPARE[ndim]
    return {
        "filter": taps,
        "dilation": spread,
        "pad_low": low,
        "pad_high": high,
        "stride": stride,
        "image": least + draw(st.integers(0, spare)),
    }


@st.composite
def problems(
    draw: st.DrawFn,
    ndim: int | None = None,
    types: tuple[str, str] | None = None,
    kind: str | None = None,
) -> ConvProblem:
    """A problem of any dimension, layout, type, stride, dilation, pads, groups and odd sizes.

    `types` are the data and the weight type, `kind` is one of KINDS; what is left out is drawn.
    """
    ndim = ndim or draw(st.integers(1, 3))
    data, weight = types or draw(st.sampled_from(TYPES))
    kind = kind or draw(st.sampled_from(KINDS))
    axes: dict[str, list[int]] = {}
    for _ in range(ndim):
        for name, value in draw(_axes(ndim, kind)).items():
            axes.setdefault(name, []).append(value)
    channels = st.just(1) if kind == "depthwise" else CHANNELS
    return _shrink(
        ConvProblem(
            n=draw(BATCHES),
            g=draw(st.integers(2, 40) if kind == "depthwise" else GROUPS),
            k=draw(channels),
            c=draw(channels),
            layout=draw(st.sampled_from(LAYOUTS)).spell(ndim),
            dtype=data,
            weight_dtype=weight,
            **{name: tuple(values) for name, values in axes.items()},
        )
    )


@st.composite
def problems_with_split(
    draw: st.DrawFn,
    ndim: int | None = None,
    types: tuple[str, str] | None = None,
    direction: str = "bwd_weight",
) -> tuple[ConvProblem, int | str]:
    """A problem and a split-K: "auto", or a number of parts that may not divide gemm_k."""
    problem = replace(draw(problems(ndim, types)), direction=direction)
    most = min(summed_products(problem), 12)
    return problem, draw(st.one_of(st.just("auto"), st.integers(1, most)))


@st.composite
def tiny_problems(draw: st.DrawFn) -> ConvProblem:
    """A problem the definition computes in well under a second."""
    problem = draw(problems())
    steps = math.prod(problem.filter) * math.prod(problem.out_image)
    while steps > 3000:
        image = tuple(
            max(1, extent - low - high, size // 2)
            for size, extent, low, high in zip(
                problem.image,
                problem.filter_extent,
                problem.pad_low,
                problem.pad_high,
                strict=True,
            )
        )
        problem = replace(problem, image=image)
        fewer = math.prod(problem.filter) * math.prod(problem.out_image)
        if fewer == steps:
            break
        steps = fewer
    return problem


@st.composite
def elementwise_texts(draw: st.DrawFn, name: str = "", direction: str = "bwd_weight") -> str:
    """An elementwise op, this one or any of a direction, with a type of d; some have others behind
    them.

    Their parameters are numbers that f32 holds exactly or not.
    """
    rows = [
        row for row in ELEMENTWISE.values() if direction != "bwd_weight" or row.d_per != "channel"
    ]
    first = ELEMENTWISE[name] if name else draw(st.sampled_from(rows))
    others = [row for row in rows if not (first.takes_d and row.takes_d)]
    behind = draw(st.one_of(st.just(()), st.tuples(st.sampled_from(others))))
    return ">".join(_step(draw, row) for row in (first, *behind))


def _step(draw: st.DrawFn, row: Elementwise) -> str:
    """One op with its parameters and its type of d."""
    numbers = st.one_of(
        st.sampled_from([-2.0, -1.0, 0.0, 0.25, 1.0, 3.0]),
        st.floats(-4, 4, width=16, allow_subnormal=False),
    )
    values = [str(draw(numbers)) for _ in row.parameters]
    return (
        row.name
        + (f"({','.join(values)})" if values else "")
        + (draw(st.sampled_from(["", ":f32"])) if row.d_per in ("element", "channel") else "")
    )


@st.composite
def of_any_kind(draw: st.DrawFn, direction: str = "") -> tuple[ConvProblem, int | str]:
    """A problem and a split-K of a direction or any, elementwise ops, types, layout, dimension."""
    direction = direction or draw(st.sampled_from(list(DIRECTIONS)))
    problem, split_k = draw(
        problems_with_split(types=draw(st.sampled_from((*TYPES, *F8_TYPES))), direction=direction)
    )
    op = draw(st.one_of(st.just(""), elementwise_texts(direction=direction)))
    wider = not problem.data_type.is_integer and not problem.data_type.is_f8
    computes = ["", "", "bf8,fp8", *(TERMS if problem.dtype == "f32" else ())]
    computes += [name for name, row in CONVERSIONS.items() if problem.dtype in row.of]
    compute = draw(st.sampled_from(computes)) if wider else ""
    operand_ops = {
        f"{name}_op": draw(
            st.sampled_from(["", "", "relu", "scale(-0.5)", "scale(3)", "scale(0.3)"])
        )
        for name in problem.tensors[:2]
    }
    problem = replace(problem, elementwise=op, compute=compute, **operand_ops)
    # A kernel for any batch is tried on several: of some problems, and small ones.
    any_batch = (
        problem.n <= 5
        and problem.layout_row.batch_is_outermost(problem.g)
        and draw(st.sampled_from([0, 0, 1]))
    )
    return replace(problem, dynamic_batch=bool(any_batch)), split_k


@st.composite
def scaled_problems(draw: st.DrawFn) -> ConvProblem:
    """A problem with block scales of any elements, direction, dimension and layout that has room
    for them; channels stand in for columns of packed elements that fill no bytes."""
    row = BLOCK_SCALES["mx"]
    data, weight = draw(st.sampled_from(row.dtypes)), draw(st.sampled_from(row.results))
    direction = draw(st.sampled_from(list(DIRECTIONS)))
    problem = draw(problems(types=("bf16", "f32")))
    step = DTYPES[data].packed[0] if DTYPES[data].is_packed else 1
    sizes = {"g": min(problem.g, 4), "n": min(problem.n, 3)}
    sizes |= {name: -(-min(getattr(problem, name), 17) // step) * step for name in "kc"}
    sizes |= {ALONG[direction].lower(): row.size * draw(st.integers(1, 5))}
    wanted = {**sizes, "direction": direction, "dtype": data, "weight_dtype": weight}
    try:
        return replace(problem, **wanted, block_scales=row.name)
    except UnsupportedProblem:
        layout = find_layout("NHWGC_GKYXC_NHWGK", problem.ndim).spell(problem.ndim)
        return replace(problem, **wanted, block_scales=row.name, layout=layout)


def independent(strategy: st.SearchStrategy[Any], count: int, seed_of: str) -> Iterator[Any]:
    """So many values of a strategy, each drawn by a seed of its own: the same ones for a name.

    One run of hypothesis varies what it drew before, so that its values are much alike.
    """
    found: list[Any] = []

    def keep(value: Any) -> None:
        found[:] = [value]

    for number in range(count):
        # The first value of a run is the simplest one; the last is kept.
        for_drawn(strategy, 2, f"{seed_of} {number}")(keep)
        yield found[0]


def for_drawn(strategy: st.SearchStrategy[Any], examples: int, name: str) -> Callable[..., None]:
    """Decorator: run a check on so many drawn values, at once; the same ones for a name."""

    def run(check: Callable[[Any], None]) -> None:
        settings(
            max_examples=examples,
            deadline=None,
            database=None,
            # No shrinking: a step compiles, and the drawn problem is small and printed already.
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=[HealthCheck.too_slow],
        )(seed(zlib.crc32(name.encode()))(given(strategy)(check)))()

    return run


@st.composite
def dimensions(draw: st.DrawFn) -> Spaced:
    """One dimension of a convolution that has output pixels."""
    taps, dilation = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    pad, image = draw(st.integers(0, 4)), draw(st.integers(1, 12))
    stride = draw(st.integers(1, 4))
    room = image + 2 * pad - (taps - 1) * dilation
    assume(room > 0)
    outs = (room - 1) // stride + 1
    return Spaced(image=image, outs=outs, taps=taps, stride=stride, dilation=dilation, pad=pad)


@st.composite
def small_images(draw: Any, channels: list[tuple[int, int, int]], dtype: str) -> ConvProblem:
    """Forward passes and data gradients of two dimensions and all sizes, strides, dilations and
    pads. `channels` has (c, k, groups), of which one is drawn."""
    c, k, g = draw(st.sampled_from(channels))
    image, filter, stride, dilation = (
        tuple(draw(st.integers(1, most)) for _ in range(2)) for most in (19, 4, 3, 2)
    )
    low, high = (tuple(draw(st.integers(0, 3)) for _ in range(2)) for _ in range(2))
    direction = draw(st.sampled_from(["fwd", "bwd_data"]))
    try:
        return ConvProblem(
            direction=direction, n=draw(st.integers(1, 3)), g=g, k=k, c=c, dtype=dtype,
            image=image, filter=filter, stride=stride, dilation=dilation, pad_low=low,
            pad_high=high,
        )  # fmt: skip
    except UnsupportedProblem:
        return reject()
