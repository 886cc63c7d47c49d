# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Dask cluster that compiles candidates: one that is there, or one of this machine.

Items are sent as plain values, and results come back as bytes; nothing is shared but the network.
Work on a worker that dies is done again by another. Dask is imported when a cluster is asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from conv_compiler.errors import CompileFailed, ConvError, WorkersUnavailable
from conv_compiler.tuning import own_group
from conv_compiler.tuning.processes import Run, attempt

T = TypeVar("T")
R = TypeVar("R")
# A batch system may let workers wait; a scheduler answers at once.
WORKER_SECONDS = 3600
CONNECT_SECONDS = 20


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise WorkersUnavailable(
            f"cluster: Dask distributed is not installed ({error}); "
            "pip install 'conv-compiler[cluster]'"
        ) from error
    return distributed


@contextmanager
def cluster(address: str) -> Iterator[Run]:
    """The workers of a scheduler by its address, such as `tcp://10.0.0.1:8786`.

    Raises WorkersUnavailable where none answers.
    """
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise WorkersUnavailable(
            f"cluster {address}: no scheduler answers there ({error or type(error).__name__}); "
            "start one (dask scheduler) and give its tcp://host:port"
        ) from error
    with client:
        yield _run_by(distributed, client, address)


@contextmanager
def local_cluster(workers: int) -> Iterator[Run]:
    """A cluster of so many worker processes on this machine, which goes when it is left."""
    distributed = _distributed()
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",  # any port: one may be in use
            preload=own_group.__name__,
            silence_logs=logging.ERROR,
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield _run_by(distributed, client, f"of {workers} local workers")


def _run_by(distributed: Any, client: Any, name: str) -> Run:
    def run(function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[int, R | ConvError]]:
        if not items:
            return
        try:
            client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError as error:
            raise WorkersUnavailable(
                f"cluster {name}: no worker came in {WORKER_SECONDS // 60} minutes; "
                "start some (dask worker)"
            ) from error
        # Not pure: a name of its own for each item, so that nothing of an earlier run is taken.
        futures = client.map(attempt, [function] * len(items), items, pure=False, batch_size=64)
        numbers = {future.key: number for number, future in enumerate(futures)}
        for future in distributed.as_completed(futures, loop=client.loop):
            number = numbers.pop(future.key)
            try:
                yield number, future.result()
            except distributed.scheduler.KilledWorker as error:
                yield number, CompileFailed(f"worker: died each time that it tried ({error})")
            except ImportError as error:
                raise WorkersUnavailable(
                    f"cluster {name}: a worker lacks what it needs ({error}); install the same "
                    "conv-compiler on all machines"
                ) from error
            except distributed.CancelledError as error:
                raise WorkersUnavailable(
                    f"cluster {name}: the scheduler is gone; start it and go on by the same "
                    "command: what is done is kept"
                ) from error
            future.release()

    return run
