"""Windows in LDS: which line has which source pixel, and which tiles a kernel can have."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.sizes import BLOCK, ELEMENTS, WARP_GROUP, WAVE
from conv_compiler.passes.wgmma_parts.wave_stores import OWN_ROWS
from conv_compiler.problem import window_tiles
from conv_compiler.problem.slides import Spaced
from conv_compiler.problem.window_products import Span
from conv_compiler.problem.window_tiles import WindowTile
from tests.problems import dimensions

DIRECTIONS = st.sampled_from(["fwd", "bwd_data"])
NUMBERS = {"images": 2, "patch_rows": 8, "wave_groups": 1, "merged_groups": 4}


@given(dimension=dimensions(), direction=DIRECTIONS, units=st.integers(1, 9))
@settings(deadline=None)
def test_a_span_has_each_pixel_that_a_unit_meets_where_its_line_says(dimension, direction, units):
    slide = dimension.slide(direction)
    span = Span.of(slide, units)
    held = [
        span.origin + place * span.step + rest
        for rest in range(span.rests)
        for place in range(span.places)
    ]
    assert len(held) == span.lines == len(set(held))
    for unit, reads in itertools.product(range(units), slide.window):
        for read in reads:
            assert held[unit + span.line(read.offset)] == unit * slide.step + read.offset


@given(
    several=st.lists(dimensions(), min_size=1, max_size=3),
    direction=DIRECTIONS,
    sources=st.sampled_from([8, 16, 24]),
)
@settings(deadline=None)
def test_products_are_of_each_tap_and_piece_once_and_meet_its_pixels(several, direction, sources):
    """All taps of all phases, by lines that are counted as the kernel copies them."""
    tile = WindowTile.of(
        several, direction, rows=8, columns=8, sources=sources, results=8, **NUMBERS
    )
    extents = [range(tile.images)]
    for span in tile.spans:
        extents += [range(span.rests), range(span.places)]
    lines = []
    for image, *places in itertools.product(*extents):
        pixels = [
            span.origin + place * span.step + rest
            for span, rest, place in zip(tile.spans, places[::2], places[1::2], strict=True)
        ]
        lines.append((image, *pixels))
    assert len(lines) == tile.lines < tile.plane
    units = (1, 0, 3, 5)
    own = sum(unit * step for unit, step in zip(units, tile.line_steps, strict=True))
    expected = set()
    for phase, places in enumerate(itertools.product(*map(range, tile.phases))):
        windows = [slide.window[at] for slide, at in zip(tile.slides, places, strict=True)]
        for reads in itertools.product(*windows):
            pixels = [
                unit * slide.step + read.offset
                for unit, slide, read in zip(units[1:], tile.slides, reads, strict=True)
            ]
            tap = 0
            for read, taps in zip(reads, tile.taps, strict=True):
                tap = tap * taps + read.tap
            for piece in range(tile.pieces):
                expected.add((phase, tile.weight_tap(tap), piece, (1, *pixels)))
    found = []
    for one in tile.products():
        second = [] if one.to_weights is None else [(one.to_line, one.to_weights)]
        for to_line, to_weights in [(0, 0), *second]:
            assert to_line >= 0
            assert to_weights >= 0
            tap, piece = divmod(one.weights + to_weights, tile.pieces)
            plane, line = divmod(one.line + to_line, tile.plane)
            assert plane == piece
            found.append((one.phase, tap, piece, lines[own + line]))
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert len(list(tile.products())) >= tile.pairs


@pytest.mark.parametrize(
    ("direction", "stride", "pairs"), [("fwd", 1, 5), ("bwd_data", 1, 5), ("fwd", 2, 5)]
)
def test_pieces_find_another_one(direction, stride, pairs):
    """Nine taps of one piece are five instructions, also where pixels between strides lie apart."""
    outs = (14 - 1) // stride + 1
    spaced = Spaced(image=14, outs=outs, taps=3, stride=stride, dilation=1, pad=1)
    tile = WindowTile.of(
        [spaced] * 2, direction, rows=8, columns=8, sources=8, results=8, **NUMBERS
    )
    assert len(list(tile.products())) == tile.pairs == pairs


TILE = WindowTile.of(
    [Spaced(image=9, outs=9, taps=3, stride=1, dilation=1, pad=1)] * 2,
    "fwd",
    rows=16,
    columns=16,
    sources=8,
    results=8,
    **NUMBERS,
)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({}, ""),
        ({"patch_rows": 1, "units": (1, 1, 64)}, ""),
        ({"patch_rows": 2}, "a patch has 1 or 8 rows"),
        ({"units": (1, 16, 12)}, "rows and columns are whole patches"),
        ({"wave_groups": 3}, "wave groups share the patches evenly"),
        ({"merged_groups": 16}, "there are 64 source channels at most"),
        ({"sources": 12}, "channels of a group come in 8s"),
        ({"results": 4}, "channels of a group come in 8s"),
        ({"results": 72}, "there are 128 columns at most"),
        ({"results": 32, "wave_groups": 8}, ""),
        ({"results": 24, "wave_groups": 8}, "lanes of a wave store whole rows"),
        ({"merged_groups": 1}, "lanes of a wave store whole rows"),  # they would have too many
        ({"results": 32}, "a thread has 128 sums at most"),
    ],
)
def test_it_says_which_rule_a_tile_breaks(changes, rule):
    assert replace(TILE, **changes).broken_rule == rule


def test_a_single_dimension_lies_along_the_columns():
    one = Spaced(image=100, outs=100, taps=3, stride=1, dilation=1, pad=1)
    tile = WindowTile.of([one], "fwd", rows=1, columns=64, sources=16, results=16, **NUMBERS)
    assert tile.taps == (1, 1, 3)
    assert tile.lines == tile.images * 66


def test_sizes_of_instructions_are_those_of_the_pass():
    assert (window_tiles.PATCH, 2 * window_tiles.PIECE) == (ptx.ROWS, ptx.DEPTH)
    assert (window_tiles.PIECE, window_tiles.MOST_CHANNELS) == (ELEMENTS, BLOCK)
    assert (window_tiles.WARP_GROUP, window_tiles.WAVE) == (WARP_GROUP, WAVE)
    assert window_tiles.WAVE_ROWS == OWN_ROWS
    assert window_tiles.PIECE_BYTES == ptx.PIECE
