# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler tune`: the fastest candidate of many problems, kept for `compile` to take."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from conv_compiler.commands.arguments import Job, add_problems, jobs
from conv_compiler.commands.batch import Row, refused_row, require
from conv_compiler.commands.options import add_device, add_output, add_target, output
from conv_compiler.commands.report import left, progress, right, say, show
from conv_compiler.commands.speed import time_text
from conv_compiler.errors import ConvError
from conv_compiler.frontends.flags import size

if TYPE_CHECKING:
    from conv_compiler.storage.tuning_store import Tuned
    from conv_compiler.tuning.processes import Run
    from conv_compiler.tuning.tune import Question

COLUMNS = (
    left("problem", "name", shape="cut"),
    left("target", "target"),
    left("strategy", "strategy", rank=1),
    right("tried", "tried", rank=2),
    right("time", "", time_text),
    right("gain", "gain", lambda gain: f"{gain:.2f}x"),
    left("result", "verdict", shape="wrap"),
)
EXAMPLE = "tune layers.txt --target gfx942,gfx1100"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_problems(parser)
    add_target(parser)
    add_device(parser)
    parser.add_argument("--again", action="store_true", help="tune what is in the store anew")
    parser.add_argument(
        "--jobs", type=size, metavar="N", help="processes of this machine that compile (its cores)"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--cluster",
        metavar="URL",
        help="compile by the workers of a Dask scheduler: tcp://host:port",
    )
    where.add_argument(
        "--local", type=size, metavar="N", help="compile by N Dask workers of this machine"
    )
    parser.add_argument(
        "--fit-cpu",
        action="store_true",
        help="no problem: time kernels on this machine, and fit to them how the compiler chooses",
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Tune every problem for every target, and print a line for each."""
    if args.fit_cpu:
        from conv_compiler.commands.fit_cpu import run as fit_cpu

        return fit_cpu(args)
    from conv_compiler.storage.tuning_store import TuningStore
    from conv_compiler.tuning.tune import question, stored, tune

    store = TuningStore.default()
    wanted = _together(jobs(args))
    rows: list[Row] = [{} for _ in wanted]
    asked: dict[int, Question] = {}
    for number, (job, splits) in enumerate(wanted):
        try:
            one = question(job.problem, job.target, splits, args.device)
        except ConvError as error:
            if len(wanted) == 1:
                raise
            rows[number] = refused_row(job, error)
            continue
        entry = None if args.again else stored(one, store)
        if entry:
            rows[number] = _row(job, entry, "kept")
        else:
            asked[number] = one
    for here in (False, True):
        numbers = [number for number, one in asked.items() if one.is_for_this_host == here]
        if not numbers:
            continue
        if here and args.cluster:
            say("code for this host alone is compiled here, not by the cluster")
        questions = [asked[number] for number in numbers]
        with _workers(args, here) as workers:
            for which, answer in tune(questions, workers, store, partial(progress, what="tune")):
                job, _ = wanted[numbers[which]]
                if isinstance(answer, ConvError):
                    if len(wanted) == 1:
                        raise answer
                    rows[numbers[which]] = refused_row(job, answer)
                else:
                    rows[numbers[which]] = _row(job, answer, "tuned")
    how = output(args)
    show(rows, COLUMNS, how)
    if how.is_table:
        print(f"store  {store.path}")
    require(rows)
    return 0


@contextmanager
def _workers(args: argparse.Namespace, here: bool) -> Iterator[Run]:
    """Who compiles: what the command line says, but this machine for code of this host alone."""
    from conv_compiler.targets.host import host_cores
    from conv_compiler.tuning.processes import processes

    if args.local:
        from conv_compiler.tuning.cluster import local_cluster

        with local_cluster(args.local) as workers:
            yield workers
    elif args.cluster and not here:
        from conv_compiler.tuning.cluster import cluster

        with cluster(args.cluster) as workers:
            yield workers
    else:
        with processes(args.jobs or host_cores()) as workers:
            yield workers


def _together(found: Sequence[Job]) -> list[tuple[Job, tuple[int | str, ...]]]:
    """Each problem on each target once, with all its splits."""
    together: dict[tuple[Any, str], tuple[Job, dict[int | str, None]]] = {}
    for job in found:
        _, splits = together.setdefault((job.problem, job.target.name), (job, {}))
        splits[job.split_k] = None
    return [(job, tuple(splits)) for job, splits in together.values()]


def _row(job: Job, entry: Tuned, verdict: str) -> Row:
    """A row for tables and JSON. A modelled time is under `modelled_seconds`, as elsewhere."""
    key = "seconds" if entry.measured else "modelled_seconds"
    return {
        "name": job.name,
        "problem": entry.problem,
        "target": entry.target,
        "strategy": entry.text,
        "split_k": entry.strategy["split_k"],
        "tried": entry.tried,
        "time": "measured" if entry.measured else "modelled",
        key: entry.seconds,
        "device": entry.device,
        "gain": entry.first_seconds / entry.seconds if entry.first_seconds else None,
        "verdict": verdict,
        "key": entry.key,
    }
