# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Main loops whose loads write to LDS: every number of buffers, types, windows and forms, with the
virtual GPU's checks of waits, races and what lies outside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.cost_constants import LDS_LOADS
from conv_compiler.strategies.gpu.implicit_gemm_schedule import mma_schedule
from conv_compiler.strategies.gpu.instruction_counts import mma_of
from conv_compiler.strategies.gpu.loop_order import iterations
from conv_compiler.strategies.gpu.tilings import other_copies
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.verification.verify import verify
from tests.turns import in_turn

CHIPS = [name for name, row in TARGETS.items() if row.isa and row.isa.lds_load_bytes]
PADS = {"pad_low": (1, 1), "pad_high": (1, 1)}
# Sizes that leave rests of tiles, of parts and of the batch; all channels come in eights.
PROBLEMS = {
    "window": (ConvProblem(n=33, k=72, c=64, image=(6, 5), filter=(3, 3), **PADS), 1),
    "parts": (ConvProblem(n=32, k=64, c=64, image=(6, 5), filter=(3, 3), **PADS), 3),
    "stride": (
        ConvProblem(n=32, k=40, c=72, image=(7, 9), filter=(3, 3), stride=(2, 1), pad_low=(1, 0)),
        1,
    ),
    "dilation": (
        ConvProblem(n=3, g=2, k=32, c=64, image=(9, 8), filter=(3, 2), dilation=(2, 1), **PADS),
        1,
    ),
    "pointwise": (ConvProblem(n=5, k=64, c=128, image=(9, 7), filter=(1, 1), dtype="bf16"), 2),
    "merged": (ConvProblem(n=2, g=8, k=8, c=8, image=(17, 13), filter=(3, 3), **PADS), 1),
    "forward": (
        ConvProblem(n=3, k=104, c=120, image=(5, 7), filter=(3, 2), direction="fwd", **PADS),
        1,
    ),
    "forward_parts": (
        ConvProblem(n=3, k=40, c=72, image=(7, 9), filter=(3, 3), stride=(2, 1), direction="fwd"),
        3,
    ),
    "forward_bytes": (
        ConvProblem(n=2, k=72, c=48, image=(7, 7), filter=(3, 3), dtype="i8", direction="fwd"),
        1,
    ),
    "forward_groups": (
        ConvProblem(
            n=3,
            g=2,
            k=32,
            c=64,
            image=(9, 8),
            filter=(2, 3),
            dtype="bf16",
            direction="fwd",
            dilation=(1, 2),
        ),
        1,
    ),
    "data": (
        ConvProblem(n=3, k=104, c=120, image=(5, 7), filter=(3, 2), direction="bwd_data", **PADS),
        1,
    ),
    "data_phases": (
        ConvProblem(
            n=3, k=40, c=72, image=(7, 9), filter=(3, 3), stride=(2, 1), direction="bwd_data"
        ),
        1,
    ),
    "data_pointwise": (
        ConvProblem(
            n=5, k=264, c=128, image=(9, 7), filter=(1, 1), direction="bwd_data", dtype="bf16"
        ),
        1,
    ),
    "volume": (ConvProblem(n=4, k=16, c=24, image=(3, 4, 5), filter=(2, 3, 1), pad_low=1), 1),
}


def to_lds(problem, chip, split_k, buffers, wanted=None):
    """The first strategy of a problem, with loads that write to so many buffers."""
    target = find_target(chip)
    for one in choose(problem, target, wanted or "implicit_gemm", split_k):
        wgrad = resolve(problem, target, one.mma).wgrad
        plain = replace(one.tiling, loads_to_lds=False)
        if iterations(wgrad, plain, one.split_k) < buffers:
            continue
        for tiling in other_copies(wgrad, target, mma_of(target, plain), plain):
            if tiling.loads_to_lds and tiling.stages == buffers:
                return replace(one, tiling=tiling)
    raise AssertionError(f"{problem.name}: no tiling loads to {buffers} buffers")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_problems(name, chip):
    problem, split_k = PROBLEMS[name]
    buffers = LDS_LOADS.buffered_tiles[list(PROBLEMS).index(name) % len(LDS_LOADS.buffered_tiles)]
    strategy = to_lds(problem, chip, split_k, buffers)
    assert verify(problem, chip, strategy, device="vgpu-checked").passed


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("more", "buffers"), in_turn([5, 1, 0], list(LDS_LOADS.buffered_tiles)))
def test_iterations(more, buffers, chip):
    """As many as there are buffers, which leaves no loop; one more; a round or two and a rest."""
    problem = ConvProblem(n=32, k=72, c=64, image=(1, buffers + more), filter=(1, 1))
    strategy = to_lds(problem, chip, 1, buffers, StrategyRequest(tile=(64, 64, 32)))
    assert verify(problem, chip, strategy, device="vgpu-checked").passed


@pytest.mark.parametrize("chip", CHIPS)
def test_chosen_by_cost(chip):
    """A layer that fills the chip, and one whose channels no load of 16 bytes divides."""
    wide = ConvProblem(n=32, k=256, c=256, image=(14, 14), filter=(3, 3), **PADS)
    assert choose(wide, find_target(chip), "implicit_gemm")[0].tiling.loads_to_lds
    odd = replace(wide, k=252, c=250)
    assert not any(
        one.tiling.loads_to_lds for one in choose(odd, find_target(chip), "implicit_gemm")
    )


@pytest.mark.parametrize("chip", CHIPS)
def test_the_pass_has_as_many_buffers_as_the_tiling_has_stages(chip):
    problem, split_k = PROBLEMS["window"]
    target = find_target(chip)
    strategy = to_lds(problem, chip, split_k, 3)
    wgrad = resolve(problem, target, strategy.mma).wgrad
    (behind,) = mma_schedule(wgrad, target, strategy).behind.values()
    (options,) = [vars(one) for one in behind if one.name == "load-to-lds"]
    assert options == {"buffers": 3, "turned": False}
