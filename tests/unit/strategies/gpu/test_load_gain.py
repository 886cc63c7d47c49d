"""Which kernel is taken by both ends of a chip's range."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler import ConvProblem
from conv_compiler.strategies.gpu import load_gain
from conv_compiler.strategies.gpu.cost import predict
from conv_compiler.strategies.gpu.cost_constants import LOAD_GAIN
from conv_compiler.strategies.gpu.implicit_gemm import mma_candidates
from conv_compiler.strategies.gpu.load_gain import Timed, by_both_ends, loaded_chip
from conv_compiler.strategies.gpu.tie_break import prefer_load_gain
from conv_compiler.strategies.select import decide
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

GFX1100 = find_target("gfx1100")
# RetinaNet's R24: small tiles fill the chip, and read more than its L2 keeps up.
R24 = ConvProblem(
    n=32, k=256, c=256, image=(13, 13), filter=(3, 3), stride=(2, 2), pad_low=(1, 1), dtype="f16"
)
SMALL = resolve(R24, GFX1100).wgrad


FIRST = {chip: mma_candidates(SMALL, find_target(chip))[0].tiling for chip in ("gfx1100", "sm_80")}


def several(target, *times):
    """Kernels of so many parts that take so many seconds at the boost clock."""
    return [Timed(seconds, at + 1, FIRST[target.name]) for at, seconds in enumerate(times)]


@pytest.fixture
def loaded(monkeypatch):
    """Seconds under load, by the number of parts."""
    times: dict[int, float] = {}
    monkeypatch.setattr(load_gain, "predict", lambda problem, chip, tiling, parts: times[parts])
    return times


@pytest.mark.parametrize(
    ("second", "under_load", "taken"),
    [
        (1.03, 1.0, 2),
        # Too slow at the boost clock, and too little faster under load.
        (1.05, 1.0, 1),
        (1.03, 1.2, 1),
    ],
)
def test_much_faster_under_load_is_taken_where_it_is_hardly_slower(
    loaded, second, under_load, taken
):
    assert (LOAD_GAIN.slower_share, LOAD_GAIN.faster_share) == (0.04, 0.3)
    loaded.update({1: 1.5, 2: under_load})
    first, other = several(GFX1100, 1.0, second)
    assert by_both_ends(SMALL, GFX1100, first, [other]).split_k == taken


@pytest.mark.parametrize(("direction", "chip"), [("fwd", "gfx1100"), ("bwd_weight", "sm_80")])
def test_elsewhere_it_is_the_first(loaded, direction, chip):
    """Forward passes are predicted too roughly, and no sustained rate of sm_80 is known."""
    loaded.update({1: 2.0, 2: 1.0})
    target = find_target(chip)
    wgrad = resolve(replace(R24, direction=direction), target).wgrad
    first, other = several(target, 1.0, 1.0)
    assert by_both_ends(wgrad, target, first, [other]) == first


def test_tilings_without_matrix_instructions_stay(loaded):
    """Tilings of `vector_gemm` are ranked by the boost clock alone."""
    first, other = several(GFX1100, 1.0, 1.0)
    first = first._replace(tiling=replace(first.tiling, mma=""))
    assert by_both_ends(SMALL, GFX1100, first, [other]) == first


def test_the_choice_is_faster_under_load():
    ranked = sorted(
        mma_candidates(SMALL, GFX1100),
        key=lambda one: predict(SMALL, GFX1100, one.tiling, one.split_k),
    )
    chosen = decide(resolve(R24, GFX1100)).strategies[0]
    chip = loaded_chip(GFX1100, chosen.tiling)

    def over_chosen(target):
        first, taken = (
            predict(SMALL, target, one.tiling, one.split_k) for one in (ranked[0], chosen)
        )
        return first / taken

    assert over_chosen(GFX1100) >= 1 / 1.04
    assert over_chosen(chip) > 1.3
    after = prefer_load_gain(SMALL, GFX1100, tuple(ranked))
    assert sorted(map(repr, after)) == sorted(map(repr, ranked))
    assert after[0] == chosen


def test_a_fixed_factor_stays():
    for one in mma_candidates(SMALL, GFX1100, split_k=1):
        assert one.split_k == 1
