"""What Chrome's "Trace Event Format" asks of a file, and what ours promise besides."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

TOLERANCE = 1e-9  # of microseconds: sums of floats


def checked_events(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """The complete events of a trace, of which every field that a viewer reads was checked.

    Of a track (a thread of a process) the times never go back, and no two events overlap. Every
    event lies within what its kernel is said to take.
    """
    assert trace["displayTimeUnit"] in ("ms", "ns")
    wholes = {one["pid"]: one for one in trace["otherData"]["kernels"]}
    named: dict[tuple[str, int, int], str] = {}
    complete, ends = [], defaultdict[tuple[int, int], float](float)
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str)
        assert type(event["pid"]) is int
        assert type(event["tid"]) is int
        track = event["pid"], event["tid"]
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert event["args"].keys() == {"name"}
            assert (event["name"], *track) not in named
            named[event["name"], *track] = event["args"]["name"]
            continue
        assert event["ph"] == "X"
        assert isinstance(event["cat"], str)
        assert isinstance(event["args"], dict)
        assert event["dur"] > 0
        assert event["ts"] >= ends[track] - TOLERANCE
        ends[track] = event["ts"] + event["dur"]
        assert ends[track] <= wholes[event["pid"]]["shown_us"] + TOLERANCE
        assert ("thread_name", *track) in named
        assert ("process_name", event["pid"], 0) in named
        complete.append(event)
    assert wholes.keys() == {pid for pid, _ in ends}
    for pid, whole in wholes.items():
        assert whole["kernel"] in named["process_name", pid, 0]
        # The last event of a kernel ends when the kernel does.
        assert abs(max(end for (one, _), end in ends.items() if one == pid) - whole["shown_us"]) < (
            TOLERANCE
        )
        assert whole["shown_us"] <= whole["workgroup_us"] + TOLERANCE
    return complete
