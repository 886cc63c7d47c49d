# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernels beside a data gradient's GEMM take, and where there are none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.model.facts import rank_facts
from conv_compiler.problem.canonical import equivalent_wgrad
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.cost import predict
from conv_compiler.strategies.gpu.data_gradient_kernels import (
    arranging_seconds,
    placing_seconds,
)
from conv_compiler.strategies.gpu.phases_in_place import stores_phases
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target

GFX942 = find_target("gfx942")
PROBLEM = ConvProblem(
    n=32, k=512, c=256, image=(56, 56), filter=(1, 1), stride=2, direction="bwd_data"
)


def _roles(**changes) -> ConvProblem:
    return equivalent_wgrad(replace(PROBLEM, **changes))


def test_phases_are_put_in_place_once():
    """f16: the result is written once, and one launch is counted."""
    written = 32 * 56 * 56 * 256 * 2
    launch = rank_facts(GFX942).launch_seconds
    memory = GFX942.memory_gb_per_s * 1e9
    assert placing_seconds(_roles(), GFX942) == pytest.approx(launch + written / memory, rel=0.02)
    assert arranging_seconds(_roles(), GFX942) == 0


def test_what_has_no_other_kernel():
    for roles in (_roles(stride=1), _roles(direction="fwd"), PROBLEM):
        assert placing_seconds(roles, GFX942) == arranging_seconds(roles, GFX942) == 0


def test_a_weight_is_arranged_by_a_launch():
    window = {"stride": 1, "filter": (3, 3), "pad_low": (1, 1)}
    arranged = arranging_seconds(_roles(**window), GFX942)
    other = _roles(**window, layout="NHWC_KCYX_NHWK")
    assert arranged == arranging_seconds(other, GFX942)
    assert arranged >= rank_facts(GFX942).launch_seconds


def test_a_kernel_that_puts_phases_in_place_takes_less():
    """Of one part the matrix kernel has the result: as many bytes, and one launch less."""
    first, *_ = choose(PROBLEM, GFX942, "implicit_gemm", 1)
    assert stores_phases(_roles(), GFX942, first.tiling, 1)
    assert not stores_phases(_roles(), GFX942, first.tiling, 2)
    one, two = (predict(_roles(), GFX942, first.tiling, parts) for parts in (1, 2))
    assert two - one > rank_facts(GFX942).launch_seconds
    sliced = _roles(input_within=(32, 56, 56, 1, 512), result_operand=True)
    assert not stores_phases(sliced, GFX942, first.tiling, 1)


@pytest.mark.parametrize("stride", [1, 2])
def test_a_kernel_that_has_all_is_chosen_for_it(stride):
    """ResNeXt-50's groups of 32 channels: one kernel against a GEMM with one or two others."""
    problem = ConvProblem(
        n=32, g=32, k=32, c=32, image=(14, 14), filter=(3, 3), stride=stride, pad_low=(1, 1),
        direction="bwd_data",
    )  # fmt: skip
    first, *_ = choose(problem, GFX942)
    assert first.name == "depthwise_pixels"
