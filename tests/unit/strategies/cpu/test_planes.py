"""Depthwise kernels with pixels in the lanes: what is chosen and refused, and how work is cut."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedProblem, UnsupportedStrategy
from conv_compiler.passes.plane_kernel import PlaneKernel
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu.cpu_planes import CPU_PLANES
from conv_compiler.strategies.cpu.plane_tiles import tilings
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import find_target
from conv_compiler.targets.host import STACK_BYTES
from conv_compiler.targets.resolve import resolve

CPU = find_target("cpu-znver4")
NAME = CPU_PLANES.name
LAYER = ConvProblem(
    n=8, g=32, k=1, c=1, image=(112, 112), filter=(3, 3), pad_low=1, layout="NGCHW_GKCYX_NGKHW",
    direction="fwd",
)  # fmt: skip


@pytest.mark.parametrize("target", ["cpu-znver4", "cpu-x86-64-v3", "cpu-neoverse-v1"])
@pytest.mark.parametrize("direction", ["fwd", "bwd_data"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_it_is_taken_for_channels_in_front(target, direction, dtype):
    problem = replace(LAYER, direction=direction, dtype=dtype, weight_dtype="")
    first, *_ = choose(problem, find_target(target))
    assert first.name == NAME
    assert Strategy.from_json(first.to_json()) == first


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"layout": "NHWGC_GKYXC_NHWGK"}, "channels lie in front of the pixels"),
        ({"c": 2}, "its groups have one channel"),
        ({"stride": 2}, "its strides are one"),
        ({"filter": (8, 8)}, "its filter has 49 taps at most"),
        ({"image": (2, 40000)}, "the stack holds rows of its source"),
        ({"direction": "bwd_weight"}, "computes fwd and bwd_data"),
    ],
    ids=str,
)
def test_refusals(changes, rule):
    problem = replace(LAYER, **changes)
    assert rule in CPU_PLANES.refusal(resolve(problem, CPU).wgrad, CPU)
    with pytest.raises(UnsupportedStrategy, match=rule):
        choose(problem, CPU, NAME)


def test_short_rows_have_short_vectors_and_several_planes():
    (one,) = choose(replace(LAYER, image=(7, 7), g=960), CPU, NAME)
    assert one.tiling.lanes == 8
    assert one.tiling.planes_share > 1
    assert one.tiling.rows_share == 7


@given(
    g=st.integers(1, 200),
    image=st.tuples(st.integers(1, 200), st.integers(1, 200)),
    window=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    pad=st.integers(0, 3),
    direction=st.sampled_from(["fwd", "bwd_data"]),
)
@settings(max_examples=60, deadline=None)
def test_copies_hold_what_tiles_read(g, image, window, pad, direction):
    try:
        problem = replace(
            LAYER, g=g, image=image, filter=window, pad_low=pad, pad_high=pad, direction=direction
        )
    except UnsupportedProblem:
        return
    wgrad = resolve(problem, CPU).wgrad
    if CPU_PLANES.refusal(wgrad, CPU):
        return
    for cycles, one in tilings(problem, CPU.cpu):
        assert cycles > 0
        (step,) = CPU_PLANES.lower(wgrad, CPU, Strategy(name=NAME, tiling=one, split_k=1)).passes
        assert isinstance(step, PlaneKernel)
        step.check()
        assert step.copied_rows * step.row_pixels * 4 <= STACK_BYTES
        rows, columns = step.slides
        low, high = step.reach(1)
        begin = max(0, columns.outs - one.lanes)
        assert step.front + low >= 0
        assert begin + one.lanes - 1 + high + step.front < step.row_pixels
        assert step.front + columns.size <= step.row_pixels
        top, bottom = step.reach(0)
        assert step.rows_share - 1 + bottom - top < step.copied_rows
        assert rows.outs % step.rows_share == 0
