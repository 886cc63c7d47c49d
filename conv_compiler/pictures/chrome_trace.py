# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modelled timeline of a module's kernels as a file for Perfetto and chrome://tracing.

The format is Chrome's "Trace Event Format" (JSON): a process a kernel, a thread a pipe. Times
are in microseconds at the boost clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.storage.outputs import Kind, check_output, write

if TYPE_CHECKING:
    from conv_compiler.model.trace import Executed, Trace

_BEGINS = b'{"displayTimeUnit"'
TRACE = Kind(name="a trace", is_one=lambda path: path.read_bytes().startswith(_BEGINS))
# Threads of a kernel's process, in the order they are shown.
WAVES, WAITS = "waves issue", "waves wait"
THREADS = (WAVES, WAITS, "matrix", "LDS", "memory")


def check_trace(path: Path, read: Sequence[Path] = ()) -> None:
    """Raise unless a trace can be written there, before anything is compiled.

    `read` are files that it may not replace.
    """
    check_output(path, TRACE, read)


def write_trace(path: Path, traces: Sequence[Trace], title: str) -> None:
    """Write the kernels' timelines, each from time 0."""
    text = json.dumps(
        {
            "displayTimeUnit": "ns",
            "otherData": {
                "title": title,
                "source": "modelled, not measured",
                "kernels": [_whole(one, number) for number, one in enumerate(traces)],
            },
            "traceEvents": [
                event for number, one in enumerate(traces) for event in _events(one, number)
            ],
        }
    )
    write(path, TRACE, lambda file: file.write_text(text))


def _whole(trace: Trace, process: int) -> dict[str, Any]:
    """How long the workgroup takes, in microseconds: what is shown, and with all iterations."""
    return {
        "pid": process,
        "kernel": trace.kernel,
        "shown_us": trace.end / _microsecond(trace),
        "workgroup_us": trace.cycles / _microsecond(trace),
    }


def _microsecond(trace: Trace) -> float:
    """Cycles of a microsecond."""
    return trace.clock_ghz * 1e3


def _events(trace: Trace, process: int) -> Iterator[dict[str, Any]]:
    """All events of one kernel."""
    of_all = f"{trace.shown} of {trace.iterations} iterations" if trace.iterations else "no loop"
    which = f"workgroup {trace.workgroup}" if trace.workgroup else "the mean workgroup"
    name = f"{trace.kernel} ({which}, {of_all}; modelled)"
    yield _named("process_name", name, process, 0)
    for thread, text in enumerate(THREADS):
        yield _named("thread_name", text, process, thread)
    for one in trace.executed:
        yield from (_complete(event, trace, process) for event in spans(one))


def spans(one: Executed) -> Iterator[tuple[str, float, float, Executed]]:
    """The spans (thread, from, to, instruction) of one instruction; empty ones are left out."""
    moment = one.moment
    found = (
        (WAITS, moment.reached, moment.issued),
        (WAVES, moment.issued, moment.left),
        (moment.pipe, moment.start, moment.end),
    )
    return ((thread, start, end, one) for thread, start, end in found if thread and end > start)


def _complete(
    span: tuple[str, float, float, Executed], trace: Trace, process: int
) -> dict[str, Any]:
    thread, start, end, one = span
    microsecond = _microsecond(trace)
    return {
        "ph": "X",
        "name": one.instruction.name,
        "cat": one.part.partition(" ")[0],
        "pid": process,
        "tid": THREADS.index(thread),
        "ts": start / microsecond,
        "dur": (end - start) / microsecond,
        "args": {
            "operands": ", ".join(one.instruction.operands),
            "address": f"{one.instruction.address:#x}",
            "part": one.part,
            "cycles": end - start,
        },
    }


def _named(kind: str, text: str, process: int, thread: int) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": text}}
