# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fitted constants of the performance model; facts of a chip are in `facts.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from conv_compiler.model.provenance import MODEL_TIMELINES, Kind, Source


@dataclass(frozen=True, kw_only=True)
class InterleavedLoop:
    """What an interleaved main loop (`passes/interleave.py`) does not hide."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="timelines of 107 kernels for gfx942 and 42 for gfx950",
        tool=MODEL_TIMELINES,
    )

    # Vector instructions that no product hides, for they stand in runs.
    bare_vector_share: float = 0.5
    # LDS reads that are waited for, where fragments take more registers than the pass has room for
    # behind the last product.
    late_reads_share: float = 0.4
    # Iterations after the loop, which are not interleaved: what the pass writes.
    plain_iterations: int = 2


@dataclass(frozen=True, kw_only=True)
class Bound:
    """What binds a kernel."""

    source: ClassVar[Source] = Source(kind=Kind.CHOSEN, text="a word in reports, in no time")

    # A pipe that is busy for less of the time does not bind a kernel: latency does.
    busy_share: float = 0.75


INTERLEAVED = InterleavedLoop()
BOUND = Bound()

GROUPS = (INTERLEAVED, BOUND)
