# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that Ctrl-C at a terminal does not reach: it is for the one that asked.

A terminal signals a whole process group. A worker that got the signal, too, would print its own
end, and the compiler under it would leave half a file. Who asked ends its workers.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from typing import Any


def leave_group() -> None:
    """Give this process a group of its own, and end it when its parent is gone."""
    os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def dask_setup(_worker: Any) -> None:
    """What a worker of Dask calls at its start; it ends with its parent by itself."""
    os.setpgrp()
