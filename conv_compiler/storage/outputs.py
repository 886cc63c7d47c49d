# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where results may be written: in place of results of their kind, never of anything else."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from conv_compiler.errors import InvalidOutput


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of result: what it is called, and whether a file holds one."""

    name: str
    is_one: Callable[[Path], bool]


def check_output(path: Path, kind: Kind, inputs: Iterable[Path] = ()) -> None:
    """Refuse, by InvalidOutput, a path at which a result must not or cannot be written.

    It may hold nothing, or a result of the same kind that is none of the inputs, in a folder that
    there is.
    """
    # os.path's tests take a name that no file can have for one that is not there; Path's raise.
    if not os.path.isdir(path.parent):
        why = "not a folder" if os.path.exists(path.parent) else "No such file or directory"
        raise InvalidOutput(f"folder {path.parent}: {why}; make it, or name another for {path}")
    if not os.access(path.parent, os.W_OK):
        raise InvalidOutput(f"folder {path.parent}: may not be written; name another for {path}")
    if not os.path.lexists(path):
        return
    if os.path.isdir(path):
        raise InvalidOutput(f"file {path}: is a folder; name a file in it")
    for other in inputs:
        if _same(path, other):
            raise InvalidOutput(f"file {path}: is read by this command; write to another")
    if not os.path.isfile(path) or not _holds(path, kind):
        raise InvalidOutput(
            f"file {path}: there already, and not {kind.name}; remove it or write to another"
        )


def write(path: Path, kind: Kind, fill: Callable[[Path], object]) -> None:
    """Have `fill` write a file and put it at `path`, whole or not at all.

    Where the path is a link, what it leads to is replaced. Raises InvalidOutput.
    """
    check_output(path, kind)
    try:
        final = Path(os.path.realpath(path))
        with tempfile.TemporaryDirectory(dir=final.parent) as staging:
            whole = Path(staging) / "whole"
            fill(whole)
            whole.replace(final)
    except (OSError, ValueError) as error:  # no room, or a name that no file can have
        reason = getattr(error, "strerror", None) or error
        raise InvalidOutput(f"file {path}: {reason}; write to another place") from error


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _holds(path: Path, kind: Kind) -> bool:
    try:
        return kind.is_one(path)
    except OSError:
        return False
