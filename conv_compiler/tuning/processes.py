# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who does the parts of a tuning: this process, others of this machine, or a cluster."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from conv_compiler.errors import ConvError, WorkersUnavailable
from conv_compiler.tuning.own_group import leave_group

T = TypeVar("T")
R = TypeVar("R")


class Run(Protocol):
    """Does one thing for many items, in any order: (the item's number, what came of it).

    A refusal is given, not raised. WorkersUnavailable is raised where nobody is left to do it.
    """

    def __call__(
        self, function: Callable[[T], R], items: Sequence[T]
    ) -> Iterator[tuple[int, R | ConvError]]:
        """Yield each item's result as soon as it is there, each once."""


def attempt(function: Callable[[T], R], item: T) -> R | ConvError:
    """What a function gives for an item, or its refusal."""
    try:
        return function(item)
    except WorkersUnavailable:
        raise
    except ConvError as error:
        return error


def here(function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[int, R | ConvError]]:
    """Do all in this process, one after another."""
    for number, item in enumerate(items):
        yield number, attempt(function, item)


@contextmanager
def processes(jobs: int) -> Iterator[Run]:
    """So many processes of this machine; this one alone for one job."""
    if jobs == 1:
        yield here
        return
    # By spawn: a fork would copy the threads' locks of the runtime as they stand.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=leave_group)

    def run(function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[int, R | ConvError]]:
        numbers: dict[Any, int] = {
            pool.submit(attempt, function, item): number for number, item in enumerate(items)
        }
        try:
            for future in as_completed(numbers):
                yield numbers[future], future.result()
        except BrokenProcessPool as error:
            raise WorkersUnavailable(
                f"jobs {jobs}: a process was killed, for want of memory perhaps; use fewer --jobs "
                "and go on by the same command: what is done is kept"
            ) from error

    try:
        yield run
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
