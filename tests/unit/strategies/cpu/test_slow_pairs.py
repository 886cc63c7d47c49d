"""CPUs that multiply pairs no faster than f32, as those with AMX: what is chosen there instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target

SLOW, FAST = find_target("cpu-sapphirerapids"), find_target("cpu-znver4")
FIRST = "NGCHW_GKCYX_NGKHW"
STEM = ConvProblem(
    n=8, k=64, c=3, image=(224, 224), filter=7, stride=2, pad_low=3, dtype="bf16", direction="fwd"
)
GROUPS = replace(STEM, g=32, k=8, c=8, image=(56, 56), filter=3, pad_low=1, pad_high=1)
PLANES = replace(GROUPS, k=4, c=4, stride=1, layout=FIRST)
POINTS = replace(PLANES, g=1, k=20, c=4, filter=1, pad_low=0, pad_high=0)
DEPTHWISE = replace(GROUPS, k=1, c=1, direction="bwd_weight")


def test_which_instructions_are_fast():
    assert SLOW.cpu.pair_instruction("bf16").name == "vdpbf16ps"
    assert SLOW.cpu.fast_pairs("bf16") is None
    assert FAST.cpu.fast_pairs("bf16").name == "vdpbf16ps"
    for target in (SLOW, FAST):
        assert target.cpu.fast_pairs("i8").name == "vpdpwssd"
        assert target.cpu.fast_pairs("f32") is None


@pytest.mark.parametrize(
    ("problem", "slow", "fast"),
    [
        (STEM, "cpu_direct", "cpu_dot_direct"),
        (replace(STEM, dtype="i8", weight_dtype=""), "cpu_dot_direct", "cpu_dot_direct"),
        (replace(STEM, direction="bwd_weight"), "cpu_packed", "cpu_dot"),
        (GROUPS, "cpu_dot_direct", "cpu_dot_direct"),
        (PLANES, "cpu_planes", "cpu_planes"),
        (DEPTHWISE, "cpu_dot", "cpu_dot"),
        (replace(GROUPS, g=1, k=256, c=256), "cpu_amx_direct", "cpu_dot_direct"),
    ],
    ids=["stem", "i8", "stem wgrad", "groups", "planes", "depthwise", "dense"],
)
def test_what_is_chosen(problem, slow, fast):
    assert [choose(problem, one)[0].name for one in (SLOW, FAST)] == [slow, fast]


@pytest.mark.parametrize(("problem", "name"), [(PLANES, "cpu_planes"), (POINTS, "cpu_pointwise")])
def test_pixels_in_the_lanes_are_multiplied_one_by_one(problem, name):
    slow, fast = (choose(problem, one, name)[0].tiling.instruction for one in (SLOW, FAST))
    assert (slow, fast) == ("", "vdpbf16ps")


def test_products_in_terms_stay_with_pairs():
    problem = replace(STEM, direction="bwd_weight", dtype="f32", weight_dtype="", compute="bf16x3")
    assert choose(problem, FAST)[0].name == "cpu_dot"
