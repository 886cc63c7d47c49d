# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Folders and files that nobody else may write: what lies in a cache is run as code.

A path is private where its owner is this process's user or root, and neither its group nor every
user may write it. An access list shows as rights of the group. Folders above are not looked at: who
may write those can move a folder away, but cannot make one that belongs to this user.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from conv_compiler.errors import CacheRefused

# Neither waits for the other end of a FIFO nor takes a terminal for its own.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_OTHER = "set CONV_COMPILER_CACHE to a folder of your own"


def writers(status: os.stat_result) -> str:
    """Who else may write what has this status; nothing where nobody may."""
    if status.st_uid not in (os.geteuid(), 0):
        return f"user {status.st_uid}"
    if status.st_mode & stat.S_IWOTH:
        return "every user"
    return f"group {status.st_gid}" if status.st_mode & stat.S_IWGRP else ""


def check_private_folder(folder: Path) -> bool:
    """Whether a folder is there and can be looked at; CacheRefused where others may write it."""
    try:
        status = os.stat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        raise CacheRefused(f"cache folder {folder}: not a folder; {_OTHER}")
    if who := writers(status):
        raise CacheRefused(
            f"cache folder {folder}: {who} may write it, and what lies in it runs as code; "
            f"empty it and take that right away (chmod go-w), or {_OTHER}"
        )
    return True


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone.

    Raises CacheRefused where others may write it, or the system's reason against it.
    """
    try:
        for one in (*reversed(folder.parents), folder):
            if not os.path.isdir(one):
                try:
                    os.mkdir(one, 0o700)
                except FileExistsError:  # made by another process meanwhile, or no folder
                    if not os.path.isdir(one):
                        raise
    except OSError as error:
        raise refused(folder, error) from error
    check_private_folder(folder)


def read_private(path: Path, most: int) -> tuple[bytes, os.stat_result]:
    """All of a file, and its status; CacheRefused where others may write it.

    Raises OSError where it cannot be read, is no plain file, or is larger than `most` bytes.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path}: not a plain file")
        if who := writers(status):
            raise CacheRefused(f"cache entry {path}: {who} may write it; it is made anew")
        if status.st_size > most:
            raise OSError(f"{path}: larger than {most} bytes")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most), status
    finally:
        os.close(descriptor)


def refused(folder: Path, error: OSError) -> CacheRefused:
    """What to raise where the system refuses something in a cache folder."""
    return CacheRefused(f"cache folder {folder}: {error.strerror or error}; {_OTHER}")
