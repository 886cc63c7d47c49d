"""Tiles of weight gradients: each tap finds its pixels where the copy put them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.problem.gradient_tiles import LINE_PIECES, GradientTile, Slid

SIZES = st.integers(1, 3)


def tile_of(**changes) -> GradientTile:
    values = {
        "images": 1, "pixels": (4, 28), "slides": (Slid(3, 1, 1), Slid(3, 1, 1)), "sources": 8,
        "results": 8, "merged_groups": 8, "wave_pieces": 1,
    }  # fmt: skip
    return GradientTile(**values | changes)


def line_of(tile: GradientTile, at: tuple[int, ...]) -> int:
    """The line of a pixel of the window, by its places."""
    *outer, last = at
    places = tile.extents[-1] // tile.rests
    own = (*outer, last % tile.rests * places + last // tile.rests)
    return sum(place * step for place, step in zip(own, tile.line_steps[1:], strict=True))


@given(
    pixels=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    slides=st.lists(st.tuples(SIZES, SIZES, SIZES), min_size=3, max_size=3),
    images=st.integers(1, 2),
)
@settings(max_examples=200, deadline=None)
def test_a_tap_meets_its_pixels_a_constant_distance_further(pixels, slides, images):
    own = tuple(Slid(*one) for one in slides[: len(pixels)])
    tile = tile_of(images=images, pixels=tuple(pixels), slides=own)
    every = [
        line_of(tile, at) for at in itertools.product(*(range(extent) for extent in tile.extents))
    ]
    assert len(set(every)) == len(every) == tile.window // images
    assert max(every) < tile.lines // images
    for tap in tile.taps:
        for out in itertools.product(*map(range, pixels)):
            met = tuple(
                place * slide.stride + at * slide.dilation
                for place, at, slide in zip(out, tap, own, strict=True)
            )
            start = sum(a * b for a, b in zip(out, tile.pixel_lines(), strict=True))
            assert start + tile.tap_line(tap) == line_of(tile, met)
            assert start + tile.tap_line(tap) <= tile.lines + tile.last_tap_line


@given(rows=st.integers(2, 9), columns=st.integers(1, 40), stride=st.sampled_from([1, 3]))
@settings(deadline=None)
def test_eight_pixels_of_two_rows_lie_in_all_banks(rows, columns, stride):
    """Where a row may be as much longer as that takes: by an odd stride."""
    slides = (Slid(3, stride, 1), Slid(3, 1, 1))
    tile = tile_of(pixels=(rows, columns), slides=slides)
    row, column = tile.pixel_lines()
    lines = [y * row + x * column for y in range(rows) for x in range(columns)]
    for first in range(0, len(lines) - LINE_PIECES + 1, LINE_PIECES):
        banks = {line % LINE_PIECES for line in lines[first : first + LINE_PIECES]}
        if columns >= LINE_PIECES:
            assert len(banks) == LINE_PIECES


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({}, ""),
        ({"sources": 12}, "channels of a group come in 8s"),
        ({"wave_pieces": 3}, "waves share the pieces evenly"),
        ({"results": 24, "wave_pieces": 4}, "a wave has whole groups or a share of one"),
        ({"sources": 32, "results": 32, "wave_pieces": 4}, "a lane has 160 sums at most"),
        ({"merged_groups": 64}, "a workgroup has 1024 threads at most"),
    ],
    ids=str,
)
def test_rules(changes, rule):
    assert tile_of(**changes).broken_rule == rule


def test_nine_taps_of_eight_channels_are_five_products():
    tile = tile_of()
    assert len(tile.rows) == 5
    assert tile.rows[-1][1] is None
    assert tile.sums == 20
    assert (tile.steps, tile.is_ragged(32, (28, 28))) == (7, False)
    assert tile.is_ragged(32, (27, 28))
    assert tile_of(pixels=(7, 7)).is_ragged(32, (7, 7))
