"""Depthwise kernels with pixels in the lanes, run: directions, odd rows, pads, dilations, ops."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conv_compiler as cc
from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu.cpu_planes import CPU_PLANES, misfit
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from tests.checks import check
from tests.turns import in_turn

NAME = CPU_PLANES.name
DIRECTIONS = ("fwd", "bwd_data")
ROWS = {1: "NGCW_GKCX_NGKW", 2: "NGCHW_GKCYX_NGKHW"}
ONE = {"k": 1, "c": 1, "layout": ROWS[2]}
PROBLEMS = {
    "pads": ConvProblem(n=2, g=3, image=(9, 21), filter=(3, 3), pad_low=1, **ONE),
    "short rows": ConvProblem(n=2, g=4, image=(7, 7), filter=(5, 5), pad_low=2, **ONE),
    "shorter rows": ConvProblem(n=1, g=6, image=(4, 3), filter=(3, 3), pad_low=1, **ONE),
    "dilated": ConvProblem(
        n=1, g=5, image=(20, 37), filter=(3, 2), dilation=(2, 3), pad_low=(1, 0), pad_high=(0, 4),
        **ONE,
    ),
    "no pads": ConvProblem(n=2, g=2, image=(11, 40), filter=(4, 7), **ONE),
    "one tap": ConvProblem(n=2, g=2, image=(5, 19), filter=(1, 1), **ONE),
    "far pads": ConvProblem(n=1, g=2, image=(3, 5), filter=(3, 3), pad_low=4, **ONE),
    "one dimension": ConvProblem(
        n=3, g=2, image=(41,), filter=(5,), pad_low=2, k=1, c=1, layout=ROWS[1]
    ),
    "long rows": ConvProblem(n=1, g=1, image=(2, 8000), filter=(3, 3), pad_low=1, **ONE),
}  # fmt: skip


def fits(problem):
    row = find_target("cpu")
    return not misfit(resolve(problem, row).wgrad, row)


@pytest.mark.parametrize(
    ("name", "direction", "dtype"), in_turn(PROBLEMS, DIRECTIONS, ["f32", "bf16", "f16", "i8"])
)
def test_integers_are_exact(name, direction, dtype):
    problem = replace(PROBLEMS[name], direction=direction, dtype=dtype, weight_dtype="")
    cc.verify(problem, "cpu", strategy=NAME, data="integers", budget=0).require()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("data", ["random", "special"])
def test_other_data(direction, data):
    problem = replace(PROBLEMS["pads"], direction=direction, dtype="f32", weight_dtype="")
    cc.verify(problem, "cpu", strategy=NAME, data=data, budget=0).require()


@pytest.mark.parametrize("name", ["pads", "short rows"])
@pytest.mark.parametrize(
    "fields",
    [
        {"elementwise": "relu"},
        {"elementwise": "bias>relu"},
        {"elementwise": "scale_add(0.5):f32"},
        {"input_op": "relu"},
        {"kept_weight": True},
        {"dynamic_batch": True},
        {"dtype": "bf16", "weight_op": "relu"},
        {"dtype": "bf16", "weight_dtype": "f32", "direction": "bwd_data"},
    ],
    ids=str,
)
def test_ops_and_types(name, fields):
    problem = replace(PROBLEMS[name], direction="fwd", dtype="f32", weight_dtype="")
    check(replace(problem, **fields), strategy=NAME)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    direction=st.sampled_from(DIRECTIONS),
    dtype=st.sampled_from(["f32", "bf16", "i8"]),
    sizes=st.integers(1, 2).flatmap(
        lambda ndim: st.tuples(
            *(
                st.tuples(*[st.integers(*one)] * ndim)
                for one in ((1, 40), (1, 5), (1, 3), (0, 3), (0, 3))
            )
        )
    ),
    g=st.integers(1, 9),
    n=st.integers(1, 3),
)
def test_any_sizes(direction, dtype, sizes, g, n):
    image, filter, dilation, pad_low, pad_high = sizes
    try:
        problem = ConvProblem(
            direction=direction, n=n, g=g, k=1, c=1, image=image, filter=filter, dtype=dtype,
            dilation=dilation, pad_low=pad_low, pad_high=pad_high, layout=ROWS[len(image)],
        )  # fmt: skip
    except UnsupportedProblem:
        return
    if fits(problem):
        cc.verify(problem, "cpu", strategy=NAME, data="integers", budget=0).require()
