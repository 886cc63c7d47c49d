# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long one workgroup takes alone on a unit: its instructions, one after another.

A wave issues in order. Each instruction takes an issue slot and keeps its pipe; loads come back
after their latency, and a wait stands still until those it names are back. The waves of a workgroup
run the same code in step, so a pipe that they share serves each instruction of every wave before
the next. No result is waited for but through a wait: hazards of registers are not modelled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from conv_compiler.model.classify import classify, lds_in_flight, loads_in_flight
from conv_compiler.model.estimate import chip_lanes
from conv_compiler.model.facts import ChipFacts
from conv_compiler.model.instructions import Instruction
from conv_compiler.model.launch import Launch

# Iterations after which a software pipeline of any depth in use is in its steady state, and those
# over which that state is measured: what an iteration leaves in flight can alternate.
_SETTLING, _MEASURED = 4, 4


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one instruction costs a workgroup, in cycles of the unit."""

    issue: float
    matrix: float = 0.0
    lds: float = 0.0
    memory: float = 0.0
    loads: bool = False
    loads_left: int | None = None
    lds_left: int | None = None


def steps(
    code: Iterable[Instruction], name: str, lanes: int, launch: Launch, chip: ChipFacts
) -> list[Step]:
    """The costs of some instructions on the chip of that name."""
    share = -(-launch.waves // chip.simds)  # waves of the workgroup on a SIMD
    a_dword = 4.0 * chip_lanes(chip) / chip.memory_bytes_per_cycle
    found = []
    for one in code:
        counts = classify(one, name, lanes)
        vector = chip.valu_cycles * (counts.valu_slots + counts.matrix)
        scalar = chip.scalar_cycles * (counts.salu + counts.scalar_loads + counts.branches)
        lds = sum(
            getattr(counts, f"lds_{kind}_{size}") * getattr(cycles, f"bytes_{size}")
            for kind, cycles in (("reads", chip.lds_read_cycles), ("writes", chip.lds_write_cycles))
            for size in (4, 8, 16)
        )
        found.append(
            Step(
                issue=share * (vector or scalar or chip.scalar_cycles),
                matrix=share * counts.matrix_cycles,
                lds=launch.waves * lds,
                memory=launch.waves * a_dword * (counts.load_dwords + counts.store_dwords),
                loads=bool(counts.loads),
                loads_left=loads_in_flight(one, lanes),
                lds_left=lds_in_flight(one, lanes),
            )
        )
    return found


@dataclass(frozen=True, kw_only=True)
class Moment:
    """When one instruction ran, in cycles of the unit since the workgroup began.

    The waves reach it at `reached`, issue it at `issued` and go on at `left`: between the first two
    they stand still. Its `pipe` ("" where it has none of its own) works from `start` to `end`.
    """

    reached: float
    issued: float
    left: float
    pipe: str
    start: float
    end: float

    @property
    def stall(self) -> float:
        """Cycles that the waves stood still before it."""
        return self.issued - self.reached


@dataclass
class Pipes:
    """When each pipe is free, and when what is in flight comes back.

    `seen`, where it is a list, gets a moment for each step.
    """

    chip: ChipFacts
    now: float = 0.0
    matrix_free: float = 0.0
    lds_free: float = 0.0
    memory_free: float = 0.0
    loads: deque[float] = field(default_factory=deque)
    lds: deque[float] = field(default_factory=deque)
    seen: list[Moment] | None = None

    def run(self, work: Iterable[Step]) -> None:
        """Let the waves go through some steps."""
        chip = self.chip
        for step in work:
            reached = self.now
            for left, flying in ((step.loads_left, self.loads), (step.lds_left, self.lds)):
                while left is not None and len(flying) > left:
                    self.now = max(self.now, flying.popleft())
            if step.matrix:
                self.now = max(self.now, self.matrix_free)
                self.matrix_free = self.now + step.matrix
                if not chip.matrix_beside_valu:
                    self.now = self.matrix_free - step.issue
            if step.lds:
                self.lds_free = max(self.now, self.lds_free) + step.lds
                if not step.loads:  # a load that writes to LDS is waited for as a load
                    self.lds.append(self.lds_free + chip.lds_latency_cycles)
            if step.memory:
                self.memory_free = max(self.now, self.memory_free) + step.memory
                if step.loads:
                    self.loads.append(self.memory_free + chip.load_cycles)
            self.now += step.issue
            if self.seen is not None:
                self.seen.append(self._moment(step, reached))

    def _moment(self, step: Step, reached: float) -> Moment:
        """When the step that was just run was reached, issued and done."""
        pipe, end, busy = "", self.now, 0.0
        if step.matrix:
            pipe, end, busy = "matrix", self.matrix_free, step.matrix
        elif step.lds:
            pipe, end, busy = "LDS", self.lds_free, step.lds
        elif step.memory:
            pipe, end, busy = "memory", self.memory_free, step.memory
        issued = self.now - step.issue
        if step.matrix and not self.chip.matrix_beside_valu:
            issued = end - step.matrix
        return Moment(
            reached=reached,
            issued=issued,
            left=self.now,
            pipe=pipe,
            start=end - busy,
            end=end,
        )

    @property
    def end(self) -> float:
        return max(self.now, self.matrix_free, self.lds_free, self.memory_free)


def alone_cycles(
    before: Sequence[Step],
    body: Sequence[Step],
    after: Sequence[Step],
    iterations: float,
    chip: ChipFacts,
) -> float:
    """Cycles of a workgroup that runs `before`, `iterations` times `body` and `after`."""
    pipes = Pipes(chip)
    pipes.run(before)
    done = min(int(iterations), _SETTLING)
    for _ in range(done):
        pipes.run(body)
    rest = 0.0
    if iterations > done:
        start, measured = pipes.now, min(int(iterations) - done, _MEASURED) or 1
        for _ in range(measured):
            pipes.run(body)
        rest = (pipes.now - start) / measured * max(0.0, iterations - done - measured)
    pipes.run(after)
    return pipes.end + rest
