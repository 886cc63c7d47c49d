"""The order of depthwise tilings on NVIDIA chips."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from conv_compiler import ConvProblem
from conv_compiler.strategies.gpu import depthwise
from conv_compiler.strategies.gpu.cost_constants import DepthwisePowers
from conv_compiler.strategies.gpu.depthwise_cost import predict
from conv_compiler.strategies.gpu.depthwise_rank import Terms, order, terms
from conv_compiler.strategies.strategy import DepthwiseTiling
from conv_compiler.targets import find_target

CARD = find_target("sm_90a")
LAYER = ConvProblem(
    n=32, g=144, c=1, k=1, image=(56, 56), filter=(3, 3), pad_low=(1, 1), dtype="f16",
    layout="NHWC_KYXC_NHWK",
)  # fmt: skip
TILING = DepthwiseTiling(vector=2, columns=8, rows=8, unroll=4, lanes=18, threads=512)


def test_terms_are_those_of_a_hand_count():
    """28 strips a workgroup at a time, of 32 x 7 x 7 in all: 56 rounds, two for each of 28 parts.

    A strip of two iterations loads 10 rows of 10 pixels of the image and 8 x 8 gradients. Four
    times 72 channels are four workgroups for each part, which 132 units hold at once.
    """
    found = terms(LAYER, CARD, TILING, 28)
    threads = 4 * 28 * 512 / 132
    assert found == Terms(
        loads=pytest.approx(math.log(2 * (10 * 10 + 8 * 8) * threads)),
        iterations=pytest.approx(math.log(2 * 2)),
        sums=pytest.approx(math.log(9 * 2)),
        rows=pytest.approx(math.log(4)),
        channels=pytest.approx(math.log(36)),
        rounds=0.0,
        idle=0.0,
    )


def test_few_threads_and_several_rounds_count():
    powers = DepthwisePowers(unit_threads=1000)
    few = terms(LAYER, CARD, TILING, 28, powers)
    assert few.idle == pytest.approx(math.log(1000 / (4 * 28 * 512 / 132)))
    assert terms(LAYER, CARD, TILING, 392).rounds > 0


def test_the_first_candidate_is_least_in_order():
    first, *others = depthwise.candidates(LAYER, CARD)
    rank = [order(LAYER, CARD, one.tiling, one.split_k) for one in (first, *others)]
    assert rank == sorted(rank)
    every = (
        order(LAYER, CARD, tiling, split_k)
        for tiling in depthwise.tilings(LAYER, CARD)
        for split_k in depthwise.splits(
            LAYER, CARD, tiling, depthwise.DEPTHWISE_SEARCH.timed_workgroups
        )
    )
    assert rank[0] == min(every)


@pytest.mark.parametrize(
    ("chip", "dtype"), [("sm_90a", "f32"), ("sm_90a", "i8"), ("gfx942", "f16")]
)
def test_what_no_time_was_fitted_to_is_ranked_by_the_model(monkeypatch, chip, dtype):
    """The powers are those of two-byte elements on NVIDIA chips."""

    def refuse(*_: object) -> float:
        raise AssertionError("by powers")

    monkeypatch.setattr(depthwise, "order", refuse)
    target, problem = find_target(chip), replace(LAYER, dtype=dtype, weight_dtype="")
    first, second, *_ = depthwise.candidates(problem, target)
    if chip == "gfx942":
        seconds = [predict(problem, target, one.tiling, one.split_k) for one in (first, second)]
        assert seconds == sorted(seconds)


def test_a_factor_or_a_strip_may_be_given():
    for one in depthwise.candidates(LAYER, CARD, split_k=16):
        assert one.split_k == depthwise.filled_parts(LAYER, one.tiling, 16)
    tile = (7, 7, 1)
    assert {one.tile for one in depthwise.candidates(LAYER, CARD, tile=tile)} == {tile}
