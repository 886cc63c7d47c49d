"""Main loops in an order of ours: every number of iterations, type and form, with the virtual GPU's
checks of what each lane reads and writes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.verification.verify import verify
from tests.turns import in_turn

CHIPS = [name for name, row in TARGETS.items() if row.pipeline_stages == 3]
TILE = StrategyRequest(tile=(64, 64, 32))


def check(problem, chip, wanted, split_k):
    strategy = choose(problem, find_target(chip), wanted, split_k)[0]
    tiling = replace(strategy.tiling, stages=3, loads_to_lds=False)
    strategy = replace(strategy, tiling=tiling)
    assert verify(problem, chip, strategy, device="vgpu-checked").passed


@pytest.mark.parametrize(("iterations", "chip"), in_turn([5, 6, 8, 7], CHIPS))
def test_even_and_odd_iterations(iterations, chip):
    """Of the loop that holds two, one may be left over."""
    problem = ConvProblem(n=35, k=70, c=72, image=(1, iterations), filter=(1, 1))
    check(problem, chip, TILE, 1)


@pytest.mark.parametrize(("filter", "chip"), in_turn([(1, 1), (3, 3)], CHIPS))
def test_uneven_parts(filter, chip):
    """Of 20 pixels in three parts the last has fewer: what iterations load ahead lies behind it."""
    problem = ConvProblem(
        n=34, k=120, c=128, image=(5, 4), filter=filter, pad_low=(filter[0] // 2,) * 2,
        pad_high=(filter[0] // 2,) * 2,
    )  # fmt: skip
    check(problem, chip, StrategyRequest(tile=(128, 128, 32)), 3)


@pytest.mark.parametrize(("dtype", "chip"), in_turn(["bf16", "f32"], CHIPS))
def test_types(dtype, chip):
    problem = ConvProblem(
        n=40, k=66, c=64, image=(5, 4), filter=(3, 3), pad_low=(1, 1), pad_high=(1, 0), dtype=dtype
    )
    depth = {"f32": 16}.get(dtype, 32)
    check(problem, chip, StrategyRequest(tile=(64, 64, depth)), 2)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    "problem",
    [
        ConvProblem(n=3, g=2, k=65, c=40, image=(19, 17), filter=(3, 2), stride=(2, 1)),
        ConvProblem(n=40, k=64, c=60, image=(9, 3), filter=(1, 1), layout="NCHW_KCYX_NKHW"),
        ConvProblem(n=33, g=8, k=8, c=7, image=(9, 9), filter=(3, 3), pad_low=(1, 1)),
        ConvProblem(n=33, k=36, c=64, image=(6, 7), filter=(3, 3), pad_low=(1, 1)),
    ],
    ids=["strides", "channels_first", "merged", "rows"],
)
def test_layouts_and_forms_as_chosen(chip, problem):
    strategy = choose(problem, find_target(chip), "implicit_gemm", 1)[0]
    assert verify(problem, chip, strategy, device="vgpu-checked").passed
