"""Faults planted everywhere in real kernels of three compilers are found, and named by an address.

`test_checks.py` looks closely at eleven faults in IREE's kernels on every chip. Here each place of
a kernel gets one: every barrier, wait, LDS access and store.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.vgpu.support.planted import (
    FOUND,
    FOUND_KINDS,
    HARMLESS,
    IREE,
    MISSED,
    NOT_RUN,
    OURS,
    PARAMETERS,
    SAME,
    SOURCES,
    TRITON,
    Source,
    Subject,
)
from tests.vgpu.support.plants import KINDS, WITHIN
from tests.vgpu.support.running import CompileFor

pytestmark = pytest.mark.usefixtures("triton_cache")
ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "vgpu.md"
GOLDEN = ROOT / "tests" / "golden"
VERDICTS = (FOUND, MISSED, HARMLESS, NOT_RUN, SAME)


def figures(source: Source) -> str:
    return f"planted_{source.text.replace(' ', '_')}"


@pytest.fixture(scope="module")
def made(compile_for: CompileFor) -> Callable[[Source], Subject]:
    """The subject of a source, made once."""
    found: dict[str, Subject] = {}

    def make(source: Source) -> Subject:
        if source.text not in found:
            found[source.text] = source.make(source.chip, compile_for)
        return found[source.text]

    return make


@pytest.mark.parametrize("source", PARAMETERS)
def test_whole_kernels_have_no_finding_and_one_plant_of_each_kind_is_found(
    source: Source, made: Callable[[Source], Subject]
) -> None:
    subject = made(source)
    assert isinstance(subject.run(subject.kernel, True), bytes)
    assert not subject.flow.early()
    found = []
    for kind in FOUND_KINDS:
        verdicts = ((plant, subject.verdict(plant)) for plant in subject.plants(kind))
        first = next((one for one in verdicts if one[1] in (FOUND, MISSED)), None)
        if first:
            assert first[1] == FOUND, first[0].text
            found.append(kind)
    assert len(found) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("source", PARAMETERS)
def test_every_plant(
    source: Source, made: Callable[[Source], Subject], golden: Callable[[str, str], None]
) -> None:
    """The figures of a kernel; a shift inside of the LDS alone may be missed."""
    subject = made(source)
    lines, missed = [], []
    for kind in KINDS:
        counts: Counter[str] = Counter()
        for plant in subject.plants(kind):
            verdict = subject.verdict(plant)
            counts[verdict] += 1
            if verdict == MISSED and kind != WITHIN:
                missed.append(plant.text)
        lines.append(f"{kind}: " + ", ".join(f"{counts[one]} {one}" for one in VERDICTS))
    assert not missed
    golden(figures(source), "\n".join(lines) + "\n")


def test_the_page_has_the_figures() -> None:
    """Found of planted, by kind and compiler, are the sums of the kernels' figures."""
    sums: dict[tuple[str, str, str], int] = Counter()
    for source in SOURCES:
        text = (GOLDEN / f"{figures(source)}.txt").read_text()
        for kind, line in re.findall(r"^([^:]+): (.*)$", text, re.MULTILINE):
            for number, verdict in re.findall(r"(\d+) ([^,]+)", line):
                sums[kind, source.compiler, verdict] += int(number)
    page = PAGE.read_text()
    for kind in KINDS:
        cells = [kind]
        for compiler in (OURS, IREE, TRITON):
            found, missed = sums[kind, compiler, FOUND], sums[kind, compiler, MISSED]
            cells.append(f"{found} / {found + missed}" if found + missed else "-")
        not_counted = [
            sum(sums[kind, compiler, verdict] for compiler in (OURS, IREE, TRITON))
            for verdict in (HARMLESS, NOT_RUN, SAME)
        ]
        cells += [str(number) if number else "-" for number in not_counted]
        assert f"| {' | '.join(cells)} |" in page
