"""Strided data gradients whose tiles of rows skip the taps that their phases lack, exactly."""

from __future__ import annotations

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.phase_taps import tap_table
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.verification.verify import verify
from tests.turns import in_turn

CHIPS = ["gfx942", "gfx1100", "gfx950", "gfx90a", "gfx1201"]
PLAIN = {"n": 2, "k": 128, "c": 32, "image": (9, 11), "filter": (3, 3), "stride": (2, 2)}
WINDOWS = {
    "one, two, two and four taps": {"pad_low": (1, 1)},
    "the first phase is the longest": {},
    "uneven pads": {"pad_low": (1, 0), "pad_high": (0, 2)},
    "a dilation and a stride without a common divisor": {
        "filter": (4, 3),
        "stride": (3, 3),
        "dilation": (2, 2),
        "pad_low": (2, 1),
    },
    "strides of two and three": {"filter": (3, 4), "stride": (2, 3), "pad_low": (1, 2)},
    "a stride along one axis": {"filter": (4, 3), "stride": (1, 2), "pad_low": (1, 1)},
    "phases without taps": {"filter": (2, 5), "stride": (3, 3), "pad_low": (1, 2)},
    "a table of several words": {"filter": (9, 9), "pad_low": (4, 4)},
    "groups": {"g": 3, "pad_low": (1, 1)},
    "one dimension": {"image": (37,), "filter": (7,), "stride": (2,), "pad_low": (3,)},
    "three dimensions": {
        "n": 1,
        "image": (5, 6, 7),
        "filter": (3, 3, 3),
        "stride": (2, 2, 2),
        "pad_low": (1, 1, 0),
    },
}


def skipping(problem: ConvProblem, chip: str, tile: tuple[int, ...] = ()):
    """A strategy of a single part whose tiles of rows leave out places of the window, and how many
    they meet."""
    wanted, target = StrategyRequest(name="implicit_gemm", tile=tile), find_target(chip)
    for strategy in choose(problem, target, wanted, 1):
        table = tap_table(resolve(problem, target).wgrad, strategy.tiling, strategy.split_k)
        if table is not None:
            found = {len(met) for met in table.met}
            assert min(found) < table.places
            return strategy, found
    raise AssertionError("no strategy leaves any taps out")


@pytest.mark.parametrize(("what", "chip"), in_turn(WINDOWS, CHIPS))
def test_windows(what, chip):
    problem = ConvProblem(direction="bwd_data", dtype="f16", **{**PLAIN, **WINDOWS[what]})
    strategy, _ = skipping(problem, chip, (16, 16, 32))
    assert verify(problem, chip, strategy, device="vgpu-checked").passed


@pytest.mark.parametrize(("chip", "depth"), in_turn(CHIPS, [32, 64, 128]))
def test_iterations_of_a_place(chip, depth):
    """Four, two or one: those behind a pipelined loop are then of several places."""
    problem = ConvProblem(direction="bwd_data", dtype="bf16", **{**PLAIN, "pad_low": (1, 1)})
    strategy, found = skipping(problem, chip, (32, 32, depth))
    assert min(found) < 4
    assert verify(problem, chip, strategy).passed


@pytest.mark.parametrize(("dtype", "chip"), in_turn(["i8", "bf16", "f32"], CHIPS[:1]))
def test_types(dtype, chip):
    change = {"k": 256, "dtype": dtype, "pad_low": (1, 1)}
    problem = ConvProblem(direction="bwd_data", **{**PLAIN, **change})
    strategy, found = skipping(problem, chip)
    assert found == {1, 2, 4}
    assert verify(problem, chip, strategy).passed


@pytest.mark.parametrize(("chip", "channels"), in_turn(CHIPS, [24, 37]))
def test_tiles_of_several_phases(chip, channels):
    """A tile runs through what any of its rows' phases meets; odd channels leave rows empty."""
    change = {"c": channels, "pad_low": (1, 1)}
    problem = ConvProblem(direction="bwd_data", dtype="f16", **{**PLAIN, **change})
    strategy, found = skipping(problem, chip, (32, 16, 32))
    assert 4 in found
    assert len(found) > 1
    assert verify(problem, chip, strategy).passed


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_what_is_not_finite_spreads_no_further(chip):
    problem = ConvProblem(direction="bwd_data", dtype="f16", **{**PLAIN, "pad_low": (1, 1)})
    strategy, _ = skipping(problem, chip)
    assert verify(problem, chip, strategy, data="special").passed
