# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernels beside a data gradient's GEMM take, and where there are none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.model.facts import rank_facts
from conv_compiler.problem.canonical import equivalent_wgrad
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.data_gradient_kernels import beside_seconds
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target

GFX942 = find_target("gfx942")
PROBLEM = ConvProblem(
    n=32, k=512, c=256, image=(56, 56), filter=(1, 1), stride=2, direction="bwd_data"
)


def _seconds(**changes) -> float:
    return beside_seconds(equivalent_wgrad(replace(PROBLEM, **changes)), GFX942)


def test_phases_are_put_in_place_once():
    """f16: the result is written once, and one launch is counted."""
    written = 32 * 56 * 56 * 256 * 2
    launch = rank_facts(GFX942).launch_seconds
    memory = GFX942.memory_gb_per_s * 1e9
    assert _seconds() == pytest.approx(launch + written / memory, rel=0.02)


def test_what_has_no_other_kernel():
    assert _seconds(stride=1) == 0
    assert _seconds(direction="fwd") == 0
    assert beside_seconds(PROBLEM, GFX942) == 0


def test_a_weight_is_arranged_by_a_launch():
    arranged = _seconds(stride=1, filter=(3, 3), pad_low=(1, 1))
    assert arranged == _seconds(stride=1, layout="NHWC_KCYX_NHWK", filter=(3, 3), pad_low=(1, 1))
    assert arranged >= rank_facts(GFX942).launch_seconds


@pytest.mark.parametrize("stride", [1, 2])
def test_a_kernel_that_has_all_is_chosen_for_it(stride):
    """ResNeXt-50's groups of 32 channels: one kernel against a GEMM with one or two others."""
    problem = ConvProblem(
        n=32, g=32, k=32, c=32, image=(14, 14), filter=(3, 3), stride=stride, pad_low=(1, 1),
        direction="bwd_data",
    )  # fmt: skip
    first, *_ = choose(problem, GFX942)
    assert first.name == "depthwise_pixels"
