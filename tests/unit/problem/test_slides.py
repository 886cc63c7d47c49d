"""What result pixels read, one dimension at a time, beside the definition written out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conv_compiler.problem.slides import Slide, Spaced, in_three


@st.composite
def dimensions(draw):
    taps, dilation, pad = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(0, 6))
    stride, extent = draw(st.integers(1, 5)), (taps - 1) * dilation + 1
    image = draw(st.integers(max(1, extent - 2 * pad), extent + 20))
    outs = (image + 2 * pad - extent) // stride + 1
    return Spaced(image=image, outs=outs, taps=taps, stride=stride, dilation=dilation, pad=pad)


def _by_definition(one: Spaced, direction: str) -> set[tuple[int, int, int]]:
    """(result pixel, source pixel, tap) of every product."""
    found = set()
    for o in range(one.outs):
        for f in range(one.taps):
            i = o * one.stride + f * one.dilation - one.pad
            if 0 <= i < one.image:
                found.add((o, i, f) if direction == "fwd" else (i, o, f))
    return found


def _read(slide: Slide) -> set[tuple[int, int, int]]:
    found = set()
    for unit in range(slide.units):
        for phase, reads in enumerate(slide.window):
            pixel = unit * slide.phases + phase
            for tap, offset in reads:
                source = unit * slide.step + offset
                if pixel < slide.outs and 0 <= source < slide.size:
                    found.add((pixel, source, tap))
    return found


@given(one=dimensions(), direction=st.sampled_from(["fwd", "bwd_data"]))
def test_every_product_is_read_once(one, direction):
    slide = one.slide(direction)
    assert _read(slide) == _by_definition(one, direction)
    assert sum(map(len, slide.window)) <= one.taps


@given(one=dimensions(), direction=st.sampled_from(["fwd", "bwd_data"]))
def test_rows_meet_the_same_products(one, direction):
    slide = one.slide(direction)
    low, high = slide.lags
    found = set()
    for step in range(-high - 1, slide.units - low + 1):
        for row, lag, phase, tap in slide.met():
            assert low <= lag <= high
            source, unit = step * slide.step + row, step + lag
            pixel = unit * slide.phases + phase
            if 0 <= unit < slide.units and pixel < slide.outs and 0 <= source < slide.size:
                found.add((pixel, source, tap))
    assert found == _by_definition(one, direction)


@given(one=dimensions(), units=st.integers(1, 6))
def test_the_reach_has_what_some_units_read(one, units):
    slide = one.slide("bwd_data")
    offsets = {read.offset for reads in slide.window for read in reads}
    assert set(slide.reach(units)) == {u * slide.step + at for u in range(units) for at in offsets}


def test_a_single_dimension_is_that_of_rows():
    assert in_three([7], 1) == (1, 7, 1)
    assert in_three([5, 7], 1) == (1, 5, 7)
    assert in_three([3, 5, 7], 1) == (3, 5, 7)


@given(one=dimensions(), direction=st.sampled_from(["fwd", "bwd_data"]))
def test_a_dimension_tells_whether_it_meets_its_source(one, direction):
    assert one.slide(direction).meets == bool(_by_definition(one, direction))


@given(
    one=dimensions(),
    direction=st.sampled_from(["fwd", "bwd_data"]),
    units=st.one_of(st.integers(1, 9), st.integers(250, 270)),
)
def test_pixels_read_are_never_counted_too_low(one, direction, units):
    slide = one.slide(direction)
    reads = [read for phase in slide.window for read in phase]
    read = {unit * slide.step + offset for unit in range(units) for _, offset in reads}
    assert len(read) <= slide.read(units) <= units * len(reads)
    if units < 10:
        assert slide.read(units) == len(read)
