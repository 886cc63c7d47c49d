"""Copies of a kernel of vectors: which axes are cut into blocks, and how."""

import pytest

from conv_compiler.passes.cpu_kernel.copy_sources import extent_of
from conv_compiler.passes.cpu_kernel.readers import Reader
from conv_compiler.passes.pair_products import PAIR

TILE = {"g": 1, "k": 8, "c": 32, "y": 1}
RANGES = {"g": 4, "k": 64, "c": 64, "y": 3, "n": 2, "wo": 28}


@pytest.mark.parametrize(
    ("axis", "ranges", "block"),
    [
        ({"k": 1}, {}, 8),
        ({"c": 1}, {}, 32),
        ({"c": 1}, {"c": 32}, 0),  # one block
        ({"g": 32, "c": 1}, {"c": 32}, 32),
        ({"g": 64, "c": 1}, {}, 32),
        ({"g": 20, "c": 1}, {"c": 20}, 0),  # groups would begin inside of a block
        ({"k": 2}, {}, 0),  # not side by side
        ({"wo": 64, "k": 1}, {}, 0),  # pixels are summed
        ({"wo": 1, "y": 1}, {}, 0),
        ({"n": 1, PAIR: 2}, {}, 0),
        ({}, {}, 0),
    ],
)
def test_blocks_of_an_innermost_axis(axis, ranges, block):
    assert Reader(tile=TILE, lanes=16).block(axis, RANGES | ranges) == block


@pytest.mark.parametrize(("k", "block"), [(2, 0), (4, 4), (8, 8), (12, 0), (48, 48)])
def test_blocks_are_written_by_whole_vectors_or_even_parts_of_one(k, block):
    reader = Reader(tile={"k": k}, lanes=16)
    assert reader.block({"k": 1}, {"k": 4 * k}) == block


@pytest.mark.parametrize(
    ("axis", "block"),
    [
        ({"wo": 1}, 14),
        ({"wo": 1, "x": 1}, 0),  # taps shift pixels from block to block
        ({"wo": 2}, 0),
        ({"ho": 1}, 0),  # one at a time
        ({PAIR: 2, "n": 1}, 0),
    ],
)
def test_blocks_of_pixels_that_an_instruction_sums(axis, block):
    assert Reader(tile=TILE, lanes=16, steps={"wo": 14, "n": 8}).deep_block(axis) == block
    assert Reader(tile=TILE, lanes=16).deep_block(axis) == 0


def test_without_a_register_tile_nothing_is_cut():
    reader = Reader(tile={}, lanes=16)
    assert reader.block({"c": 1}, RANGES) == 0
    assert reader.may_join({"c": 1}, {"wo": 64, "c": 1}, RANGES)
    assert not reader.reads_one({"g": 1})


def test_rows_of_pixels_are_joined_only_where_no_block_is_lost():
    reader = Reader(tile=TILE, lanes=16)
    assert not reader.may_join({"c": 1}, {"wo": 64, "c": 1}, RANGES)
    assert reader.may_join({"c": 1}, {"g": 64, "c": 1}, RANGES)
    assert reader.may_join({"c": 1}, {"wo": 32, "c": 1}, RANGES | {"c": 32})


def test_an_axis_of_which_a_tile_reads_one_element():
    reader = Reader(tile=TILE, lanes=16)
    assert reader.reads_one({"g": 1})
    assert reader.reads_one({"y": 1})
    assert not any(reader.reads_one(axis) for axis in ({"k": 1}, {"wo": 1, "y": 1}, {"n": 1}, {}))


def test_extents_of_axes():
    assert extent_of({"wo": 2, "y": 1}, RANGES) == 57
    assert extent_of({"n": 1, PAIR: 4}, RANGES) == 2
