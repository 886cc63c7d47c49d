# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A problem measured on all sides: the results compared first, then times in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from conv_compiler.benchmark.sides import PeerWrong
from conv_compiler.benchmark.turns import Clock, Plan, Timing, in_turns
from conv_compiler.errors import ConvError
from conv_compiler.verification.comparison import compare
from conv_compiler.verification.reference import exact_sums, finished
from conv_compiler.verification.tolerance import (
    after_elementwise,
    after_operand_ops,
    tolerance,
)

if TYPE_CHECKING:
    from conv_compiler.benchmark.sides import Array, Case, Side
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets.short_sums import ShortSums

OURS = "ours"
Make = Callable[[], "Side"]


@dataclass(frozen=True, kw_only=True)
class Found:
    """One side of a problem: without a `timing` its `verdict` says why.

    `detail` names the kernel, and `of` says whether the times are of whole calls or of kernels
    alone.
    """

    detail: str = ""
    of: str = ""
    verdict: str = ""
    timing: Timing | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether a result was wrong."""
        return self.verdict.startswith("WRONG")


@dataclass(frozen=True, kw_only=True)
class Result:
    """A problem on all sides; `sides` begins with ours."""

    name: str
    problem: ConvProblem
    target: str
    device: str
    sides: Mapping[str, Found]

    def ratio(self, peer: str) -> float | None:
        """How many times as fast ours is, by medians; None where a side has no time."""
        ours, theirs = self.sides[OURS].timing, self.sides[peer].timing
        return theirs.seconds / ours.seconds if ours and theirs and ours.seconds else None

    @property
    def peers(self) -> tuple[str, ...]:
        """The sides but ours."""
        return tuple(name for name in self.sides if name != OURS)


def check_of(case: Case, data: str, short: ShortSums | None = None) -> Callable[[Array], str]:
    """A function that says what is wrong with a result, or how right it is.

    The reference is computed once, in float64, for all sides, and so is the tolerance: it is that
    of an instruction of ours that keeps few bits of a sum (`short`).
    """
    problem, (first, second, *extra) = case.problem, case.operands
    sums = exact_sums(problem, first, second)
    allowed = after_operand_ops(problem, tolerance(problem, data, short), first, second)
    allowed = after_elementwise(problem, allowed, sums, extra[0] if extra else None)
    want = finished(problem, sums, *extra)

    def verdict(got: Array) -> str:
        found = compare(problem, got, want, allowed)
        if found.wrong:
            return f"WRONG: {found.wrong} of {found.elements} elements, worst {found.worst}"
        return "exact" if allowed.exact else "right"

    return verdict


def measure(
    makers: Mapping[str, Make],
    check: Callable[[Array], str],
    plan: Plan,
    clock: Clock = time.perf_counter,
) -> dict[str, Found]:
    """Make every side, compare its result, and time those that are right in turns.

    A side that is refused, breaks down, is wrong or would take too long has no time. An error of
    ours is raised.
    """
    found: dict[str, Found] = {}
    timed: dict[str, Side] = {}
    for name, make in makers.items():
        try:
            side = make()
            got = side.result()
            verdict = check(got) if got is not None else "by its own check"
            found[name] = Found(detail=side.detail, of=side.of, verdict=verdict)
        except PeerWrong as error:
            found[name] = Found(verdict=f"WRONG: {error}")
        except (ConvError, RuntimeError) as error:  # PyTorch has no kernel, say
            if name == OURS:
                raise
            found[name] = Found(verdict=f"REFUSED: {_line(error)}")
        if found[name].verdict.startswith(("WRONG", "REFUSED")):
            continue
        seconds = side.first_seconds(clock) * plan.calls_in_all
        if side.most_rounds is None and seconds > plan.most_seconds:
            why = f"TOO SLOW: {seconds:.0f} s for all its calls"
            found[name] = replace(found[name], verdict=why)
            continue
        timed[name] = side
    for name, timing in in_turns(timed, plan, clock).items():
        found[name] = replace(found[name], timing=timing)
    return found


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@dataclass(frozen=True, kw_only=True)
class Mean:
    """The ratios of a peer's times to ours, over problems."""

    peer: str
    problems: int
    geometric_mean: float
    least: float
    least_name: str

    @property
    def text(self) -> str:
        """One line under a table."""
        problems = f"{self.problems} problem{'s' if self.problems != 1 else ''}"
        return (
            f"{self.peer} / ours: {problems}, geometric mean {self.geometric_mean:.2f}, "
            f"least {self.least:.2f} ({self.least_name})"
        )


def means(results: Sequence[Result]) -> list[Mean]:
    """One a peer that has a ratio in some result."""
    rows = []
    for peer in dict.fromkeys(peer for one in results for peer in one.peers):
        pairs = [(one.ratio(peer), one.name) for one in results if peer in one.sides]
        ratios = [(ratio, name) for ratio, name in pairs if ratio]
        if ratios:
            least, name = min(ratios)
            mean = statistics.geometric_mean([ratio for ratio, _ in ratios])
            rows.append(
                Mean(
                    peer=peer,
                    problems=len(ratios),
                    geometric_mean=mean,
                    least=least,
                    least_name=name,
                )
            )
    return rows


def side_row(result: Result, name: str) -> dict[str, Any]:
    """Plain values of one side of a result, for tables and JSON."""
    found, problem = result.sides[name], result.problem
    timing = found.timing
    ratio = 1.0 if name == OURS and timing else result.ratio(name)
    speeds = {
        "seconds": timing and timing.seconds,
        "least_seconds": timing and timing.least,
        "most_seconds": timing and timing.most,
        "spread": timing and timing.spread,
        "times": timing and timing.count,
        "tflops": timing and problem.flops / timing.seconds / 1e12,
        "gb_per_s": timing and problem.bytes / timing.seconds / 1e9,
    }
    return {
        "name": result.name,
        "side": name,
        "detail": found.detail,
        "times_of": found.of,
        "verdict": found.verdict,
        "passed": not found.is_wrong,
        **speeds,
        "ratio": ratio,
        "target": result.target,
        "device": result.device,
        "problem": problem.to_json(),
    }
