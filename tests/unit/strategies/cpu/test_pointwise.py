"""1x1 kernels with pixels in the lanes: what is chosen and refused, and how work is cut."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.pointwise_kernel import PointwiseKernel
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu.cpu_pointwise import CPU_POINTWISE
from conv_compiler.strategies.cpu.pointwise_tiles import Pointwise
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import find_target
from conv_compiler.targets.host import STACK_BYTES
from conv_compiler.targets.resolve import resolve

CPU = find_target("cpu-znver4")
NAME = CPU_POINTWISE.name
LAYER = ConvProblem(
    n=8, k=64, c=256, image=(56, 56), filter=(1, 1), layout="NGCHW_GKCYX_NGKHW", direction="fwd"
)


@pytest.mark.parametrize("target", ["cpu-znver4", "cpu-x86-64-v3", "cpu-neoverse-v1"])
@pytest.mark.parametrize("direction", ["fwd", "bwd_data"])
def test_it_is_taken_for_channels_in_front(target, direction):
    first, *_ = choose(replace(LAYER, direction=direction), find_target(target))
    assert first.name == NAME
    assert Strategy.from_json(first.to_json()) == first


def test_pairs_are_multiplied_where_the_cpu_has_them():
    first, *_ = choose(replace(LAYER, dtype="bf16", weight_dtype=""), CPU)
    assert (first.name, first.instruction) == (NAME, "vdpbf16ps")


@pytest.mark.parametrize(
    "changes",
    [
        {"image": (7, 7)},  # 49 pixels in four vectors of 16
        {"dtype": "bf16", "weight_dtype": "", "c": 255},
        {"filter": (3, 3), "pad_low": 1, "pad_high": 1},
    ],
    ids=str,
)
def test_other_kernels_come_first(changes):
    first, *_ = choose(replace(LAYER, **changes), CPU)
    assert first.name != NAME


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"layout": "NHWGC_GKYXC_NHWGK"}, "channels lie in front of the pixels"),
        ({"filter": (3, 3)}, "its filter has one tap"),
        ({"stride": 2}, "its filter has one tap"),
        ({"pad_low": 1}, "its filter has one tap"),
        ({"image": (3, 5)}, "an image has a vector of pixels"),
        ({"direction": "bwd_weight"}, "computes fwd and bwd_data"),
    ],
    ids=str,
)
def test_refusals(changes, rule):
    problem = replace(LAYER, **changes)
    assert rule in CPU_POINTWISE.refusal(resolve(problem, CPU).wgrad, CPU)
    with pytest.raises(UnsupportedStrategy, match=rule):
        choose(problem, CPU, NAME)


@given(
    channels=st.tuples(st.integers(1, 300), st.integers(1, 300), st.integers(1, 3)),
    image=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    direction=st.sampled_from(["fwd", "bwd_data"]),
    dtype=st.sampled_from(["f32", "bf16"]),
)
@settings(max_examples=40, deadline=None)
def test_each_tiling_cuts_whole_shares_that_registers_and_stack_hold(
    channels, image, direction, dtype
):
    c, k, g = channels
    problem = replace(
        LAYER, c=c, k=k, g=g, image=image, direction=direction, dtype=dtype, weight_dtype=""
    )
    wgrad = resolve(problem, CPU).wgrad
    if CPU_POINTWISE.refusal(wgrad, CPU):
        return
    several = CPU.cpu.pair_instruction(dtype) if c % 2 == k % 2 == 0 else None
    counted = Pointwise(problem=problem, processor=CPU.cpu, instruction=several)
    found = list(counted.tilings())
    assert found
    for cycles, one in found:
        assert cycles > 0
        assert one.block * one.vectors + one.vectors + 1 <= CPU.cpu.unit.registers
        (step,) = CPU_POINTWISE.lower(wgrad, CPU, Strategy(name=NAME, tiling=one, split_k=1)).passes
        assert isinstance(step, PointwiseKernel)
        step.check()
        sources = c if direction == "fwd" else k
        bytes_ = sources * one.vectors * one.lanes * (2 if several else 4)
        assert bytes_ <= STACK_BYTES or not one.on_stack
