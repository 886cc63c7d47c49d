"""LDS rows whose k steps lie side by side, and what else RDNA's straight operands count."""

from collections import Counter

import pytest

from conv_compiler import ConvProblem
from conv_compiler.strategies.gpu.cost_constants import LOOP
from conv_compiler.strategies.gpu.lds_banks import WHOLE_ROW_PADDING, Item, LdsRow, row_write_cycles
from conv_compiler.strategies.gpu.lds_copies import lds_bytes, tiling_lds_bytes
from conv_compiler.strategies.gpu.loop_terms import LoopTerms
from conv_compiler.strategies.gpu.tail_masking import NO_TAIL
from conv_compiler.strategies.gpu.tilings import item_of
from conv_compiler.strategies.registry import STRATEGIES
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

ITEM = Item(2, several=True, whole_rows=True)
BANKS, READ_BYTES = 32, 16
LAYER = {"n": 32, "k": 512, "c": 256, "image": (7, 7), "filter": (1, 1), "dtype": "f16"}


def of(target, **changed):
    """The weight gradient's roles of a layer on a chip, and the chip."""
    chip = find_target(target)
    return resolve(ConvProblem(**LAYER | {"direction": "fwd"} | changed), chip).wgrad, chip


def row(k):
    return LdsRow.of(16, ITEM, (64, k), (1, 256))


def terms(target, tile, **changed):
    """The loop's terms of the fastest strategy with a tile."""
    problem, chip = of(target, **changed)
    (one,) = (one for one in choose(problem.of, chip) if one.tiling.workgroup == tile)
    mma = next(mma for mma in chip.mma if mma.name == one.mma)
    return LoopTerms(problem, chip, one.tiling, mma)


@pytest.mark.parametrize(
    ("target", "changed", "whole"),
    [
        ("gfx1201", {}, True),
        ("gfx1100", {"dtype": "bf16"}, True),
        ("gfx1201", {"dtype": "i8"}, False),
        ("gfx1201", {"direction": "bwd_data"}, False),
        ("gfx1201", {"direction": "bwd_weight"}, False),
        ("gfx942", {}, False),
        ("sm_80", {}, False),
    ],
)
def test_rows_are_whole_where_lanes_of_rdna_read_16_bytes(target, changed, whole):
    """Of 8-bit types they read 8 bytes. Gradients have a transposed operand."""
    assert item_of(*of(target, **changed)).whole_rows == whole


@pytest.mark.parametrize("k", [32, 64, 128])
def test_lanes_read_rows_from_banks_of_their_own(k):
    """Eight lanes at a time read 16 bytes each of adjacent rows."""
    for first in range(0, 2 * k, READ_BYTES):
        places = [lane * row(k).pitch + first for lane in range(8)]
        assert all(place % READ_BYTES == 0 for place in places)
        banks = Counter(
            (place // 4 + dword) % BANKS for place in places for dword in range(READ_BYTES // 4)
        )
        assert max(banks.values()) == 1


@pytest.mark.parametrize(
    ("k", "piece", "conflicts"),
    [
        (64, (1, 16), 0),
        (64, (1, 8), 0),
        (64, (2, 16), 16),
        (32, (1, 8), 8),
        (32, (4, 8), 0),
    ],
)
def test_lanes_write_rows(k, piece, conflicts):
    """Eight lanes at a time write 16 bytes each.

    With (1, 16) they have two rows of 64, with (1, 8) one. With (2, 16) their rows are two apart,
    in the same banks.
    """
    assert row_write_cycles(piece, row(k)).conflicts == conflicts


def test_a_row_is_padded_once():
    assert row(64).pitch == 64 * 2 + WHOLE_ROW_PADDING
    assert row(64).step_bytes == 32
    assert row(16) == LdsRow(16, ITEM)  # one step


def test_the_chosen_kernel_has_whole_rows():
    problem, chip = of("gfx1201")
    one = choose(problem.of, chip)[0]
    assert one.tiling.copy_a == (1, 16)
    schedule = STRATEGIES[one.name].lower(problem, chip, one).schedule
    (padding,) = (p for p in schedule.behind["contraction"] if p.name == "pad-k-steps")
    assert padding.whole_row_padding == WHOLE_ROW_PADDING
    mma = next(mma for mma in chip.mma if mma.name == one.mma)
    m, n, k = one.tiling.workgroup
    assert tiling_lds_bytes(mma, one.tiling, ITEM) == (m + n) * (2 * k + WHOLE_ROW_PADDING)
    assert tiling_lds_bytes(mma, one.tiling, Item(2)) == lds_bytes(mma, (m, n, k), 2)


def test_lanes_of_gfx11_read_an_operand_twice():
    """Both halves of a wave hold all of it."""
    tile = (64, 64, 64)
    found = {chip: terms(chip, tile).fragment_reads() for chip in ("gfx1100", "gfx1201")}
    assert found["gfx1201"] == {"lds_reads_16": 16}
    assert found["gfx1100"] == {"lds_reads_16": 32}


@pytest.mark.parametrize(
    ("tile", "tested"),
    [
        ((64, 64, 64), True),
        ((64, 32, 64), False),  # 32 images of one pixel
    ],
)
def test_rows_at_several_places_are_tested(tile, tested):
    one = terms("gfx1201", tile, k=256, image=(14, 14), filter=(3, 3), pad_low=(1, 1))
    assert one.place_tests(LOOP) == one.image.rows * LOOP.place_row_instructions * tested
    assert (one.window_zeros(NO_TAIL) > 0) == tested


def test_l1_keeps_the_lines_of_two_tiles():
    """Rows of both operands are a line each: a wave of four fetches a quarter of them."""
    one = terms("gfx1201", (64, 64, 64))
    assert one.loads()["line_bytes"] == (64 + 64) * 128 / 4
