"""The findings that a failed launch's message lists."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One finding of a launch's message."""

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
        found = re.search(r" at 0x([0-9a-f]+) `", self.detail)
        return int(found[1], 16) if found else None


FINDING = re.compile(
    r"(?:; (?P<kind>[\w ]+): |: )(?P<detail>[^;]+?) at 0x(?P<address>[0-9a-f]+) `(?P<text>[^`]*)`, "
    r"workgroup \((?P<x>\d+), (?P<y>\d+), (?P<z>\d+)\), wave (?P<wave>\d+)(?:, lane (?P<lane>\d+))?"
)


def findings(message: str) -> list[Finding]:
    """What a failed launch's message says; a fault that stopped it has the kind `""`."""
    return [
        Finding(
            m["kind"] or "",
            m["detail"],
            int(m["address"], 16),
            m["text"],
            (int(m["x"]), int(m["y"]), int(m["z"])),
            int(m["wave"]),
            None if m["lane"] is None else int(m["lane"]),
        )
        for m in FINDING.finditer(message)
    ]
