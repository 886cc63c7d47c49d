# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the checks of a virtual device found, read from the message of a failed launch."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

_FINDING = re.compile(
    r"(?:; (?P<kind>[\w ]+): |: )(?P<detail>[^;]+?) at 0x(?P<address>[0-9a-f]+) `(?P<text>[^`]*)`, "
    r"workgroup \((?P<x>\d+), (?P<y>\d+), (?P<z>\d+)\), wave (?P<wave>\d+)(?:, lane (?P<lane>\d+))?"
)
_OTHER = re.compile(r" at 0x([0-9a-f]+) `")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One fault of a kernel: its kind (empty for one that stopped the launch), where, and what.

    `address` is the instruction's in the code object, `text` its disassembly. `lane` is None where
    a whole wave is at fault.
    """

    kind: str
    detail: str
    address: int
    text: str
    workgroup: tuple[int, int, int]
    wave: int
    lane: int | None

    @property
    def other(self) -> int | None:
        """Address of the other instruction of a race."""
        found = _OTHER.search(self.detail)
        return int(found[1], 16) if found else None

    def to_json(self) -> dict[str, Any]:
        """Plain values for json.dumps."""
        return {**asdict(self), "workgroup": list(self.workgroup)}


def findings(message: str) -> tuple[Finding, ...]:
    """The findings that a failed launch's message lists, in its order."""
    return tuple(
        Finding(
            kind=one["kind"] or "",
            detail=one["detail"],
            address=int(one["address"], 16),
            text=one["text"],
            workgroup=(int(one["x"]), int(one["y"]), int(one["z"])),
            wave=int(one["wave"]),
            lane=None if one["lane"] is None else int(one["lane"]),
        )
        for one in _FINDING.finditer(message)
    )
