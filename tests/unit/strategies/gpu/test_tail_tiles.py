"""Tiles of a tail: where they are offered, how many rows they have, and what they cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import tail_tiles
from conv_compiler.strategies.gpu import wgmma_pixels_cost as cost
from conv_compiler.strategies.gpu.pixel_tilings import tilings
from conv_compiler.strategies.gpu.wgmma_pixels import WGMMA_PIXELS, splits
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import Strategy, StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

HOPPER = find_target("sm_90a")
# 157 tiles of 128x256 for 132 units.
LAYER = ConvProblem(
    n=8, k=256, c=256, image=(50, 50), filter=(3, 3), pad_low=(1, 1), layout="NHWC_KYXC_NHWK",
    direction="fwd",
)  # fmt: skip


def _tails(problem, target=HOPPER):
    return [one for one in tilings(problem, target) if one.tail]


@pytest.mark.parametrize("direction", ["fwd", "bwd_data"])
@pytest.mark.parametrize("dtype", ["f16", "bf16", "i8", "f8E4M3FN"])
def test_rows_behind_whole_rounds_have_smaller_tiles(direction, dtype):
    problem = replace(LAYER, direction=direction, dtype=dtype, weight_dtype="")
    found = _tails(problem)
    assert found
    for one in found:
        (m, n, _), (large, small) = one.workgroup, cost.shares(problem, one)
        assert large[0].workgroup[:2] == (m, n)
        assert small[0].workgroup[:2] == one.tail.tile
        assert small[0].threads == one.threads
        assert m % one.tail.tile[0] == 0
        most = cost.most_resident(problem, HOPPER, one, 1)
        slots, across = HOPPER.compute_units * most, -(-256 // n)
        # Whole rounds, but for a tile of rows that would begin another one.
        assert 0 <= -large[1] % slots < across
        assert large[1] + across > 20000 // m * across // slots * slots
        plain = replace(one, tail=None)
        assert most == cost.most_resident(problem, HOPPER, plain, 1)
        assert splits(problem, HOPPER, one) == [1]


def test_a_short_last_round_is_predicted_to_be_faster():
    best, *_ = choose(LAYER, HOPPER)
    assert best.tiling.tail
    assert " tail " in best.text
    plain = min(
        WGMMA_PIXELS.cost(_wgrad(LAYER), HOPPER, Strategy(name="", tiling=one, split_k=parts))
        for one in tilings(LAYER, HOPPER)
        if not one.tail
        for parts in splits(LAYER, HOPPER, one)
    )
    assert WGMMA_PIXELS.cost(_wgrad(LAYER), HOPPER, best) < 0.9 * plain


def _wgrad(problem):
    return resolve(problem, HOPPER).wgrad


def test_a_tail_costs_less_than_a_whole_round():
    whole = replace(
        LAYER, n=132 * 128, image=(1, 1), filter=(1, 1), pad_low=(0, 0), pad_high=(0, 0), c=2048
    )
    (plain,) = [
        one
        for one in tilings(whole, HOPPER)
        if one.workgroup[:2] == (128, 256) and not one.tail and not one.row_workgroups
    ]
    assert not tail_tiles.head_tiles(whole, HOPPER, plain)
    more = replace(whole, n=whole.n + 100)
    tails = list(tail_tiles.tilings(more, HOPPER, plain))
    assert tails
    assert {one.tail.head_tiles for one in tails} == {132}
    one_round = cost.kernel_seconds(whole, HOPPER, plain, 1)
    two_rounds = cost.kernel_seconds(more, HOPPER, plain, 1)
    for one in tails:
        assert one_round < cost.kernel_seconds(more, HOPPER, one, 1) < two_rounds


@pytest.mark.parametrize(
    "changes",
    [
        {"image": (25, 25)},  # less than a round
        {"n": 132, "image": (8, 16)},  # no rest
        {"g": 2, "layout": "NHWGC_GKYXC_NHWGK"},
        {"direction": "bwd_data", "stride": (2, 2), "image": (99, 99)},  # four phases
    ],
    ids=str,
)
def test_others_have_no_tail_behind_the_largest_tile(changes):
    found = _tails(replace(LAYER, **changes))
    assert not [one for one in found if one.workgroup[:2] == (128, 256)]


def test_waves_have_no_tail():
    for one in choose(LAYER, find_target("sm_80"), "mma_sync_pixels"):
        assert not one.tiling.tail


def test_parts_have_no_tail():
    for one in choose(LAYER, HOPPER, WGMMA_PIXELS.name, 2):
        assert one.split_k == 2
        assert not one.tiling.tail


def test_a_tail_survives_json_and_is_taken_with_its_tile():
    best, *_ = choose(LAYER, HOPPER)
    again = Strategy.from_json(best.to_json())
    assert again == best
    assert again.tiling.tail == best.tiling.tail
    named = choose(LAYER, HOPPER, StrategyRequest(name=WGMMA_PIXELS.name, tile=best.tile))
    assert named[0] == best
    assert {one.tile for one in named} == {best.tile}
    assert [bool(one.tiling.tail) for one in named] == [True, False]
