"""AMD's chips for tests that compile for each of them, or run on each in the virtual GPU.

Chips with one instruction set run the same instructions. Of these the one with the most compute
units is tested always, and the others where slow tests run too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from conv_compiler.targets import TARGETS, VIRTUAL, Target

COMPILED = tuple(name for name, row in TARGETS.items() if row.backend == "rocm")
# gfx1250 is compiled for only: `Isa.not_executed` says why.
EXECUTED = VIRTUAL


def _stands_for_others(row: Target) -> bool:
    """Whether no chip of the same instruction set has more compute units."""
    alike = (other for other in TARGETS.values() if other.isa == row.isa)
    return row.isa is None or max(alike, key=lambda other: other.compute_units) is row


def marks_of(name: str) -> tuple[pytest.MarkDecorator, ...]:
    """Slow for a target that another chip stands for."""
    return () if _stands_for_others(TARGETS[name]) else (pytest.mark.slow,)


def each(names: Iterable[str]) -> list[Any]:
    """Parameters of a test: each target, slow where another chip stands for it."""
    return [pytest.param(name, id=name, marks=marks_of(name)) for name in names]
