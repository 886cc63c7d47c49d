"""Which iterations a tile of rows needs: all places that its phases meet, and few others."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.problem.canonical import canonical, phases
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.phase_taps import places_met
from conv_compiler.strategies.gpu.loop_order import INTERLEAVED_STAGES, PLAIN_STAGES, iterations
from conv_compiler.strategies.gpu.phase_taps import mean_iterations, tap_table
from conv_compiler.strategies.strategy import GpuTiling

TILING = GpuTiling(
    workgroup=(64, 64, 32),
    subgroups=(2, 2),
    mma="MFMA_F32_16x16x16_F16",
    stages=PLAIN_STAGES,
    outside=("ho", "wo"),
    inside=("n",),
)
STRIDED = ConvProblem(
    direction="bwd_data", n=32, k=128, c=128, image=(56, 56), filter=(3, 3), stride=2, pad_low=1
)


@st.composite
def gradients(draw: st.DrawFn) -> ConvProblem:
    """Data gradients in two dimensions, one of which may have no stride."""
    pairs = {
        name: tuple(draw(st.integers(least, most)) for _ in range(2))
        for name, least, most in (
            ("filter", 1, 5),
            ("stride", 1, 4),
            ("dilation", 1, 3),
            ("pad_low", 0, 3),
        )
    }
    extent = [(f - 1) * d + 1 for f, d in zip(pairs["filter"], pairs["dilation"], strict=True)]
    image = tuple(one + draw(st.integers(0, 6)) for one in extent)
    k, c = draw(st.sampled_from([16, 32, 96, 128])), draw(st.integers(8, 80))
    return ConvProblem(direction="bwd_data", n=2, k=k, c=c, image=image, **pairs)


def joined(problem: ConvProblem, axis: int) -> set[tuple[int, int]]:
    """(phase, offset) of each input and output pixel that a tap joins, by the definition."""
    stride, pad = problem.stride[axis], problem.pad_low[axis]
    return {
        (i % stride, out - i // stride)
        for i in range(problem.image[axis])
        for out in range(problem.out_image[axis])
        for f in range(problem.filter[axis])
        if out * stride + f * problem.dilation[axis] - pad == i
    }


@settings(max_examples=150, deadline=None, derandomize=True)
@given(gradients(), st.sampled_from([16, 64]), st.sampled_from([16, 64]), st.booleans())
def test_a_tile_runs_through_the_places_that_its_rows_meet(problem, m, k, is_deep):
    stages = INTERLEAVED_STAGES if is_deep else PLAIN_STAGES
    tiling = replace(TILING, workgroup=(m, 64, k), stages=stages)
    wgrad, cut = canonical(problem), phases(problem)
    table = tap_table(wgrad, tiling, 1)
    if table is None:
        return
    assert table.places == math.prod(one.taps for one in cut)
    assert table.places * table.steps == iterations(wgrad, tiling, 1)
    pairs = [joined(problem, axis) for axis in range(2)]
    every = list(product(*(range(one.count) for one in cut)))
    for row in range(wgrad.k):
        phase = every[row // problem.c]
        by_axis = [
            {(q - one.lowest) // one.step for a, q in met if a == one.first + p}
            for one, p, met in zip(cut, phase, pairs, strict=True)
        ]
        needed = {y * cut[1].taps + x for y, x in product(*by_axis)}
        entry = max(i for i, first in enumerate(table.first) if first <= row // m)
        assert needed <= set(table.met[entry])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(gradients(), st.sampled_from([16, 64]), st.booleans())
def test_a_pipelined_loop_can_be_as_short(problem, k, is_deep):
    """Iterations written out in front of the loop and behind it are in every list, none twice; an
    unrolled loop loses whole rounds."""
    stages = INTERLEAVED_STAGES if is_deep else PLAIN_STAGES
    table = tap_table(canonical(problem), replace(TILING, workgroup=(16, 64, k), stages=stages), 1)
    if table is None:
        return
    for met in table.met:
        left_out = (table.places - len(met)) * table.steps
        assert list(met) == sorted(set(met))
        assert len(met) * table.steps >= stages - 1
        assert left_out == 0 or left_out >= stages - 1 or table.steps > 1
        assert left_out % (1 + is_deep) == 0


@settings(max_examples=200, deadline=None, derandomize=True)
@given(gradients())
def test_places_are_those_of_the_definition(problem):
    for axis, one in enumerate(phases(problem)):
        found = places_met(problem, axis, one)
        assert len(found) == one.count
        for phase, offset in joined(problem, axis):
            assert (offset - one.lowest) // one.step in found[phase - one.first]


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({}, (1, 2, 2, 4)),
        ({"filter": (7, 7), "pad_low": (3, 3)}, (9, 12, 12, 16)),
        ({"filter": (5, 3), "pad_low": (2, 1)}, (3, 6, 2, 4)),
        ({"stride": (2, 1)}, (3, 6)),
    ],
)
def test_a_phase_has_its_own_taps_alone(change, counts):
    problem = replace(STRIDED, **change)
    table = tap_table(canonical(problem), TILING, 1)
    assert tuple(map(len, table.met)) == counts
    mean = sum(counts) / len(counts) * table.steps
    assert mean_iterations(canonical(problem), TILING, 1) == mean


def test_tiles_that_meet_more_places_start_first():
    assert tap_table(canonical(STRIDED), TILING, 1).last_first == 4 * 128 // 64 - 1
    other = replace(STRIDED, pad_low=(0, 0))
    assert tap_table(canonical(other), TILING, 1).last_first == 0


@pytest.mark.parametrize(
    ("problem", "tiling", "split_k"),
    [
        (replace(STRIDED, direction="bwd_weight"), TILING, 1),
        (replace(STRIDED, direction="fwd"), TILING, 1),
        (replace(STRIDED, stride=(1, 1)), TILING, 1),
        (STRIDED, TILING, 2),
        (STRIDED, replace(TILING, outside=(), inside=()), 1),
        (replace(STRIDED, filter=(1, 1)), TILING, 1),
        (replace(STRIDED, c=4), TILING, 1),
        (replace(STRIDED, stride=(9, 9), filter=(17, 17)), TILING, 1),
    ],
    ids=["weight", "fwd", "plain", "split", "flat", "one tap", "phases in a tile", "many phases"],
)
def test_where_nothing_is_left_out(problem, tiling, split_k):
    assert tap_table(canonical(problem), tiling, split_k) is None
    count = iterations(canonical(problem), tiling, split_k)
    assert mean_iterations(canonical(problem), tiling, split_k) == count
