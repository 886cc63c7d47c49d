"""The depthwise schedule is right with any tiling it may have: strips, windows, threads, parts.

The choice among tilings is by modelled time; here each is asked for.
"""

from __future__ import annotations

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load, to_numpy
from conv_compiler.strategies.strategy import DepthwiseTiling, Strategy
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import reference
from conv_compiler.verification.verify import verify
from tests.chips import EXECUTED

SLOW = [pytest.mark.slow]
PROBLEMS = {
    "same": ConvProblem(n=3, g=24, k=1, c=1, image=(9, 12), filter=(3, 3), pad_low=(1, 1)),
    "strided": ConvProblem(
        n=2, g=24, k=1, c=1, image=(11, 13), filter=(5, 3), stride=2, pad_low=(2, 0),
        pad_high=(1, 1),
    ),
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
    "wave": ConvProblem(
        n=3, g=12, k=1, c=1, image=(41,), filter=(5,), stride=2, pad_low=(2,),
        layout="NWGC_GKXC_NWGK",
    ),
    "volume": ConvProblem(
        n=2, g=10, k=1, c=1, image=(4, 6, 7), filter=(2, 3, 3), stride=(2, 1, 1),
        pad_low=(1, 1, 1), layout="NDHWGC_GKZYXC_NDHWGK",
    ),
}  # fmt: skip


def _strategy(split_k: int, **tiling: int) -> Strategy:
    return Strategy(name="depthwise", tiling=DepthwiseTiling(**tiling), split_k=split_k)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("split_k", ["auto", *(pytest.param(n, marks=SLOW) for n in (1, 5))])
def test_chosen_tilings_are_exact(name, split_k):
    verify(PROBLEMS[name], "gfx942", "depthwise", split_k).require()


@pytest.mark.parametrize(
    "chip", [pytest.param(c, marks=[] if c == "gfx942" else SLOW) for c in EXECUTED]
)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "i8"])
@pytest.mark.parametrize("data", ["integers", pytest.param("random", marks=SLOW)])
def test_types_on_every_chip(chip, dtype, data):
    problem = ConvProblem(
        n=3, g=24, k=1, c=1, image=(9, 13), filter=(3, 5), stride=(2, 1), pad_low=(1, 3),
        dtype=dtype,
    )  # fmt: skip
    verify(problem, chip, "depthwise", 3, data=data).require()


@pytest.mark.parametrize(
    "strategy",
    [
        # Rows of a strip walked by a loop, a few of them at a time, and all written out.
        _strategy(2, vector=4, columns=4, rows=9, unroll=1, lanes=6, threads=64),
        _strategy(2, vector=4, columns=4, rows=9, unroll=3, lanes=6, threads=64),
        _strategy(2, vector=4, columns=4, rows=9, unroll=9, lanes=6, threads=64),
        # Strips that the output's rows and columns do not fill.
        _strategy(2, vector=2, columns=5, rows=4, unroll=2, lanes=12, threads=128),
        # Groups shared by workgroups, evenly and not; threads that have none.
        _strategy(3, vector=4, columns=3, rows=3, unroll=1, lanes=3, threads=256),
        _strategy(1, vector=4, columns=3, rows=3, unroll=1, lanes=5, threads=128),
        # Several rounds of strips, and more parts than there are rounds.
        _strategy(1, vector=8, columns=1, rows=1, unroll=1, lanes=3, threads=64),
        _strategy(40, vector=1, columns=4, rows=9, unroll=1, lanes=24, threads=64),
    ],
    ids=lambda one: f"{one.text}".replace(" ", "-"),
)
def test_any_tiling(strategy):
    verify(PROBLEMS["same"], "gfx942", strategy).require()


def test_elementwise_op_behind_the_sum():
    problem = ConvProblem(
        n=2, g=48, k=1, c=1, image=(8, 8), filter=(3, 3), pad_low=(1, 1), weight_dtype="f32",
        elementwise="scale(2)",
    )  # fmt: skip
    for split_k in (1, 4):
        verify(problem, "gfx942", "depthwise", split_k).require()


def test_infinities_stay_where_they_belong():
    """A strip that goes past the output multiplies no image pixel there, not even by zero."""
    strategy = _strategy(2, vector=2, columns=5, rows=4, unroll=2, lanes=12, threads=128)
    problem = PROBLEMS["same"]
    kernel = load(compile(problem, "gfx942", strategy))
    image, gradient = inputs(problem, "integers", 0)
    image[:, -1, -1] = np.inf
    gradient[...] = 1
    with np.errstate(invalid="ignore"):
        want = reference(problem, image, gradient)
    got = to_numpy(kernel(kernel.put(image), kernel.put(gradient)))
    assert np.array_equal(got, want, equal_nan=True)
