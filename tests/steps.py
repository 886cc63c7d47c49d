# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much a call computes, in lines of Python: the same on a slow machine as on a fast one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

Call = Callable[[], object]


def lines_of(call: Call) -> int:
    """The lines of Python that a call runs, those of its callees and of each round of a loop."""
    lines = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        call()
    finally:
        sys.settrace(before)
    return lines
