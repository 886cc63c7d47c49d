# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What verification found of a module of several problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conv_compiler.runtime.times import Times
    from conv_compiler.verification.verdict import Report


@dataclass(frozen=True, kw_only=True)
class LinkedReport:
    """What `verify_layer` or `verify_sizes` found.

    Args:
        reports: What was found of each problem, in order. The times of a layer's results are None.
        times: The times of calls that give all results of a layer; None where none were taken.
    """

    reports: tuple[Report, ...]
    times: Times | None = None

    @property
    def passed(self) -> bool:
        """Whether every problem's result is right and the same in all runs."""
        return all(report.passed for report in self.reports)

    def require(self) -> LinkedReport:
        """The report itself; raises Mismatch for the first result that is wrong."""
        for report in self.reports:
            report.require()
        return self
