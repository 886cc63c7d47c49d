# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modelled timeline of one workgroup alone on a unit, instruction by instruction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING

from conv_compiler.model.facts import ChipFacts, chip_facts
from conv_compiler.model.loops import blocks
from conv_compiler.model.module import sample_workgroups, start_registers
from conv_compiler.model.scalar import run_counts
from conv_compiler.model.static import alone_of, course
from conv_compiler.model.timeline import Moment, Pipes, steps
from conv_compiler.targets import find_target

if TYPE_CHECKING:
    from conv_compiler.model.instructions import Instruction
    from conv_compiler.model.kernel_model import KernelModel
    from conv_compiler.model.loops import Block

# Iterations of a loop that a trace holds: a pipeline of any depth in use has settled.
SHOWN_ITERATIONS = 8


@dataclass(frozen=True, kw_only=True)
class Executed:
    """One instruction as the workgroup's waves ran it.

    `part` is "before" or "after" the main loop, or "iteration" and its number.
    """

    instruction: Instruction
    moment: Moment
    part: str


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What one workgroup of a kernel runs, at the boost clock.

    `workgroup` is its id, or None for the mean of all that a run counted. Of `iterations` of the
    main loop the first `shown` are in `executed`, and of any other loop as many at most; `runs` has
    how often a wave runs the instruction at each address in all. Cycles are the unit's, `clock_ghz`
    of them a nanosecond; `cycles` are those of all iterations.
    """

    kernel: str
    workgroup: tuple[int, int, int] | None
    executed: tuple[Executed, ...]
    iterations: int
    shown: int
    runs: dict[int, int]
    cycles: float
    clock_ghz: float

    @property
    def end(self) -> float:
        """Cycles until the last pipe has done what is in `executed`."""
        return max((max(one.moment.left, one.moment.end) for one in self.executed), default=0.0)

    def stalls(self) -> dict[int, float]:
        """By address: cycles that the waves stand still before an instruction, each time it runs.

        In the main loop those of the last iteration in the trace, which is the steady state.
        """
        last = f"iteration {self.shown - 1}"
        found: dict[int, list[float]] = {}
        for one in self.executed:
            if not one.part.startswith("iteration") or one.part == last:
                found.setdefault(one.instruction.address, []).append(one.moment.stall)
        return {address: sum(cycles) / len(cycles) for address, cycles in found.items()}


def trace(kernel: KernelModel) -> Trace:
    """The trace of a workgroup from the middle of a kernel's grid.

    Raises ModelRefused when an iteration count hangs on what is not a constant.
    """
    code = kernel.code
    (workgroup,) = sample_workgroups(kernel.dispatch, 1)
    parts = blocks(code.code)
    return trace_of(kernel, parts, run_counts(parts, start_registers(code, workgroup)), workgroup)


def trace_of(
    kernel: KernelModel,
    parts: Sequence[Block],
    runs: Sequence[int],
    workgroup: tuple[int, int, int] | None,
) -> Trace:
    """The trace of a workgroup whose waves run each of the kernel's blocks so often."""
    code, target = kernel.code, find_target(kernel.code.chip)
    way = course(parts, runs, code.chip, code.lanes)
    shown = min(way.iterations, SHOWN_ITERATIONS)
    chip = chip_facts(target)
    pipes = Pipes(chip, seen=[])

    def through(chosen: Sequence[int], part: str) -> Iterator[Executed]:
        for _, same in groupby(chosen):
            for block in islice(same, SHOWN_ITERATIONS):
                yield from _run(parts[block].instructions, part, pipes, kernel, chip)

    executed = [*through(way.before, "before")]
    for number in range(shown):
        executed += through(way.body, f"iteration {number}")
    executed += through(way.after, "after")
    (cycles,) = alone_of(parts, runs, code.chip, code.lanes, kernel.launch, [chip])
    return Trace(
        kernel=code.name,
        workgroup=workgroup,
        executed=tuple(executed),
        iterations=way.iterations,
        shown=shown,
        runs={
            one.address: count
            for part, count in zip(parts, runs, strict=True)
            for one in part.instructions
        },
        cycles=cycles,
        clock_ghz=target.clock_ghz,
    )


def _run(
    code: Sequence[Instruction], part: str, pipes: Pipes, kernel: KernelModel, chip: ChipFacts
) -> Iterator[Executed]:
    """Run a block once; its instructions with their moments."""
    seen = pipes.seen
    assert seen is not None
    first = len(seen)
    pipes.run(steps(code, kernel.code.chip, kernel.code.lanes, kernel.launch, chip))
    for one, moment in zip(code, seen[first:], strict=True):
        yield Executed(instruction=one, moment=moment, part=part)
