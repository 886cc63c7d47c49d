# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--together`: problems of one convolution as the results of one module."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

from conv_compiler.commands.arguments import Job
from conv_compiler.commands.options import wanted
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.problem.layer import ALIKE, Layer
from conv_compiler.strategies.strategy import StrategyRequest


@dataclass(frozen=True, kw_only=True)
class LayerJob(Job):
    """One module to build: a layer, whose first problem is the job's, a target, a split."""

    layer: Layer

    @property
    def name(self) -> str:
        """What the user calls it, else the first problem's name with all results."""
        return self.label or f"{self.problem.name}_{'+'.join(self.layer.functions)}"


def add_together(parser: argparse.ArgumentParser) -> None:
    """`--together`."""
    parser.add_argument(
        "--together",
        action="store_true",
        help="all results of one convolution in one module",
    )


def layer_jobs(args: argparse.Namespace, jobs: Iterable[Job]) -> tuple[LayerJob, ...]:
    """Jobs of one convolution, target and split together, in the order of their first.

    Raises UnsupportedStrategy where a strategy is named: each result has one of its own.
    """
    if wanted(args) != StrategyRequest():
        raise UnsupportedStrategy(
            "--together: each result has a strategy of its own; leave strategy, tile and schedule "
            "out"
        )
    found: dict[object, list[Job]] = {}
    for job in jobs:
        convolution = tuple(getattr(job.problem, name) for name in ALIKE)
        key = (convolution, job.target.name, job.split_k, job.label)
        found.setdefault(key, []).append(job)
    return tuple(
        LayerJob(
            problem=several[0].problem,
            target=several[0].target,
            split_k=several[0].split_k,
            label=several[0].label,
            layer=Layer(problems=tuple(job.problem for job in several)),
        )
        for several in found.values()
    )
