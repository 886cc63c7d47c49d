"""Direct kernels of tiles: what is chosen, what is refused, and which tiles rows are cut into."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.direct_parts.runs import equal_runs, units_of
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.slides import Spaced
from conv_compiler.strategies.cpu.flattened import flattened
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.host import TILE_REGISTERS, TILE_ROWS

CPU = find_target("cpu-sapphirerapids")
PROBLEM = ConvProblem(
    n=8, k=64, c=64, image=(14, 14), filter=(3, 3), pad_low=1, dtype="bf16", direction="fwd"
)
FIRST = "NGCHW_GKCYX_NGKHW"


@pytest.mark.parametrize("dtype", ["bf16", "i8"])
@pytest.mark.parametrize("direction", ["fwd", "bwd_data"])
@pytest.mark.parametrize("layout", ["NHWGC_GKYXC_NHWGK", FIRST])
def test_chosen_for_dense_layers(dtype, direction, layout):
    problem = replace(PROBLEM, dtype=dtype, weight_dtype="", direction=direction, layout=layout)
    one = choose(problem, CPU)[0]
    assert one.name == "cpu_amx_direct"
    tiles = one.tiling.columns // one.tiling.tile_rows
    assert tiles * one.tiling.tile_rows == one.tiling.columns
    least = min(tiles, one.tiling.vectors)
    assert tiles * one.tiling.vectors + least + 1 <= TILE_REGISTERS


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"k": 7}, "in the result fill half of a tile"),
        ({"c": 3}, "fill half of a tile"),
        ({"input_op": "relu"}, "without an op on them"),
        ({"direction": "bwd_weight"}, "computes fwd and bwd_data"),
        ({"dtype": "f32", "weight_dtype": ""}, "multiplies no tiles of f32"),
        ({"elementwise": "add", "layout": FIRST}, "no tensor d lies as a result"),
        ({"layout": "GNHWC_GKYXC_GNHWK", "g": 2}, "lie last, or all in front"),
    ],
)
def test_refusals(fields, rule):
    with pytest.raises(UnsupportedStrategy, match=rule):
        choose(replace(PROBLEM, **fields), CPU, "cpu_amx_direct")


@pytest.mark.parametrize(("k", "overlaps"), [(819, True), (104, True), (36, False), (96, False)])
def test_tiles_overlap_where_channels_are_no_whole_number_of_them(k, overlaps):
    (one,) = choose(replace(PROBLEM, k=k), CPU, "cpu_amx_direct")
    tiles = one.tiling.vectors
    assert (k > tiles * TILE_ROWS and k % (tiles * TILE_ROWS) > 0) == overlaps
    assert one.tiling.shares == 1 or not overlaps


def test_only_pixels_that_are_read_in_place_are_of_no_image():
    whole = replace(PROBLEM, image=(7, 7), filter=(1, 1), pad_low=0, pad_high=0)
    assert all(
        row.image[0] * row.image[1] == 8 * 49 and row.n == 1 for row in flattened(whole).values()
    )
    for other in ({"pad_low": 1}, {"stride": 2}, {"filter": (1, 2)}):
        assert list(flattened(replace(whole, **other))) == [0]


@settings(max_examples=100, deadline=None)
@given(
    image=st.integers(1, 40),
    taps=st.integers(1, 4),
    stride=st.integers(1, 3),
    pad=st.integers(0, 3),
    forward=st.booleans(),
    size=st.integers(1, 16),
)
def test_tiles_cover_a_row_and_read_inside_its_copy(image, taps, stride, pad, forward, size):
    outs = (image + 2 * pad - taps) // stride + 1
    if outs < 1:
        return
    dimension = Spaced(image=image, outs=outs, taps=taps, stride=stride, dilation=1, pad=pad)
    slide = dimension.slide("fwd" if forward else "bwd_data")
    row = slide.between(slide.outside)
    for phase in range(row.phases):
        units = units_of(row, phase)
        if units < size:
            with pytest.raises(UnsupportedStrategy, match="fewer than a tile's"):
                equal_runs(row, phase, size)
            continue
        runs = equal_runs(row, phase, size)
        found = {
            run.first + tile * size + unit
            for run in runs
            for tile in range(run.repeat)
            for unit in range(size)
        }
        assert found == set(range(units))
        for read in row.window[phase]:
            assert all(0 <= unit * row.step + read.offset < row.size for unit in found)
