"""A data gradient whose pixels no tap meets: `wgmma_pixels` divided by its tiles, which are
none."""

from __future__ import annotations

from contextlib import suppress

import pytest

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.registry import STRATEGIES
from conv_compiler.strategies.select import choose
from conv_compiler.targets import TARGETS, find_target

EMPTY = {
    "windows between pads": ConvProblem(
        n=5, k=32, c=32, image=(2, 4), filter=(3, 5), stride=(5, 5), dilation=(2, 1),
        pad_low=(5, 1), pad_high=(0, 3), layout="NHWGC_GKYXC_NHWGK", direction="bwd_data",
    ),
    "the same of one channel a group": ConvProblem(
        n=5, g=16, k=1, c=1, image=(2, 4), filter=(3, 5), stride=(5, 5), dilation=(2, 1),
        pad_low=(5, 1), pad_high=(0, 3), layout="NHWGC_GKYXC_NHWGK", direction="bwd_data",
    ),
    "a forward pass of pads alone": ConvProblem(
        n=3, k=16, c=16, image=(1, 1), filter=(2, 2), stride=(9, 9), dilation=(3, 3),
        pad_low=(2, 2), pad_high=(2, 2), layout="NHWGC_GKYXC_NHWGK", direction="fwd",
    ),
}  # fmt: skip


@pytest.mark.parametrize("problem", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("chip", [name for name in TARGETS if name != "cpu"])
def test_a_strategy_is_chosen(problem, chip):
    assert choose(problem, find_target(chip))


@pytest.mark.parametrize("problem", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("chip", ["gfx942", "gfx1201", "sm_80", "sm_90a"])
def test_each_strategy_fits_or_says_why_not(problem, name, chip):
    with suppress(UnsupportedStrategy):
        assert choose(problem, find_target(chip), name)
