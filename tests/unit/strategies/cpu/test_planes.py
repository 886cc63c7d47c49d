"""Kernels with the pixels of a row in the lanes: what is chosen and refused, how work is cut."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedProblem, UnsupportedStrategy
from conv_compiler.passes.plane_kernel import PlaneKernel
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu.cpu_kind import pairs
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
        ({"stride": 2, "direction": "bwd_data"}, "the strides of a data gradient are one"),
        ({"stride": (1, 9)}, "its stride along a row is 8 at most"),
        ({"c": 512, "k": 512, "g": 1}, "the stack holds rows of its source"),
        (
            {
                "image": (4, 5, 6),
                "filter": 1,
                "stride": 1,
                "dilation": 1,
                "pad_low": 0,
                "pad_high": 0,
                "layout": "NGCDHW_GKCZYX_NGKDHW",
            },
            "it has one or two dimensions",
        ),
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


@pytest.mark.parametrize(
    ("changes", "instruction"),
    [
        ({}, "vdpbf16ps"),
        ({"dtype": "i8"}, "vpdpwssd"),
        ({"dtype": "f32"}, ""),
        ({"c": 3}, ""),
        ({"input_op": "relu"}, ""),
    ],
    ids=str,
)
def test_pairs_are_multiplied_where_the_cpu_has_them(changes, instruction):
    problem = replace(LAYER, **{"c": 4, "k": 4, "dtype": "bf16", "weight_dtype": "", **changes})
    (one,) = choose(problem, CPU, NAME)
    assert one.instruction == instruction
    assert one.tiling.block > 1
    assert CPU_PLANES.promises(resolve(problem, CPU).wgrad, CPU, one).instruction == instruction
    assert not choose(problem, find_target("cpu-x86-64-v3"), NAME)[0].instruction


def test_a_data_gradient_has_pairs_of_output_channels():
    problem = replace(LAYER, c=3, k=4, dtype="bf16", weight_dtype="", direction="bwd_data")
    assert choose(problem, CPU, NAME)[0].instruction == "vdpbf16ps"


def test_result_channels_are_shared_where_planes_are_few():
    problem = ConvProblem(
        n=1, k=512, c=1, image=(6400,), filter=10, stride=5, layout="NGCW_GKCX_NGKW",
        direction="fwd",
    )  # fmt: skip
    (one,) = choose(problem, CPU, NAME)
    assert one.tiling.channel_shares > 1
    assert one.tiling.rows == one.tiling.rows_share == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"c": 4, "k": 4, "image": (56, 56)},
        {"c": 16, "k": 16, "image": (14, 14)},
        {"stride": 2},
        {"g": 1, "c": 3, "k": 64, "stride": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_it_is_taken_for_groups_of_few_channels(changes, dtype):
    first, *_ = choose(replace(LAYER, dtype=dtype, weight_dtype="", **changes), CPU)
    assert first.name == NAME


@pytest.mark.parametrize(
    "changes",
    [
        {"g": 1, "c": 128, "k": 128, "image": (28, 28)},
        {"g": 4, "c": 32, "k": 32, "image": (20, 20)},  # 20 pixels in two vectors of 16
    ],
    ids=str,
)
def test_other_kernels_come_first(changes):
    first, *_ = choose(replace(LAYER, **changes), CPU)
    assert first.name != NAME


@given(
    channels=st.tuples(*[st.sampled_from([1, 1, 2, 3, 4, 7, 16])] * 2),
    g=st.integers(1, 200),
    image=st.tuples(st.integers(1, 200), st.integers(1, 200)),
    window=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 5)),
    pad=st.integers(0, 3),
    direction=st.sampled_from(["fwd", "bwd_data"]),
    dtype=st.sampled_from(["f32", "bf16"]),
)
@settings(max_examples=60, deadline=None)
def test_copies_hold_what_tiles_read(channels, g, image, window, stride, pad, direction, dtype):
    c, k = channels
    if direction == "bwd_data":
        stride = (1, 1)
    try:
        problem = replace(
            LAYER, g=g, c=c, k=k, image=image, filter=window, stride=stride, pad_low=pad,
            pad_high=pad, direction=direction, dtype=dtype, weight_dtype="",
        )  # fmt: skip
    except UnsupportedProblem:
        return
    wgrad = resolve(problem, CPU).wgrad
    if CPU_PLANES.refusal(wgrad, CPU):
        return
    several = pairs(problem, CPU)
    for cycles, one in tilings(problem, CPU.cpu, several.name if several else ""):
        assert cycles > 0
        assert one.block * one.rows * one.vectors < CPU.cpu.unit.registers
        (step,) = CPU_PLANES.lower(wgrad, CPU, Strategy(name=NAME, tiling=one, split_k=1)).passes
        assert isinstance(step, PlaneKernel)
        step.check()
        assert step.copied_elements * 4 <= STACK_BYTES
        rows, columns = step.slides
        begin = max(0, columns.outs - one.lanes)
        for read in step.reads(1):
            unit, phase = divmod(read.offset, columns.step)
            assert phase in step.phases
            assert step.front + unit >= 0
            assert begin + one.lanes + unit + step.front <= step.phase_pixels
        for phase in step.phases:
            assert step.front + -(-(columns.size - phase) // columns.step) <= step.phase_pixels
        assert step.copied_lanes * columns.step <= max(columns.size, columns.step)
        top, bottom = step.reach(0)
        assert (step.rows_share - 1) * rows.step + bottom - top < step.copied_rows
        assert rows.outs % step.rows_share == 0
