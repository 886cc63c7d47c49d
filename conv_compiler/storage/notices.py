# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user should know and that stops nothing: warnings of Python's, each said once."""

from __future__ import annotations

import warnings
from functools import lru_cache


class ConvWarning(UserWarning):
    """Something works, but not as well as it would; the text says what would mend it."""


@lru_cache
def warn_once(text: str) -> None:
    """Warn, the first time that this is said in a process."""
    warnings.warn(text, ConvWarning, stacklevel=3)
