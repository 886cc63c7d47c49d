# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One thing done for many jobs: a row each, also for those that are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from conv_compiler.commands.arguments import Job
from conv_compiler.commands.report import progress, say
from conv_compiler.errors import ConvError, Mismatch

Row = dict[str, Any]
T = TypeVar("T", bound=Job)


def rows_of(jobs: Sequence[T], what: str, do: Callable[[T], Row | list[Row]]) -> list[Row]:
    """`do` for every job, which gives a row or several, with progress.

    A lone job's ConvError is raised; among several it becomes a row with `error`, and the others go
    on.
    """
    rows: list[Row] = []
    with progress(len(jobs), what) as step:
        for job in jobs:
            step(job.text)
            try:
                made = do(job)
                rows += made if isinstance(made, list) else [made]
                say_split(job.split_k, rows[-1]["split_k"])
            except ConvError as error:
                if len(jobs) == 1:
                    raise
                rows.append(refused_row(job, error))
    return rows


def say_split(asked: int | str, made: int) -> None:
    """Tell on stderr of a number of parts that is not the one asked for."""
    if isinstance(asked, int) and made < asked:
        say(
            f"split-K {asked}: only {made} parts hold products, for a part is whole tiles of "
            f"gemm_k; {made} are made"
        )


def refused_row(job: Job, error: ConvError) -> Row:
    """The row of a job that was refused."""
    return {
        "name": job.name,
        "problem": job.problem.to_json(),
        "target": job.target.name,
        "split_k": job.split_k,
        "error": str(error),
        "verdict": f"REFUSED: {error}",
    }


def require(rows: Sequence[Row]) -> None:
    """Raise Mismatch when a row is of a wrong kernel, or ConvError when one was refused."""
    for kind, bad, word in (
        (Mismatch, [row for row in rows if row.get("passed") is False], "wrong"),
        (ConvError, [row for row in rows if "error" in row], "refused"),
    ):
        if bad:
            first = bad[0]["verdict"].partition(": ")[2]
            raise kind(f"{len(bad)} of {len(rows)} {word}: {bad[0]['name']}: {first}")
