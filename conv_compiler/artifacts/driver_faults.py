# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX that a driver's compiler is known to turn into wrong machine code.

A kernel with such a passage is not handed out: its numbers would be wrong on some cards. Each row
was seen on a card, and `docs/upstream/` has its smallest case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DriverFault:
    """One fault: the passage in a kernel's PTX, what it is, and where it was seen."""

    passage: re.Pattern[str]
    what: str
    seen: str


FAULTS = (
    DriverFault(
        # A maximum or minimum of 16 bits and, further down, a comparison of its result.
        passage=re.compile(
            r"\b(?:max|min)\.[us]16\s+(%rs\d+),[^;]*;.*?\bsetp\.\w+\.[bsu]16\s+%p\d+, \1,",
            re.DOTALL,
        ),
        what="a 16-bit maximum or minimum whose result is compared",
        seen="ptxas of CUDA 13.0 for sm_90, docs/upstream/ptxas-vimnmx-predicate.md",
    ),
)


def driver_fault(ptx: str) -> str:
    """What in a kernel's PTX a driver compiles wrongly, and which; empty where nothing is known."""
    return next((f"{row.what} ({row.seen})" for row in FAULTS if row.passage.search(ptx)), "")
