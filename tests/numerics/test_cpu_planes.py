"""Kernels with the pixels of a row in the lanes, run: directions, channels, strides, odd rows,
pads, dilations, ops."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conv_compiler as cc
from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu.cpu_kind import pairs
from conv_compiler.strategies.cpu.cpu_planes import CPU_PLANES, misfit
from conv_compiler.strategies.cpu.plane_tiles import tilings
from conv_compiler.strategies.strategy import Strategy, StrategyRequest
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
    "few channels": ConvProblem(
        n=2, g=3, k=4, c=4, image=(9, 21), filter=(3, 3), pad_low=1, layout=ROWS[2]
    ),
    "odd channels": ConvProblem(
        n=2, g=2, k=5, c=3, image=(8, 35), filter=(3, 2), pad_low=(1, 0), layout=ROWS[2]
    ),
    "many channels": ConvProblem(
        n=1, g=2, k=24, c=36, image=(14, 14), filter=(3, 3), pad_low=1, layout=ROWS[2]
    ),
    "wide results": ConvProblem(
        n=2, g=1, k=40, c=2, image=(7, 7), filter=(3, 3), dilation=2, pad_low=(2, 1),
        pad_high=(0, 3), layout=ROWS[2],
    ),
}  # fmt: skip
STRIDED = {
    "two": ConvProblem(n=2, g=5, image=(19, 41), filter=(3, 3), stride=2, pad_low=1, **ONE),
    "two, short rows": ConvProblem(
        n=2, g=3, image=(7, 7), filter=(5, 5), stride=2, pad_low=2, **ONE
    ),
    "two, one tap": ConvProblem(
        n=1, g=2, k=3, c=4, image=(9, 33), filter=(1, 1), stride=2, layout=ROWS[2]
    ),
    "two by three": ConvProblem(
        n=1, g=2, k=6, c=6, image=(12, 70), filter=(3, 4), stride=(2, 3), pad_low=(0, 2),
        pad_high=(1, 0), layout=ROWS[2],
    ),
    "five": ConvProblem(n=2, g=1, k=32, c=1, image=(333,), filter=(10,), stride=5, layout=ROWS[1]),
    "eight, no window": ConvProblem(
        n=1, g=3, k=2, c=2, image=(5,), filter=(3,), stride=8, dilation=2, layout=ROWS[1]
    ),
    "dilated": ConvProblem(
        n=1, g=2, k=8, c=4, image=(17, 50), filter=(3, 3), stride=2, dilation=(2, 3), pad_low=3,
        layout=ROWS[2],
    ),
    "wider than the row": ConvProblem(
        n=1, g=2, k=4, c=2, image=(6, 3), filter=(3, 3), stride=(1, 5), pad_low=2, layout=ROWS[2]
    ),
}  # fmt: skip


def every_tile(problem):
    row = find_target("cpu")
    several = pairs(problem, row)
    found = tilings(problem, row.cpu, several.name if several else "")
    return [Strategy(name=NAME, tiling=one, split_k=1) for _, one in found]


def fits(problem):
    row = find_target("cpu")
    return not misfit(resolve(problem, row).wgrad, row)


@pytest.mark.parametrize(
    ("name", "direction", "dtype"), in_turn(PROBLEMS, DIRECTIONS, ["f32", "bf16", "f16", "i8"])
)
def test_integers_are_exact(name, direction, dtype):
    problem = replace(PROBLEMS[name], direction=direction, dtype=dtype, weight_dtype="")
    cc.verify(problem, "cpu", strategy=NAME, data="integers", budget=0).require()


@pytest.mark.parametrize(("name", "dtype"), in_turn(STRIDED, ["f32", "bf16", "f16", "i8"]))
def test_strides_are_exact(name, dtype):
    problem = replace(STRIDED[name], direction="fwd", dtype=dtype, weight_dtype="")
    cc.verify(problem, "cpu", strategy=NAME, data="integers", budget=0).require()


@pytest.mark.parametrize(
    ("name", "direction", "dtype"),
    [
        ("pads", "fwd", "f32"),
        ("pads", "bwd_data", "f32"),
        ("few channels", "fwd", "bf16"),
        ("few channels", "bwd_data", "f32"),
        ("odd channels", "fwd", "bf16"),
        ("two", "fwd", "bf16"),
        ("two by three", "fwd", "bf16"),
    ],
)
@pytest.mark.parametrize("data", ["random", "special"])
def test_other_data(name, direction, dtype, data):
    problem = {**PROBLEMS, **STRIDED}[name]
    problem = replace(problem, direction=direction, dtype=dtype, weight_dtype="")
    cc.verify(problem, "cpu", strategy=NAME, data=data, budget=0).require()


@pytest.mark.parametrize(
    "tile", [(1, 1, 16), (2, 2, 32), (4, 3, 16), (8, 1, 32), (8, 2, 16), (4, 1, 64)]
)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_tiles_by_name(tile, dtype):
    """Tiles that divide neither rows nor columns; of the host's lanes, or none."""
    problem = ConvProblem(
        n=1, g=2, k=8, c=4, image=(11, 60), filter=(3, 3), pad_low=1, layout=ROWS[2],
        direction="fwd", dtype=dtype,
    )  # fmt: skip
    lanes = find_target("cpu").cpu.unit.lanes
    wanted = StrategyRequest(name=NAME, tile=(*tile[:2], tile[2] // 16 * lanes))
    if wanted.tile in {one.tile for one in every_tile(problem)}:
        cc.verify(problem, "cpu", strategy=wanted, data="integers", budget=0).require()


@pytest.mark.parametrize("name", ["pads", "short rows", "few channels", "two by three"])
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
    problem = replace({**PROBLEMS, **STRIDED}[name], direction="fwd", dtype="f32", weight_dtype="")
    problem = replace(problem, **fields)
    if fits(problem):  # strides of a data gradient do not
        check(problem, strategy=NAME)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    direction=st.sampled_from(DIRECTIONS),
    dtype=st.sampled_from(["f32", "bf16", "i8"]),
    sizes=st.integers(1, 2).flatmap(
        lambda ndim: st.tuples(
            *(
                st.tuples(*[st.integers(*one)] * ndim)
                for one in ((1, 40), (1, 5), (1, 3), (0, 3), (0, 3), (1, 5))
            )
        )
    ),
    channels=st.one_of(
        st.just((1, 1)), st.tuples(*[st.sampled_from([1, 2, 3, 4, 5, 6, 8, 16, 20])] * 2)
    ),
    g=st.integers(1, 9),
    n=st.integers(1, 3),
)
def test_any_sizes(direction, dtype, sizes, channels, g, n):
    image, filter, dilation, pad_low, pad_high, stride = sizes
    c, k = channels
    if direction == "bwd_data":
        stride = 1
    try:
        problem = ConvProblem(
            direction=direction, n=n, g=g, k=k, c=c, image=image, filter=filter, dtype=dtype,
            stride=stride, dilation=dilation, pad_low=pad_low, pad_high=pad_high,
            layout=ROWS[len(image)],
        )  # fmt: skip
    except UnsupportedProblem:
        return
    if fits(problem):
        cc.verify(problem, "cpu", strategy=NAME, data="integers", budget=0).require()
