# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the sums of a bias's gradient are cut into levels for a machine.

Nothing is multiplied, so memory is all there is to wait for. The first level reads the gradient
once, in whole lines, and leaves a small part of its bytes; the others read that. Cuts divide an
axis evenly: what has few divisors, as a prime number of pixels, gets fewer parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.model.facts import rank_facts
from conv_compiler.problem.batching import divisors
from conv_compiler.problem.channel_sums import (
    WHOLE,
    Axis,
    Cut,
    axes_of_sums,
    level_loops,
    summed_of,
)

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

# Elements that the first level sums at least, so that its partial sums are a small part of what it
# reads. Where an axis has no such cut, the sums are fewer.
LEAST_SUMMED = 32
# Partial sums that a thread of a later level adds: it waits for each few of them.
MOST_PARTIAL = 64
# Workgroups of a core, so that none waits long for the last one.
PARTS_A_CORE = 2
# Waves that keep a SIMD's loads in flight.
WAVES_A_SIMD = 4
# Bytes of a load of a GPU's lane, and of a line of its caches.
LOAD_BYTES, LINE_BYTES = 16, 128
# Roles there are for levels (`ir.attributes.SUM_ROLES`).
MOST_LEVELS = 4


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the cuts are made for: elements of a line, those that a core or a wave has at a time,
    and how many cores or waves there are to have some."""

    line: int
    at_a_time: int
    at_once: int


def machine_of(problem: ConvProblem, target: Target) -> Machine:
    """A CPU's cores and vectors, or a GPU's waves."""
    if not target.is_gpu:
        vectors = 4 * target.cpu.unit.lanes
        at_once = PARTS_A_CORE * target.cpu.cores
        return Machine(line=vectors, at_a_time=vectors, at_once=at_once)
    chip, size = rank_facts(target), problem.data_type.bytes
    return Machine(
        line=LINE_BYTES // size,
        at_a_time=target.subgroup_size * LOAD_BYTES // size,
        at_once=WAVES_A_SIMD * chip.units * chip.simds,
    )


def levels(problem: ConvProblem, target: Target) -> tuple[tuple[int, ...], ...]:
    """Of each level the parts and the inner elements of each summed axis, in turn.

    None where a sum is of one element.
    """
    axes = axes_of_sums(problem)
    if not summed_of(axes):
        return ()
    found: list[Sequence[Cut]] = [_first(axes, machine_of(problem, target))]
    while any(cut != WHOLE for cut in found[-1]):
        axes = level_loops(axes, found[-1]).result
        found.append(_later(axes, last=len(found) == MOST_LEVELS - 1))
    return tuple(tuple(n for cut in level for n in (cut.parts, cut.inner)) for level in found)


def _first(axes: Sequence[Axis], machine: Machine) -> list[Cut]:
    """The cuts of the level that reads the gradient."""
    summed = [axis.size for axis in summed_of(axes)]
    beside = 1 if not axes[-1].kept else axes[-1].size  # in front of the last summed axis
    total = math.prod(summed)
    inner = _inner(summed[-1], beside, total, machine)
    lengths = [*summed[:-1], summed[-1] // inner]
    # Sums of the whole tensor that lie side by side, of which each part is one more.
    kept = math.prod(axis.size for axis in axes if axis.kept)
    already = max(1, kept * inner // machine.at_a_time)
    wanted = max(1, min(machine.at_once // already, total // inner // LEAST_SUMMED))
    parts = []
    for length in lengths:
        part = max(n for n in divisors(length) if n <= wanted)
        parts.append(part)
        wanted //= part
    inners = [*(1 for _ in summed[:-1]), inner]
    return [Cut(parts=part, inner=one) for part, one in zip(parts, inners, strict=True)]


def _inner(last: int, beside: int, total: int, machine: Machine) -> int:
    """Elements of the last summed axis that lie side by side with `beside` kept ones.

    The fewest that fill a line and leave LEAST_SUMMED to add, else the most that leave them.
    """
    if beside >= machine.line:
        return 1
    fitting = [n for n in divisors(last) if total // n >= LEAST_SUMMED]
    enough = [n for n in fitting if n * beside >= machine.line]
    return min(enough, default=max(fitting, default=1))


def _later(axes: Sequence[Axis], last: bool) -> list[Cut]:
    """The cuts of a level that adds partial sums: parts of the first axis, where it adds many."""
    summed = [axis.size for axis in summed_of(axes)]
    total = math.prod(summed)
    if last or total <= 2 * MOST_PARTIAL:  # a launch more would cost as much
        return [WHOLE for _ in summed]
    wanted = min(summed[0], -(-total // MOST_PARTIAL))
    parts = min(n for n in divisors(summed[0]) if n >= wanted)
    if parts == summed[0] and len(summed) == 1:
        parts = 1  # nothing divides it
    return [Cut(parts=parts, inner=1), *(WHOLE for _ in summed[1:])]
