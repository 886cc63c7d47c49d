"""`mma_sync_windows`: where it fits and why not elsewhere, where it is chosen, what it costs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from iree.compiler import ir

from conv_compiler.build import build
from conv_compiler.errors import UnsupportedProblem, UnsupportedStrategy
from conv_compiler.passes.implicit_gemm_parts.contraction import find_contraction
from conv_compiler.passes.wgmma_parts.gradient_kernel import GradientKernel
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import mma_sync_windows_cost as cost
from conv_compiler.strategies.gpu.mma_sync_windows import (
    MMA_SYNC_WINDOWS,
    joined,
    merges,
    tilings,
)
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import Strategy, StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

AMPERE, HOPPER = find_target("sm_80"), find_target("sm_90a")
NAME = MMA_SYNC_WINDOWS.name
LAYER = ConvProblem(
    n=32, g=32, k=8, c=8, image=(28, 28), filter=(3, 3), pad_low=(1, 1),
    layout="NHWGC_GKYXC_NHWGK",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"dtype": "i8"}, "waves of its chip multiply its types"),
        ({"dtype": "f32", "compute": "xf32"}, "its types have 16 bits"),
        ({"direction": "fwd"}, "it computes weight gradients"),
        ({"layout": "NGCHW_GKCYX_NGKHW"}, "channels lie last in its layouts"),
        ({"layout": "GNHWC_GKYXC_GNHWK"}, "channels lie last in its layouts"),
        ({"c": 72}, "its groups have 64 channels at most"),
        ({"c": 1}, "as many groups as divide it, 4 at most, have their channels in 8s"),
        ({"g": 3, "c": 4}, "as many groups as divide it, 4 at most, have their channels in 8s"),
        ({"n": 1, "image": (9000, 9000)}, "its tensors have fewer than"),
        ({"filter": (9, 9), "pad_low": (4, 4)}, "LDS holds its windows"),
    ],
)
def test_it_says_where_it_does_not_fit(changes, why):
    problem = replace(LAYER, weight_dtype="", **changes)
    assert why in MMA_SYNC_WINDOWS.refusal(resolve(problem, AMPERE).wgrad, AMPERE)
    with pytest.raises(UnsupportedStrategy, match=why):
        choose(problem, AMPERE, NAME)


@pytest.mark.parametrize("target", [AMPERE, HOPPER], ids=lambda target: target.name)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dtype": "bf16", "elementwise": "bilinear(0.5, 2)"},
        {"k": 4, "c": 4, "image": (56, 56)},
        {"filter": (5, 5), "pad_low": (2, 2)},
    ],
    ids=str,
)
def test_it_is_taken_for_small_groups(changes, target):
    first, *_ = choose(replace(LAYER, weight_dtype="", **changes), target)
    assert first.name == NAME
    assert Strategy.from_json(first.to_json()) == first


@pytest.mark.parametrize(
    "changes",
    [{"g": 1, "k": 64, "c": 64}, {"g": 32, "k": 32, "c": 32}, {"g": 144, "k": 1, "c": 1}],
    ids=str,
)
def test_other_problems_do_not_take_it(changes):
    first, *_ = choose(replace(LAYER, **changes), HOPPER)
    assert first.name != NAME


@pytest.mark.parametrize(
    ("changes", "own", "merged"),
    [
        ({}, 1, [2, 4, 8, 16]),
        ({"g": 6}, 1, [2, 3, 6]),
        ({"k": 4, "c": 4}, 2, [2, 4, 8, 16]),
        ({"k": 6, "c": 2}, 4, [2, 4]),
        ({"k": 64, "c": 16}, 1, [1, 2]),
        ({"g": 1}, 1, [1]),
    ],
    ids=str,
)
def test_groups_share_a_workgroup_as_far_as_they_divide(changes, own, merged):
    problem = replace(LAYER, **changes)
    assert joined(problem) == own
    assert merges(problem, own) == merged


def test_a_tile_is_taken_by_name():
    wanted = StrategyRequest(name=NAME, tile=(1, 4, 28))
    found = choose(LAYER, HOPPER, wanted, 7)
    assert {(one.tile, one.split_k) for one in found} == {((1, 4, 28), 7)}
    few = replace(LAYER, n=1, image=(4, 28))
    assert {one.split_k for one in choose(few, HOPPER, wanted, 7)} == {1}


@given(
    k=st.sampled_from([2, 4, 8, 12, 16, 24, 32, 64]),
    c=st.sampled_from([2, 4, 8, 16, 32]),
    g=st.sampled_from([1, 2, 4, 8, 16, 24]),
    n=st.integers(1, 5),
    image=st.integers(3, 70),
    window=st.integers(1, 4),
    stride=st.integers(1, 3),
)
@settings(max_examples=30, deadline=None)
def test_the_cost_counts_what_the_pass_writes(k, c, g, n, image, window, stride):
    try:
        problem = ConvProblem(
            n=n, g=g, k=k, c=c, image=(image, image), filter=(window, window),
            stride=(stride, stride), layout="NHWGC_GKYXC_NHWGK",
        )  # fmt: skip
    except UnsupportedProblem:
        assume(False)
    assume(not MMA_SYNC_WINDOWS.refusal(problem, AMPERE))
    with ir.Context(), ir.Location.unknown():
        module = build(problem)
        conv = find_contraction(module)
        for tiling in list(tilings(problem, AMPERE))[::5]:
            one = Strategy(name=NAME, tiling=tiling)
            parts = MMA_SYNC_WINDOWS.splits(problem, AMPERE, one)[-1]
            lowering = MMA_SYNC_WINDOWS.lower(problem, AMPERE, one.with_split_k(parts))
            (step,) = lowering.passes
            kernel = GradientKernel(conv, step)
            assert kernel.blocks == cost.workgroups(problem, tiling)
            assert tiling.stages * kernel.stage_bytes == cost.lds_bytes(problem, tiling)
            assert cost.lds_bytes(problem, tiling) <= AMPERE.lds_bytes
            threads, _, _ = lowering.schedule.roles["contraction"].workgroup_size
            assert threads == kernel.tile.threads
            assert cost.predict(problem, AMPERE, tiling, parts) > 0
