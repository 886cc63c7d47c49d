"""Parts of gemm_k: the automatic number is reasonable, an explicit one honoured or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.strategies.split_k import (
    LARGEST,
    LEAST_ITERATIONS,
    MOST_PARTS,
    check_split_k,
    occupancy_split_k,
)

SIZES = st.integers(1, 10**6)


@pytest.mark.parametrize(
    ("tiles", "slots", "k_tiles", "parts"),
    [
        (1, 608, 10**6, 128),  # never more than MOST_PARTS
        (72, 608, 10**6, 8),  # floor(608 / 72)
        (608, 608, 10**6, 1),
        (10**6, 608, 10**6, 1),
        (1, 608, 40, 10),  # parts of LEAST_ITERATIONS
        (1, 608, 7, 1),
        (1, 1, 1, 1),
    ],
)
def test_known_grids(tiles, slots, k_tiles, parts):
    assert occupancy_split_k(tiles=tiles, slots=slots, k_tiles=k_tiles) == parts


@given(tiles=SIZES, slots=SIZES, k_tiles=SIZES)
def test_parts_fit_the_chip_and_the_loop(tiles, slots, k_tiles):
    parts = occupancy_split_k(tiles=tiles, slots=slots, k_tiles=k_tiles)
    assert 1 <= parts <= MOST_PARTS
    assert parts == 1 or tiles * parts <= slots
    assert parts == 1 or k_tiles // parts >= LEAST_ITERATIONS


@given(tiles=SIZES, slots=SIZES, k_tiles=SIZES)
def test_a_larger_grid_is_never_split_more(tiles, slots, k_tiles):
    parts = occupancy_split_k(tiles=tiles, slots=slots, k_tiles=k_tiles)
    assert occupancy_split_k(tiles=tiles + 1, slots=slots, k_tiles=k_tiles) <= parts
    assert occupancy_split_k(tiles=tiles, slots=slots + 1, k_tiles=k_tiles) >= parts


@given(split_k=st.integers(1, LARGEST), gemm_k=SIZES)
def test_explicit_parts_are_honoured_where_there_is_a_product_for_each(split_k, gemm_k):
    if split_k <= gemm_k:
        assert check_split_k(split_k, gemm_k) == split_k
    else:
        with pytest.raises(UnsupportedStrategy, match=f"split_k {split_k}: more parts than"):
            check_split_k(split_k, gemm_k)


@pytest.mark.parametrize("split_k", [0, -2, LARGEST + 1])
def test_no_number_of_parts(split_k):
    with pytest.raises(UnsupportedStrategy, match=f"split_k {split_k}: not from 1 to {LARGEST}"):
        check_split_k(split_k, 10**6)
