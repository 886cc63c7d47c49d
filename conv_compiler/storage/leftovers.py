# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Folders for work in progress, and the removal of those whose process was killed.

A process holds a lock (flock) on each such folder as long as it lives, and the system gives it back
however the process ends. So a folder or a lock file that nobody holds is left over.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

# Of folders below the system's temporary one, which is everybody's.
WORK = "conv_compiler_work-"
# Where the file system has no locks, what is older than any compilation takes is left over.
_OLD_SECONDS = 24 * 3600
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def scratch(folder: Path, prefix: str = "tmp") -> Iterator[Path]:
    """A new folder in `folder`, which goes when it is left, but not by a forked child."""
    path, held = _held_folder(folder, prefix)
    process = os.getpid()
    try:
        yield path
    finally:
        if os.getpid() == process:
            shutil.rmtree(path, ignore_errors=True)
        os.close(held)


def _held_folder(folder: Path, prefix: str) -> tuple[Path, int]:
    """A new folder, and the descriptor that holds its lock."""
    while True:  # another process may take a folder for left over before its lock is held
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))
        try:
            held = os.open(path, _FLAGS)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken = not path.exists()
        except BlockingIOError:
            taken = True
        except OSError:  # a file system without locks
            taken = False
        if not taken:
            return path, held
        os.close(held)


def work_folder() -> Path:
    """The system's temporary folder, without what killed compilations of this user left there.

    Raises OSError where there is none.
    """
    folder = Path(tempfile.gettempdir())
    for path in _listed(folder):
        if path.name.startswith(WORK):
            remove_unheld(path)
    return folder


@lru_cache(maxsize=1)
def process_folder() -> Path:
    """A folder that goes when this process ends. Raises OSError where there can be none."""
    stack = ExitStack()
    folder = stack.enter_context(scratch(work_folder(), WORK))
    atexit.register(stack.close)
    return folder


def sweep(folder: Path) -> None:
    """Remove what killed processes left in a cache folder: `tmp*`, `*.lock`, records alone."""
    for path in _listed(folder):
        if path.name.startswith("tmp") or path.suffix == ".lock":
            remove_unheld(path)
        elif path.suffix == ".json" and not os.path.lexists(path.with_suffix(".vmfb")):
            with suppress(OSError):
                remove(path)


def remove_unheld(path: Path) -> None:
    """Remove a folder or file of this user's unless a process holds a lock on it."""
    try:
        held = os.open(path, _FLAGS)
    except OSError:
        return
    try:
        status = os.fstat(held)
        if status.st_uid != os.geteuid():
            return
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        except OSError:
            if time.time() - status.st_mtime < _OLD_SECONDS:
                return
        with suppress(OSError):
            remove(path)
    finally:
        os.close(held)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        path.unlink()


def _listed(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []
