# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fastest candidate of each of many problems, kept in the tuning store.

Candidates are found and compiled by whoever there is (`processes.py`, `cluster.py`). What has a
clock here is then timed by this process alone, one kernel at a time: no time is from another
machine, or from one that compiles meanwhile. Else the model's times, which are the same on all
machines, come with what was compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.compiler.compile import adopt, compilation_key
from conv_compiler.errors import ConvError
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage.cache import compiler_version, source_digest
from conv_compiler.storage.tuning_store import Tuned, TuningStore
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import Target
from conv_compiler.tuning.processes import Run
from conv_compiler.tuning.task import Build, Built, Plan, build, identity, plan
from conv_compiler.tuning.timer import Timer, measured, timer_of

# The compiler's own choice stays where no other is faster by more than this share: a measured time
# is not known better.
MARGIN = 0.02
# What shows how far it is: for a number of steps, a function to call with a word on each.
Progress = Callable[[int], AbstractContextManager[Callable[[str], None]]]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A problem on a target, the splits to try beside the model's, and where times are from."""

    problem: ConvProblem
    target: Target
    splits: tuple[int | str, ...]
    timer: Timer

    @property
    def key(self) -> str:
        """The key of a compilation of it that leaves the choice open."""
        problem = self.problem.for_kind(self.target.has_fnuz, self.target.has_xf32)
        return compilation_key(problem, self.target, None, "auto")

    @property
    def is_for_this_host(self) -> bool:
        """Whether its code is for this host's kind alone, so that no other machine compiles it."""
        return self.target.chip == "host"


def question(
    problem: ConvProblem, target: Target, splits: Sequence[int | str], device: str | None
) -> Question:
    """What to tune. Raises DeviceUnavailable where there is neither a clock nor a model."""
    timer = timer_of(target, device)
    return Question(problem=problem, target=target, splits=tuple(splits), timer=timer)


def stored(asked: Question, store: TuningStore) -> Tuned | None:
    """What the store has of a question; None too where it was modelled, and could be measured."""
    entry = store.get(asked.key)
    return entry if entry and (entry.measured or not asked.timer.measures) else None


@dataclass(kw_only=True)
class _Work:
    """The candidates of a question, and what became of each that is done."""

    asked: Question
    strategies: tuple[dict[str, Any], ...] = ()
    built: dict[int, Built] = field(default_factory=dict)
    refused: dict[int, ConvError] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        return len(self.built) + len(self.refused) == len(self.strategies)


Answer = tuple[int, Tuned | ConvError]


def tune(
    asked: Sequence[Question], run: Run, store: TuningStore, progress: Progress
) -> Iterator[Answer]:
    """(number, entry or refusal) of each question, as soon as it is in the store.

    Each candidate, and each problem that is timed, is a step of `progress`. What is done when this
    is interrupted stays in the store, and compiled candidates in the cache. Raises
    WorkersUnavailable and TuningStoreRefused.
    """
    work = [_Work(asked=one) for one in asked]
    yield from _plan(work, run, progress)
    builds = [(number, at) for number, one in enumerate(work) for at in range(len(one.strategies))]
    tasks = [_build(work[number], at) for number, at in builds]
    to_time = [
        number for number, one in enumerate(work) if one.strategies and one.asked.timer.measures
    ]
    with progress(len(builds) + len(to_time)) as step:
        for which, outcome in run(build, tasks):
            number, at = builds[which]
            one = work[number]
            step(_name(one))
            if isinstance(outcome, ConvError):
                one.refused[at] = outcome
            else:
                one.built[at] = outcome
            if one.is_done and number not in to_time:
                yield number, _keep(one, store)
                one.built.clear()
        for number in to_time:  # when nothing else computes
            one = work[number]
            step(f"time {_name(one)}")
            yield number, _keep(one, store)


def _plan(work: Sequence[_Work], run: Run, progress: Progress) -> Iterator[Answer]:
    """Find the candidates of all, and answer those that have none."""
    plans = [
        Plan(
            problem=one.asked.problem.to_json(),
            target=one.asked.target.name,
            splits=one.asked.splits,
            made_by=identity(),
        )
        for one in work
    ]
    with progress(len(plans)) as step:
        for number, outcome in run(plan, plans):
            step(f"plan {_name(work[number])}")
            if isinstance(outcome, ConvError):
                yield number, outcome
            else:
                work[number].strategies = outcome


def _name(one: _Work) -> str:
    return f"{one.asked.problem.name} {one.asked.target.name}"


def _build(one: _Work, at: int) -> Build:
    return Build(
        problem=one.asked.problem.to_json(),
        target=one.asked.target.name,
        strategy=one.strategies[at],
        modelled=not one.asked.timer.measures,
        made_by=identity(),
    )


def _keep(one: _Work, store: TuningStore) -> Tuned | ConvError:
    """The entry of a question whose candidates are compiled, once it is in the store."""
    asked, order = one.asked, sorted(one.built)
    if not order:
        return one.refused[min(one.refused)]
    try:
        if asked.timer.measures:
            artifacts = [_adopted(one, at) for at in order]
            times = measured(asked.problem, artifacts, asked.timer.device)
            margin = MARGIN
        else:
            modelled = (one.built[at].seconds for at in order)
            times = tuple(time for time in modelled if time is not None)
            margin = 0.0
    except ConvError as error:
        return error
    seconds = dict(zip(order, times, strict=True))
    best = fastest(seconds, margin)
    if not asked.timer.measures:
        _adopted(one, best)
    entry = Tuned(
        key=asked.key,
        problem=asked.problem.to_json(),
        target=asked.target.name,
        compiler=compiler_version(),
        source=source_digest(),
        strategy=one.strategies[best],
        text=Strategy.from_json(one.strategies[best]).text,
        seconds=seconds[best],
        first_seconds=seconds.get(0),
        measured=asked.timer.measures,
        device=asked.timer.text,
        tried=len(order),
    )
    store.put([entry])
    return entry


def fastest(seconds: dict[int, float], margin: float) -> int:
    """The number of the shortest time; 0 where it is there and no other is shorter by `margin`."""
    best = min(seconds, key=lambda number: (seconds[number], number))
    if 0 in seconds and seconds[best] >= seconds[0] * (1 - margin):
        return 0
    return best


def _adopted(one: _Work, at: int) -> Artifact:
    built = one.built[at]
    return adopt(one.asked.problem, built.record, built.module)
