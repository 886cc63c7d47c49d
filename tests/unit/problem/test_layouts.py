"""Layouts: rows of letters, their names, and where an axis lies."""

from __future__ import annotations

import itertools
import math

import pytest

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.layouts import LAYOUTS, MIXED, Layout, axis_of, find_layout

CELLS = [(row, ndim) for row in (*LAYOUTS, *MIXED) for ndim in (1, 2, 3)]


@pytest.mark.parametrize(("row", "ndim"), CELLS, ids=str)
def test_a_name_finds_its_row(row, ndim):
    """In capitals or not, and as it is spelled for another dimension."""
    assert find_layout(row.spell(ndim), ndim) is row
    assert find_layout(row.spell(ndim).lower(), ndim) is row
    assert find_layout(row.spell(2), ndim) is row


def test_every_name_is_one_row():
    names = [row.spell(ndim) for row, ndim in CELLS]
    assert len(set(names)) == len(names)


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(UnsupportedProblem, match=r"did you mean NHWC\? known: NHWGC_"):
        find_layout("NHWX", 2)


@pytest.mark.parametrize(("row", "ndim"), CELLS, ids=str)
def test_axes_are_those_of_the_letters_written_out(row, ndim):
    for letters in (row.input, row.weight, row.output):
        written = letters.replace("*", "*" * ndim)
        for letter in set(letters):
            assert axis_of(letters, letter, ndim) == written.index(letter)


@pytest.mark.parametrize("row", LAYOUTS, ids=lambda row: row.spell(2))
def test_a_folded_row_is_a_view_of_its_grouped_one(row):
    """The channel axis of each tensor becomes two, the group outside; nothing else moves."""
    grouped = row.grouped
    assert not grouped.folded
    assert grouped in LAYOUTS or row.folded
    for folded, whole, channel in zip(
        (row.input, row.weight, row.output),
        (grouped.input, grouped.weight, grouped.output),
        "CKK",
        strict=True,
    ):
        if row.folded:
            assert whole == folded.replace(channel, "G" + channel)
        else:
            assert whole == folded


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("row", LAYOUTS, ids=lambda row: row.spell(2))
def test_the_batch_is_outermost_where_its_stride_is_the_largest(row, groups):
    sizes = {"N": 5, "G": groups, "C": 2, "K": 2, "*": 4}

    def outermost(letters):
        strides = {
            letter: math.prod(sizes[inner] for inner in letters[i + 1 :])
            for i, letter in enumerate(letters)
            if sizes[letter] > 1
        }
        return max(strides, key=strides.__getitem__) == "N"

    whole = row.grouped
    wanted = outermost(whole.input) and outermost(whole.output)
    assert row.batch_is_outermost(groups) == wanted


@pytest.mark.parametrize(
    ("letters", "message"),
    [
        (("N*C", "K*C", "N*C"), "layout N*C: needs each of NK* once"),
        (("N*GC", "K*C", "N*GK"), "G is in all three tensors or in none"),
        (("NN*C", "K*C", "N*K"), "needs each of NC* once"),
    ],
)
def test_a_row_proves_itself(letters, message):
    with pytest.raises(ValueError, match=message.replace("*", r"\*")):
        Layout(**dict(zip(("input", "weight", "output"), letters, strict=True)))


def test_data_and_weight_orders_are_combined_freely():
    for folded in (False, True):
        rows = [row for row in (*LAYOUTS, *MIXED) if row.folded == folded]
        orders = ({getattr(row, name) for row in rows} for name in ("input", "weight", "output"))
        found = [(row.input, row.weight, row.output) for row in rows]
        assert sorted(found) == sorted(itertools.product(*orders))
