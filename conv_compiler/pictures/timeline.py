# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steady state of a kernel's main loop on the pipes, as a drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.markup import Markup, box, svg, words
from conv_compiler.pictures.chrome_trace import THREADS, WAITS, spans

if TYPE_CHECKING:
    from conv_compiler.model.trace import Executed, Trace

# Pixels of a row, of the names beside it and of the whole.
_ROW, _NAMES, _WIDTH, _AXIS = 26, 90, 1100, 24
_COLOURS = {
    "waves issue": "#7a8ba3",
    WAITS: "#d9a441",
    "matrix": "#4472c4",
    "LDS": "#5a9e5a",
    "memory": "#b05a8c",
}
# Iterations drawn: the last ones in the trace, which are the steady state.
DRAWN_ITERATIONS = 2


def drawn(trace: Trace) -> list[Executed]:
    """The instructions that are drawn: the last iterations of the trace, or all without a loop."""
    if not trace.shown:
        return list(trace.executed)
    parts = {f"iteration {n}" for n in range(trace.shown)[-DRAWN_ITERATIONS:]}
    return [one for one in trace.executed if one.part in parts]


def timeline_picture(trace: Trace) -> Markup:
    """A row a pipe; what is under the pointer is named."""
    shown = drawn(trace)
    every = [span for one in shown for span in spans(one)]
    begin = min(start for _, start, _, _ in every)
    end = max(end for _, _, end, _ in every)
    scale = (_WIDTH - _NAMES) / (end - begin)
    parts = [words(0, _ROW * n + 17, name) for n, name in enumerate(THREADS)]
    for thread, start, stop, one in every:
        operands = ", ".join(one.instruction.operands)
        tip = f"{one.instruction.name} {operands}: {stop - start:g} cycles from {start:g}"
        parts.append(
            box(
                _NAMES + (start - begin) * scale,
                _ROW * THREADS.index(thread) + 4,
                max((stop - start) * scale, 0.4),
                _ROW - 6,
                _COLOURS[thread],
                tip,
            )
        )
    bottom = _ROW * len(THREADS)
    for mark in range(5):
        cycle = begin + (end - begin) * mark / 4
        anchor = ("start", "middle", "middle", "middle", "end")[mark]
        at = _NAMES + (cycle - begin) * scale
        parts.append(words(at, bottom + 16, f"cycle {cycle:.0f}", 10, anchor))
    what = (
        f"the last {DRAWN_ITERATIONS} of {trace.shown} iterations" if trace.shown else "all of it"
    )
    return svg(_WIDTH, bottom + _AXIS, *parts, label=f"pipes of one workgroup: {what}")
