"""What the taps of a strided data gradient meet, against a list of all pairs of pixels."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.problem.phases import Line, Met


@st.composite
def lines(draw: st.DrawFn) -> Line:
    """A dimension of a problem: at least one window fits between its pads."""
    taps, dilation = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    stride, pad = draw(st.integers(1, 6)), draw(st.integers(0, 9))
    extent = (taps - 1) * dilation + 1
    size = draw(st.integers(1, 16))
    high = draw(st.integers(max(0, extent - size - pad), max(0, extent - size - pad) + 6))
    outs = (size + pad + high - extent) // stride + 1
    return Line(size=size, outs=outs, filter=taps, stride=stride, dilation=dilation, pad=pad)


def in_reach(line: Line) -> set[tuple[int, int]]:
    """(offset, phase) of taps whose phase has pixels and whose offset can be in the output."""
    pairs = map(line.tap, range(line.filter))
    return {
        (offset, phase)
        for offset, phase in pairs
        if phase < line.size and line.lowest <= offset < line.outs
    }


def met_pixels(line: Line) -> set[tuple[int, int]]:
    """(offset, phase) of each input and output pixel that a tap joins, by the definition."""
    return {
        (out - i // line.stride, i % line.stride)
        for i in range(line.size)
        for out in range(line.outs)
        for f in range(line.filter)
        if out * line.stride + f * line.dilation - line.pad == i
    }


@settings(max_examples=400, deadline=None, derandomize=True)
@given(lines())
def test_what_is_met_is_what_the_taps_in_reach_meet(line: Line) -> None:
    pairs, met = in_reach(line), Met.of(line)
    if not pairs:
        assert met == Met()
        return
    offsets = {offset for offset, _ in pairs}
    phases = {phase for _, phase in pairs}
    assert (met.lowest, met.highest) == (min(offsets), max(offsets))
    assert met.phases == len(phases)
    assert met.first == (min(phases) if len(phases) == 1 else 0)
    assert met.step == math.gcd(*(offset - met.lowest for offset in offsets))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(lines())
def test_no_pair_of_pixels_is_left_out(line: Line) -> None:
    met = Met.of(line)
    for offset, phase in met_pixels(line):
        assert met.lowest <= offset <= met.highest
        assert (offset - met.lowest) % (met.step or 1) == 0
        assert met.phases > 1 or phase == met.first


@settings(max_examples=200, deadline=None, derandomize=True)
@given(lines(), st.integers(-20, 20), st.integers(0, 20))
def test_taps_between(line: Line, least: int, span: int) -> None:
    found = line.taps_between(least, least + span)
    wanted = [
        f for f in range(line.filter) if least <= f * line.dilation - line.pad <= least + span
    ]
    assert list(found) == wanted
