# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of a tuning that any process can do: find the candidates, and compile one.

What goes in and comes out are plain values and bytes, so that they can travel to other machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import WorkersUnavailable
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage.cache import compiler_version, source_digest
from conv_compiler.strategies.strategy import Strategy, StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.tuning.sweep import admissible


def identity() -> tuple[str, str]:
    """(compiler, sources): processes that have the same make the same kernels."""
    return compiler_version(), source_digest()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which candidates has a problem on a target, with these splits?

    `made_by` is the `identity` of who asks.
    """

    problem: dict[str, Any]
    target: str
    splits: tuple[int | str, ...]
    made_by: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Build:
    """One candidate to compile, and to model where `modelled`; `strategy` is its `to_json`."""

    problem: dict[str, Any]
    target: str
    strategy: dict[str, Any]
    modelled: bool
    made_by: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Built:
    """A compiled candidate: its record, the bytes of its module, its modelled time."""

    record: dict[str, Any]
    module: bytes
    seconds: float | None


def plan(task: Plan) -> tuple[dict[str, Any], ...]:
    """The candidates as plain values, first the one that `compile` would take.

    Raises what `choose` raises, and WorkersUnavailable in a process with other sources.
    """
    _check(task.made_by)
    problem, target = ConvProblem.from_json(task.problem), find_target(task.target)
    splits = ("auto", *(split for split in task.splits if split != "auto"))
    found = admissible(problem, target, StrategyRequest(), splits)
    return tuple(strategy.to_json() for strategy in found)


def build(task: Build) -> Built:
    """Compile a candidate. Raises what `compile` and the model raise, and WorkersUnavailable."""
    from conv_compiler.model.module import model_module

    _check(task.made_by)
    problem, strategy = ConvProblem.from_json(task.problem), Strategy.from_json(task.strategy)
    artifact = compile(problem, task.target, strategy)
    seconds = model_module(artifact.vmfb, problem=problem).seconds if task.modelled else None
    return Built(record=artifact.to_json(), module=artifact.module, seconds=seconds)


def _check(made_by: tuple[str, str]) -> None:
    if identity() != made_by:
        compiler, source = identity()
        raise WorkersUnavailable(
            f"worker: has the compiler {compiler} and the sources {source[:12]}, who asks has "
            f"{made_by[0]} and {made_by[1][:12]}; install the same conv-compiler on all machines"
        )
