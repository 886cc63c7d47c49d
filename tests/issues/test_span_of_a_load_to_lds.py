"""The timeline showed a load to LDS at the LDS pipe, for as long as the memory pipe worked: spans
overlapped and began before the kernel."""

from __future__ import annotations

from itertools import pairwise

from conv_compiler.model.facts import chip_facts
from conv_compiler.model.timeline import Pipes, Step
from conv_compiler.targets import find_target


def test_spans_of_one_pipe_follow_one_another() -> None:
    pipes = Pipes(chip_facts(find_target("gfx950")), seen=[])
    pipes.run([Step(issue=4, lds=8, memory=40, loads=True)] * 3)
    assert pipes.seen is not None
    spans = [(one.start, one.end) for one in pipes.seen]
    assert [one.pipe for one in pipes.seen] == ["LDS"] * 3
    assert spans[0][0] >= 0
    assert all(end - start == 8 for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
