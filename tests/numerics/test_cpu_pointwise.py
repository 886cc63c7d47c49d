"""1x1 kernels with pixels in the lanes, run: both directions, odd pixels, channels, groups, ops."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conv_compiler as cc
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu.cpu_pointwise import misfit
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from tests.checks import check
from tests.turns import in_turn

NAME = "cpu_pointwise"
DIRECTIONS = ("fwd", "bwd_data")
ROWS = {1: "NGCW_GKCX_NGKW", 2: "NGCHW_GKCYX_NGKHW", 3: "NGCDHW_GKCZYX_NGKDHW"}
PROBLEMS = {
    "whole vectors": ConvProblem(n=2, k=24, c=16, image=(8, 8), filter=1, layout=ROWS[2]),
    "odd pixels": ConvProblem(n=2, k=12, c=20, image=(7, 11), filter=1, layout=ROWS[2]),
    "odd channels": ConvProblem(n=2, k=7, c=5, image=(5, 9), filter=1, layout=ROWS[2]),
    "groups": ConvProblem(n=2, g=3, k=8, c=6, image=(6, 7), filter=1, layout=ROWS[2]),
    "one channel": ConvProblem(n=3, k=1, c=1, image=(4, 33), filter=1, layout=ROWS[2]),
    "one dimension": ConvProblem(n=2, k=10, c=12, image=(41,), filter=1, layout=ROWS[1]),
    "three dimensions": ConvProblem(n=1, k=8, c=4, image=(3, 4, 5), filter=1, layout=ROWS[3]),
    "many channels": ConvProblem(n=1, k=8, c=2050, image=(4, 9), filter=1, layout=ROWS[2]),
}


def fits(problem):
    row = find_target("cpu")
    return not misfit(resolve(problem, row).wgrad, row)


@pytest.mark.parametrize(
    ("name", "direction", "dtype"), in_turn(PROBLEMS, DIRECTIONS, ["f32", "bf16", "f16", "i8"])
)
def test_integers_are_exact(name, direction, dtype):
    problem = replace(PROBLEMS[name], direction=direction, dtype=dtype, weight_dtype="")
    cc.verify(problem, "cpu", strategy=NAME, data="integers", budget=0).require()


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_random_data_are_within_the_tolerance(direction, dtype):
    problem = replace(PROBLEMS["odd pixels"], direction=direction, dtype=dtype, weight_dtype="")
    cc.verify(problem, "cpu", strategy=NAME, data="random", budget=0).require()


@pytest.mark.parametrize(
    "fields",
    [
        {"elementwise": "relu"},
        {"elementwise": "bias>relu"},
        {"elementwise": "scale_add(0.5):f32"},
        {"dtype": "bf16", "elementwise": "bilinear(0.5, 2)"},
        {"input_op": "relu"},
        {"kept_weight": True},
        {"dynamic_batch": True, "direction": "bwd_data"},
        {"dtype": "bf16", "elementwise": "relu"},
        {"dtype": "bf16", "input_op": "relu"},
        {"dtype": "bf16", "weight_dtype": "f32", "direction": "bwd_data"},
    ],
    ids=str,
)
def test_ops_and_types(fields):
    problem = replace(PROBLEMS["odd pixels"], direction="fwd", dtype="f32", weight_dtype="")
    check(replace(problem, **fields), strategy=NAME)


@pytest.mark.parametrize("tile", [(1, 16), (2, 32), (4, 48), (8, 32), (24, 16)])
def test_tiles_by_name(tile):
    """Tiles whose vectors do not divide the pixels among them; of the host's lanes, or none."""
    problem = replace(PROBLEMS["whole vectors"], image=(9, 13), direction="fwd")
    problem = replace(problem, dtype="f32", weight_dtype="")
    lanes = find_target("cpu").cpu.unit.lanes
    wanted = StrategyRequest(name=NAME, tile=(tile[0], tile[1] // 16 * lanes))
    cc.verify(problem, "cpu", strategy=wanted, data="integers", budget=0).require()


@pytest.mark.parametrize("data", ["special"])
def test_what_is_not_finite_stays_in_its_place(data):
    problem = replace(PROBLEMS["odd pixels"], direction="fwd", dtype="bf16", weight_dtype="")
    cc.verify(problem, "cpu", strategy=NAME, data=data, budget=0).require()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    direction=st.sampled_from(DIRECTIONS),
    dtype=st.sampled_from(["f32", "bf16", "i8"]),
    channels=st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 3)),
    image=st.lists(st.integers(1, 14), min_size=1, max_size=3),
    n=st.integers(1, 3),
)
def test_any_sizes(direction, dtype, channels, image, n):
    c, k, g = channels
    problem = ConvProblem(
        direction=direction, n=n, g=g, k=k, c=c, image=tuple(image), filter=1, dtype=dtype,
        layout=ROWS[len(image)],
    )  # fmt: skip
    if fits(problem):
        cc.verify(problem, "cpu", strategy=NAME, data="integers", budget=0).require()
