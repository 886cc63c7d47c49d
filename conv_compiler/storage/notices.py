# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user should know and that stops nothing: warnings of Python's, each said once.

Notes and progress of the command line are less than that: `quiet` leaves them out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

_QUIET = ContextVar("quiet", default=False)


class ConvWarning(UserWarning):
    """Something works, but not as well as it would; the text says what would mend it."""


@lru_cache
def warn_once(text: str) -> None:
    """Warn, the first time that this is said in a process."""
    warnings.warn(text, ConvWarning, stacklevel=3)


@contextmanager
def quiet(wanted: bool = True) -> Iterator[None]:
    """Leave out notes and progress; warnings and errors stay."""
    before = _QUIET.set(wanted)
    try:
        yield
    finally:
        _QUIET.reset(before)


def is_quiet() -> bool:
    """Whether notes and progress are to be left out."""
    return _QUIET.get()
