# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One problem in a process of its own: a card that hangs, or a driver that ends the process, costs
one row."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

# Compiling, and the float64 reference on the host, take most of what a sound card takes: seconds.
SECONDS = 300.0


def apart(
    function: Callable[..., dict[str, Any]], *arguments: Any, seconds: float = SECONDS
) -> dict[str, Any]:
    """What a function gives in a new process, or a row with the `error` that ended that."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(theirs, function, arguments), daemon=False)
    process.start()
    theirs.close()
    try:
        if not ours.poll(seconds):
            return {"error": f"hung: no answer in {seconds:g} s"}
        row: dict[str, Any] = ours.recv()
        return row
    except EOFError:
        process.join()
        return {"error": f"crashed: {_ended(process.exitcode)}"}
    finally:
        process.kill()
        process.join()
        ours.close()


def _send(
    channel: Connection, function: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]
) -> None:
    os.setpgrp()  # Ctrl-C is for the process that asked, which ends this one
    channel.send(function(*arguments))
    channel.close()


def _ended(code: int | None) -> str:
    """How a process ended, by its exit code; a signal's is negative."""
    if code is not None and code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}"
