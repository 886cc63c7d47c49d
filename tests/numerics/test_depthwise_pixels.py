"""The schedule `depthwise_pixels` is right with any tiling it may have: strips, loops, threads.

The choice among tilings is by modelled time; here each is asked for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import OutOfRegisters
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load, to_numpy
from conv_compiler.strategies.gpu.depthwise_pixels import small_groups, tilings
from conv_compiler.strategies.strategy import PixelTiling, Strategy
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import reference
from conv_compiler.verification.verify import verify
from tests.chips import EXECUTED
from tests.problems import for_drawn

SLOW = [pytest.mark.slow]
DIRECTIONS = ("fwd", "bwd_data")
PROBLEMS = {
    "same": ConvProblem(n=3, g=24, k=1, c=1, image=(9, 12), filter=(3, 3), pad_low=(1, 1)),
    "strided": ConvProblem(
        n=2, g=24, k=1, c=1, image=(11, 13), filter=(5, 3), stride=2, pad_low=(2, 0),
        pad_high=(1, 1),
    ),
    # Phases without a tap, source pixels that no result pixel reads.
    "gaps": ConvProblem(n=2, g=16, k=1, c=1, image=(11, 13), filter=(1, 2), stride=(3, 3)),
    "dilated": ConvProblem(
        n=2, g=20, k=1, c=1, image=(11, 12), filter=(3, 4), dilation=(2, 3), pad_low=(3, 1),
        pad_high=(0, 4),
    ),
    "both": ConvProblem(
        n=2, g=20, k=1, c=1, image=(11, 12), filter=(4, 3), stride=(4, 2), dilation=(2, 2),
        pad_low=(0, 5), pad_high=(2, 1), layout="NHWC_KYXC_NHWK",
    ),
    "odd_groups": ConvProblem(
        n=2, g=37, k=1, c=1, image=(7, 7), filter=(3, 3), pad_low=(1, 1),
        layout="NHWGC_GKCYX_NHWGK",
    ),
    "wide_pads": ConvProblem(n=2, g=8, k=1, c=1, image=(5, 6), filter=(2, 2), pad_low=(4, 3)),
    "wave": ConvProblem(
        n=3, g=12, k=1, c=1, image=(41,), filter=(5,), stride=2, pad_low=(2,),
        layout="NWGC_GKXC_NWGK",
    ),
    "volume": ConvProblem(
        n=2, g=10, k=1, c=1, image=(4, 6, 7), filter=(2, 3, 3), stride=(2, 1, 1),
        pad_low=(1, 1, 1), layout="NDHWGC_GKZYXC_NDHWGK",
    ),
}  # fmt: skip


def _strategy(**tiling: int) -> Strategy:
    ones = dict.fromkeys(("across", "down", "images"), 1)
    return Strategy(name="depthwise_pixels", tiling=PixelTiling(**{**ones, **tiling}), split_k=1)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_chosen_tilings_are_exact(name, direction):
    problem = replace(PROBLEMS[name], direction=direction)
    verify(problem, "gfx942", "depthwise_pixels").require()


@pytest.mark.parametrize(
    "chip", [pytest.param(c, marks=[] if c in ("gfx942", "gfx1100") else SLOW) for c in EXECUTED]
)
@pytest.mark.parametrize(
    ("dtype", "direction"),
    [("f16", "fwd"), ("bf16", "bwd_data"), ("f32", "fwd"), ("i8", "bwd_data")],
)
@pytest.mark.parametrize("data", ["integers", *(pytest.param(d, marks=SLOW) for d in ("random",))])
def test_types_on_every_chip(chip, dtype, direction, data):
    problem = ConvProblem(
        n=3, g=24, k=1, c=1, image=(9, 13), filter=(3, 5), stride=(2, 1), pad_low=(1, 3),
        dtype=dtype, direction=direction,
    )  # fmt: skip
    verify(problem, chip, "depthwise_pixels", data=data).require()


@pytest.mark.parametrize(
    "strategy",
    [
        # Rows of a strip walked by a loop, one and two at a time, and all written out.
        _strategy(vector=4, columns=4, rows=9, unroll=1, lanes=6, threads=64),
        _strategy(vector=4, columns=4, rows=8, unroll=2, lanes=6, threads=64),
        _strategy(vector=4, columns=4, rows=9, unroll=9, lanes=6, threads=64),
        # Strips that the result's rows and columns do not fill, nor those of a workgroup.
        _strategy(vector=2, columns=5, rows=4, unroll=4, lanes=12, across=2, threads=64),
        _strategy(vector=2, columns=1, rows=1, unroll=1, lanes=12, across=5, threads=64),
        # Groups and images shared by workgroups, evenly and not; threads that have none.
        _strategy(vector=4, columns=3, rows=3, unroll=3, lanes=3, down=2, images=2, threads=64),
        _strategy(vector=4, columns=3, rows=3, unroll=3, lanes=5, down=3, images=3, threads=128),
        _strategy(vector=1, columns=4, rows=9, unroll=1, lanes=24, across=3, threads=128),
    ],
    ids=lambda one: f"{one.text}".replace(" ", "-"),
)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_any_tiling(strategy, direction):
    verify(replace(PROBLEMS["same"], direction=direction), "gfx942", strategy).require()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("elementwise", ["scale(2)", "bilinear(2, 1)", "clamp(-3, 3)", "add:f32"])
def test_elementwise_ops_in_the_same_kernel(elementwise, direction):
    problem = replace(PROBLEMS["strided"], direction=direction, elementwise=elementwise)
    verify(problem, "gfx942", "depthwise_pixels").require()
    assert len(compile(problem, "gfx942", "depthwise_pixels").kernels) == 1


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_operand_ops_in_the_same_kernel(direction):
    source = {"fwd": "input_op", "bwd_data": "output_op"}[direction]
    ops = {source: "relu", "weight_op": "scale(2)"}
    problem = replace(PROBLEMS["same"], direction=direction, **ops)
    verify(problem, "gfx942", "depthwise_pixels").require()
    assert len(compile(problem, "gfx942", "depthwise_pixels").kernels) == 1


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", ["same", "gaps"])
def test_nothing_that_is_not_finite_is_lost(name, direction):
    problem = replace(PROBLEMS[name], direction=direction)
    verify(problem, "gfx942", "depthwise_pixels", data="special").require()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_infinities_stay_where_they_belong(direction):
    """A strip that goes past the result, or reads past the source, adds nothing from there."""
    strategy = _strategy(vector=2, columns=5, rows=4, unroll=4, lanes=12, across=2, threads=64)
    problem = replace(PROBLEMS["same"], direction=direction)
    kernel = load(compile(problem, "gfx942", strategy))
    source, weight = inputs(problem, "integers", 0)
    source[:, -1, -1] = np.inf
    weight[...] = 1
    want = reference(problem, source, weight)
    got = to_numpy(kernel(kernel.put(source), kernel.put(weight)))
    assert np.array_equal(got, want, equal_nan=True)


@st.composite
def _drawn(draw, direction):
    """A depthwise problem, and which of its tilings."""
    rank = draw(st.sampled_from([1, 2, 2, 3]))
    most, longest = {1: (60, 6), 2: (15, 4), 3: (7, 3)}[rank]

    def several(least, most):
        return draw(st.tuples(*[st.integers(least, most)] * rank))

    dilation, taps, low, high = several(1, 3), several(1, longest), several(0, 3), several(0, 3)
    extents = [
        (f - 1) * d + 1 - a - b for f, d, a, b in zip(taps, dilation, low, high, strict=True)
    ]
    image = tuple(max(least, size) for least, size in zip(extents, several(1, most), strict=True))
    dtype = draw(st.sampled_from(["f16", "bf16", "f32", "i8"]))
    problem = ConvProblem(
        n=draw(st.integers(1, 4)), g=draw(st.sampled_from([2, 3, 8, 12, 16, 24, 37, 40])), k=1,
        c=1, image=image, filter=taps, stride=several(1, 3 if rank < 3 else 2), dilation=dilation,
        pad_low=low, pad_high=high, dtype=dtype, direction=direction,
        layout=draw(st.sampled_from(["NHWGC_GKYXC_NHWGK", "NHWC_KYXC_NHWK"])),
        elementwise=draw(st.sampled_from(["", "", "", "bilinear(2, 1)", "relu"])),
    )  # fmt: skip
    return problem, draw(st.integers(0, 10**6))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    ("chip", "number"),
    [
        *(("gfx942", 4), ("gfx1100", 4)),
        *(
            pytest.param(chip, 60, marks=SLOW)
            for chip in ("gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201")
        ),
    ],
)
def test_random_problems_with_random_tilings(chip, number, direction):
    target = find_target(chip)

    @for_drawn(_drawn(direction), number, f"{chip} {direction}")
    def _(drawn: tuple[ConvProblem, int]) -> None:
        problem, which = drawn
        wgrad = resolve(problem, target, "").wgrad
        assert small_groups(wgrad, target) == problem
        found = tuple(dict.fromkeys(tilings(wgrad, target)))
        one = Strategy(name="depthwise_pixels", tiling=found[which % len(found)], split_k=1)
        try:
            verify(problem, chip, one).require()
        except OutOfRegisters:  # a choice passes it over
            verify(problem, chip, "depthwise_pixels").require()
