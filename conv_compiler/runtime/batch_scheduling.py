# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a thread that calls a kernel on the CPU waits for the threads that compute it.

IREE's `local-task` device has a worker a core. The thread that invokes it wakes now and then while
it waits, and takes a core from a worker: on few cores all the others wait for that one. As a batch
thread (`man 7 sched`, SCHED_BATCH) it does not interrupt them when it wakes. To become one and an
ordinary one again takes 15 us of a call, so a kernel whose last call was short does without.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

# Set to 0, calls leave the scheduling policy of their thread alone.
VARIABLE = "CONV_COMPILER_BATCH_WAIT"
# A call that lasts less leaves the thread alone.
LONG_SECONDS = 5e-4


def may_wait_as_batch() -> bool:
    """Whether this system has batch threads, lets this process make them, and it is wanted."""
    if os.environ.get(VARIABLE) == "0" or not hasattr(os, "SCHED_BATCH"):
        return False
    try:
        with batch_wait():
            return True
    except OSError:
        return False


@contextmanager
def batch_wait() -> Iterator[None]:
    """The calling thread as a batch thread, and an ordinary one again behind it; a thread of any
    other policy stays what it is."""
    ordinary = os.sched_getscheduler(0) == os.SCHED_OTHER
    if ordinary:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        if ordinary:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
