# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pixels of the source a result pixel reads along planes or rows, as indices of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.passes.cpu_kernel.indices import (
    at_least,
    at_most,
    choice,
    constant,
    divided,
    less,
    plus,
    times,
)
from conv_compiler.passes.direct_parts.runs import Progression, progression, units_of
from conv_compiler.problem.slides import Slide


@dataclass(frozen=True, kw_only=True)
class Reach:
    """The reads of a unit's phase: numbers `low` to before `high` meet pixels of the source."""

    reads: Progression
    first: ir.Value
    low: ir.Value
    high: ir.Value

    def pixel(self, number: ir.Value) -> ir.Value:
        """The source pixel of a read."""
        return plus(self.first, times(number, self.reads.step.offset))

    def tap(self, number: ir.Value) -> ir.Value:
        """The tap of a read."""
        return plus(constant(self.reads.first.tap), times(number, self.reads.step.tap))


def reach(slide: Slide, unit: ir.Value, phase: int) -> Reach:
    """The reads of a phase of a unit along a slide."""
    reads = progression(slide.window[phase])
    step, offset = reads.step.offset, reads.first.offset
    first = plus(times(unit, slide.step), constant(offset))
    last = (units_of(slide, phase) - 1) * slide.step
    low, high = constant(0), constant(reads.length)
    if offset < 0:
        missing = at_least(0, less(constant(0), first))
        low = divided(plus(missing, constant(step - 1)), step)
    if offset + last + (reads.length - 1) * step >= slide.size:
        left = at_least(0, less(constant(slide.size - 1 + step), first))
        high = at_most(reads.length, divided(left, step))
    return Reach(reads=reads, first=first, low=low, high=high)


def by_phase(
    slide: Slide, at: ir.Value, type: ir.Type, body: Callable[[Reach], ir.Value]
) -> ir.Value:
    """What `body` makes of the reads of result pixel `at`, of which each phase has code of its
    own."""
    phases = slide.phases
    unit, phase = divided(at, phases), None
    if phases > 1:
        phase = arith.RemUIOp(at, constant(phases)).result

    def others(first: int) -> ir.Value:
        this = partial(_of, slide, unit, first, body)
        if first == phases - 1:
            return this()
        test = arith.CmpIOp(arith.CmpIPredicate.eq, phase, constant(first)).result
        return choice(test, type, this, lambda: others(first + 1))

    return others(0)


def _of(slide: Slide, unit: ir.Value, phase: int, body: Callable[[Reach], ir.Value]) -> ir.Value:
    return body(reach(slide, unit, phase))
