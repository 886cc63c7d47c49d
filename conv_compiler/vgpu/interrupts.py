# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ctrl-C while another thread runs a launch: no KeyboardInterrupt in the midst of what is done.

The native library sees the signal by itself and stops the launch. An exception in the main thread
would lose what the other thread has just told, or leave a queue locked.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import Any


class Interrupts:
    """Holds Ctrl-C back inside of `with`; outside it does what it did before.

    `close` gives the signal back. In another thread than the main one Python raises nothing, so
    nothing is held.
    """

    def __init__(self) -> None:
        self._held = self._came = False
        self._previous: Any = signal.getsignal(signal.SIGINT)
        self._ours = threading.current_thread() is threading.main_thread() and callable(
            self._previous
        )
        if self._ours:
            signal.signal(signal.SIGINT, self._handle)

    def __enter__(self) -> None:
        self._came = False
        self._held = True

    def __exit__(self, *_: object) -> None:
        self._held = False

    def send_again(self) -> None:
        """Send a held signal once more: the launch counts none that came before it went on."""
        if self._came:
            signal.raise_signal(signal.SIGINT)

    def close(self) -> None:
        """Give the signal back."""
        if self._ours:
            signal.signal(signal.SIGINT, self._previous)
            self._ours = False

    def _handle(self, number: int, frame: Any) -> None:
        if not self._held:
            self._previous(number, frame)
            return
        self._came = True
        with contextlib.suppress(KeyboardInterrupt):
            self._previous(number, frame)
