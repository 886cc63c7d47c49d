"""`wgmma_windows`: where it fits and why not elsewhere, where it is chosen, what it costs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedProblem, UnsupportedStrategy
from conv_compiler.passes.wgmma_parts.window_kernel import WindowKernel
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import wgmma_windows_cost as cost
from conv_compiler.strategies.gpu.wgmma_windows import WGMMA_WINDOWS, merges, tilings
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import Strategy, StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

HOPPER = find_target("sm_90a")
NAME = WGMMA_WINDOWS.name
LAYER = ConvProblem(
    n=32, g=32, k=8, c=8, image=(28, 28), filter=(3, 3), pad_low=(1, 1),
    layout="NHWGC_GKYXC_NHWGK", direction="fwd",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "chip", "why"),
    [
        ({}, "sm_89", "wave groups of its chip multiply its types"),
        ({"dtype": "f32"}, "sm_90a", "wave groups of its chip multiply its types"),
        ({"direction": "bwd_weight"}, "sm_90a", "it computes fwd and bwd_data"),
        ({"layout": "NGCHW_GKCYX_NGKHW"}, "sm_90a", "channels lie last in its layouts"),
        ({"layout": "GNHWC_GKYXC_GNHWK"}, "sm_90a", "channels lie last in its layouts"),
        ({"input_op": "relu"}, "sm_90a", "its operands have no ops"),
        ({"c": 40}, "sm_90a", "its groups have 32 source channels at most"),
        ({"c": 12}, "sm_90a", "its channels of a group come in 8s"),
        ({"k": 4}, "sm_90a", "its channels of a group come in 8s"),
        ({"n": 1, "image": (9000, 9000)}, "sm_90a", "its tensors have fewer than"),
        ({"filter": (70, 70), "pad_low": (99, 99)}, "sm_90a", "LDS holds its windows"),
    ],
)
def test_it_says_where_it_does_not_fit(changes, chip, why):
    problem = replace(LAYER, weight_dtype="", **changes)
    target = find_target(chip)
    assert why in WGMMA_WINDOWS.refusal(resolve(problem, target).wgrad, target)
    with pytest.raises(UnsupportedStrategy, match=why):
        choose(problem, target, NAME)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dtype": "bf16", "direction": "bwd_data"},
        {"k": 16, "image": (56, 56)},
        {"k": 16, "c": 16, "image": (14, 14), "direction": "bwd_data"},
        {"elementwise": "bilinear(0.5, 2)"},
        {"elementwise": "bias>relu"},
    ],
    ids=str,
)
def test_it_is_taken_for_small_groups(changes):
    first, *_ = choose(replace(LAYER, weight_dtype="", **changes), HOPPER)
    assert first.name == NAME
    assert Strategy.from_json(first.to_json()) == first


@pytest.mark.parametrize(
    "changes", [{"g": 1, "k": 64, "c": 64}, {"k": 4, "c": 4}, {"g": 144, "k": 1, "c": 1}], ids=str
)
def test_other_problems_do_not_take_it(changes):
    first, *_ = choose(replace(LAYER, **changes), HOPPER)
    assert first.name != NAME


@pytest.mark.parametrize(
    ("changes", "merged"),
    [
        ({}, [2, 4, 8]),
        ({"g": 6}, [2]),
        ({"k": 16, "c": 16}, [1, 2, 4]),
        ({"c": 24}, [2]),
    ],
)
def test_groups_share_a_workgroup_as_far_as_they_divide(changes, merged):
    assert merges(replace(LAYER, **changes)) == merged


def test_a_tile_is_taken_by_name():
    wanted = StrategyRequest(name=NAME, tile=(1, 16, 16))
    found = choose(LAYER, HOPPER, wanted)
    assert found
    assert {one.tile for one in found} == {(1, 16, 16)}


@given(
    k=st.sampled_from([8, 16, 24, 32, 64]),
    c=st.sampled_from([8, 16, 24, 32]),
    g=st.sampled_from([1, 2, 4, 8, 16, 24]),
    n=st.integers(1, 5),
    image=st.integers(3, 30),
    window=st.integers(1, 4),
    stride=st.integers(1, 3),
    direction=st.sampled_from(["fwd", "bwd_data"]),
    elementwise=st.sampled_from(["", "relu"]),
)
@settings(max_examples=40, deadline=None)
def test_the_cost_counts_what_the_pass_writes(
    k, c, g, n, image, window, stride, direction, elementwise
):
    try:
        problem = ConvProblem(
            n=n, g=g, k=k, c=c, image=(image, image), filter=(window, window),
            stride=(stride, stride), layout="NHWGC_GKYXC_NHWGK", direction=direction,
            elementwise=elementwise,
        )  # fmt: skip
    except UnsupportedProblem:
        assume(False)
    wgrad = resolve(problem, HOPPER).wgrad
    assume(not WGMMA_WINDOWS.refusal(wgrad, HOPPER))
    for tiling in tilings(problem, HOPPER):
        one = Strategy(name=NAME, tiling=tiling, split_k=1)
        (step,) = WGMMA_WINDOWS.lower(wgrad, HOPPER, one).passes
        step.check()
        kernel = WindowKernel(step)
        assert kernel.grid == (cost.workgroups(problem, tiling), 1, 1)
        is_narrow = problem.result_type.bytes == 2 and not elementwise
        assert 4 * kernel.lds_floats(is_narrow) == cost.lds_bytes(problem, tiling)
        assert cost.lds_bytes(problem, tiling) <= HOPPER.lds_bytes
        assert cost.predict(problem, HOPPER, tiling) > 0
