# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of a kernel from its machine code alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conv_compiler.model.classify import classify, is_barrier, loads_in_flight
from conv_compiler.model.counts import Counts, KernelCounts, total
from conv_compiler.model.facts import ChipFacts
from conv_compiler.model.instructions import Instruction
from conv_compiler.model.launch import Launch
from conv_compiler.model.loops import Block, Loop, blocks, main_loop
from conv_compiler.model.scalar import run_counts
from conv_compiler.model.timeline import alone_cycles, steps

# Iterations after which a software pipeline of any depth in use is in its steady state.
_STEADY_ITERATIONS = 4


def static_counts(
    code: Sequence[Instruction], chip: str, lanes: int, starts: Sequence[Mapping[str, int]]
) -> KernelCounts:
    """What one wave of a kernel executes on average, its iterations found by running its scalar
    code.

    `code` is the kernel from entry to end; each of `starts` has the scalar registers one workgroup
    starts with, as far as they are known, and all count alike. Bytes are those of all lanes, and
    LDS conflicts and cache lines are not known, so they count as if there were none and every byte
    were used.

    Raises ModelRefused when an iteration count hangs on what is not a constant.
    """
    parts = blocks(code)
    every = [run_counts(parts, registers) for registers in starts]
    runs = [sum(counted) / len(every) for counted in zip(*every, strict=True)]
    return counts_of(parts, runs, chip, lanes)


def counts_of(parts: Sequence[Block], runs: Sequence[float], chip: str, lanes: int) -> KernelCounts:
    """What one wave of a kernel executes whose blocks it runs so often."""
    counts = [total(classify(one, chip, lanes) for one in part.instructions) for part in parts]

    def work(block: int) -> tuple[float, ...]:
        one = counts[block]
        return one.matrix_flops * runs[block], one.vector_flops * runs[block]

    loop = main_loop(parts, work)
    inside = range(loop.first, loop.last + 1) if loop else range(0)
    outside = total(
        counts[b].scaled(runs[b]) for b in range(len(parts)) if runs[b] and b not in inside
    )
    if loop is None:
        return KernelCounts(outside=outside, source="static")
    iterations = max(runs[b] for b in inside if any(work(b)))
    return KernelCounts(
        body=segments(parts, loop, chip, lanes, [run / iterations for run in runs]),
        iterations=iterations,
        outside=outside,
        load_distance=load_distance(
            [one for b in inside if runs[b] for one in parts[b].instructions], chip, lanes
        ),
        source="static",
    )


def alone(
    code: Sequence[Instruction],
    name: str,
    lanes: int,
    starts: Sequence[Mapping[str, int]],
    launch: Launch,
    chips: Sequence[ChipFacts],
) -> list[tuple[float, ...]]:
    """Cycles that each of some workgroups takes alone on a unit of the chip of that name.

    `starts` has the registers that each starts with; of those for which all blocks run as often one
    is timed. For each of `chips`, which are facts of that chip under several conditions.
    """
    parts = blocks(code)
    every = [tuple(run_counts(parts, start)) for start in starts]
    found = {
        runs: alone_of(parts, runs, name, lanes, launch, chips) for runs in dict.fromkeys(every)
    }
    return [found[runs] for runs in every]


@dataclass(frozen=True, kw_only=True)
class Course:
    """The way of a workgroup through its blocks, by their indices.

    It runs `before`, `iterations` times `body`, which is its main loop, and `after`.
    """

    before: tuple[int, ...]
    body: tuple[int, ...]
    after: tuple[int, ...]
    iterations: int


def course(parts: Sequence[Block], runs: Sequence[int], name: str, lanes: int) -> Course:
    """The way of a workgroup whose blocks run so often, on the chip of that name."""

    def work(block: int) -> tuple[float, ...]:
        one = total(classify(i, name, lanes) for i in parts[block].instructions)
        return one.matrix_flops * runs[block], one.vector_flops * runs[block]

    def straight(chosen: range) -> tuple[int, ...]:
        return tuple(b for b in chosen for _ in range(runs[b]))

    loop = main_loop(parts, work)
    first, last = (loop.first, loop.last) if loop else (len(parts), len(parts))
    body = tuple(b for b in range(first, min(last + 1, len(parts))) if runs[b])
    return Course(
        before=straight(range(first)),
        body=body,
        after=straight(range(last + 1, len(parts))),
        iterations=max((runs[b] for b in body if any(work(b))), default=0),
    )


def alone_of(
    parts: Sequence[Block],
    runs: Sequence[int],
    name: str,
    lanes: int,
    launch: Launch,
    chips: Sequence[ChipFacts],
) -> tuple[float, ...]:
    """Cycles that a workgroup takes alone whose blocks run so often, for each of `chips`."""
    way = course(parts, runs, name, lanes)

    def cycles(chip: ChipFacts) -> float:
        costs = [steps(part.instructions, name, lanes, launch, chip) for part in parts]
        before, body, after = (
            [step for b in blocks for step in costs[b]]
            for blocks in (way.before, way.body, way.after)
        )
        return alone_cycles(before, body, after, way.iterations, chip)

    return tuple(map(cycles, chips))


def segments(
    parts: Sequence[Block], loop: Loop, chip: str, lanes: int, weights: Sequence[float]
) -> tuple[Counts, ...]:
    """One iteration cut at its barriers; what follows the last one goes with what precedes the
    first."""
    found = [Counts()]
    for b in range(loop.first, loop.last + 1):
        for one in parts[b].instructions:
            found[-1] += classify(one, chip, lanes).scaled(weights[b])
            if is_barrier(one.name):
                found.append(Counts())
    last = found.pop()
    return (last + found[0], *found[1:]) if found else (last,)


def load_distance(body: Sequence[Instruction], chip: str, lanes: int) -> float:
    """Iterations between a load from memory and the wait for it, for the one that is waited for
    soonest.

    Measured along the loop's matrix and other instructions; 0 where nothing is loaded.
    """
    cost = [max(1.0, classify(one, chip, lanes).matrix_cycles) for one in body]
    length = sum(cost)
    in_flight: list[float] = []
    soonest = float("inf")
    now = 0.0
    for _ in range(_STEADY_ITERATIONS):
        soonest = float("inf")
        for one, cycles in zip(body, cost, strict=True):
            left = loads_in_flight(one, lanes)
            while left is not None and len(in_flight) > left:
                soonest = min(soonest, (now - in_flight.pop(0)) / length)
            now += cycles
            if classify(one, chip, lanes).loads:
                in_flight.append(now)
    return soonest if soonest != float("inf") else 0.0
