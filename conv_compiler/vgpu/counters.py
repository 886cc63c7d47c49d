# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dynamic counts of what the kernels of this process did on virtual devices."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from conv_compiler.vgpu.library import library, read_json

_BY_INSTRUCTION = ("lds_uses", "executions", "lines")


@dataclass(frozen=True, kw_only=True)
class LdsUse:
    """What one LDS instruction asked of the banks in all its accesses: two where it has two
    addresses.

    `offset` is in bytes behind the kernel's first instruction; `dwords` are those that lanes need
    of each bank, one that several need counted once.
    """

    offset: int
    accesses: int
    cycles: int
    conflict_cycles: int
    dwords: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class KernelCounters:
    """Sums over all launches of one kernel on one chip.

    Instructions are wave-instructions by class (matrix, valu, salu, lds_read, ...). A line is
    128 bytes, counted once an instruction. `fetched_lines` are those read that the
    workgroup's share of L1 did not hold. `read_lines` are the distinct ones a launch reads, and
    `die_read_lines` those each die of the chip reads, summed over its dies. LDS cycles follow the
    bank model of docs/vgpu.md. `seconds` is the host's time. `executions` has the wave-instructions
    and `lines` the lines of memory by instruction, at the bytes behind the kernel's first one.
    """

    chip: str
    kernel: str
    launches: int
    workgroups: int
    waves: int
    instructions: Mapping[str, int]
    matrix_flops: int
    global_read_bytes: int
    global_write_bytes: int
    global_read_lines: int
    global_write_lines: int
    fetched_lines: int
    read_lines: int
    die_read_lines: int
    scalar_read_bytes: int
    lds_read_bytes: int
    lds_write_bytes: int
    lds_cycles: int
    lds_conflict_cycles: int
    lds_write_conflict_cycles: int
    seconds: float
    lds_uses: tuple[LdsUse, ...] = ()
    executions: Mapping[int, int] = field(default_factory=dict)
    lines: Mapping[int, int] = field(default_factory=dict)

    @property
    def total_instructions(self) -> int:
        """Wave-instructions of all classes."""
        return sum(self.instructions.values())

    def to_json(self) -> dict[str, Any]:
        """Return the counts as plain values for json.dumps, without those by instruction."""
        names = (one.name for one in fields(self) if one.name not in _BY_INSTRUCTION)
        return {name: _plain(getattr(self, name)) for name in names}


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _counters(row: dict[str, Any]) -> KernelCounters:
    """A row as the library writes it."""
    uses = tuple(LdsUse(**{**use, "dwords": tuple(use["dwords"])}) for use in row["lds_uses"])
    by_offset = {name: dict(row[name]) for name in ("executions", "lines")}
    return KernelCounters(**{**row, "lds_uses": uses, **by_offset})


@contextmanager
def counting(most_barriers: int = 0, most_iterations: int = 0) -> Iterator[None]:
    """Count what every kernel of the process does while the block runs; `counters` has the sums.

    Counts start at zero. Launches take longer meanwhile: addresses are looked at one by one. With
    `most_barriers` a wave ends once it has passed so many, with `most_iterations` once it has
    branched back so often: a first look at a large launch, whose results are then worthless.
    """
    library().vgpu_reset_counters()
    library().vgpu_set_counting(1, most_barriers, most_iterations)
    try:
        yield
    finally:
        library().vgpu_set_counting(0, 0, 0)


def counters() -> tuple[KernelCounters, ...]:
    """Return the counts of the last `counting` block so far, sorted by chip and kernel."""
    return tuple(_counters(row) for row in read_json("vgpu_counters"))


def memory_totals() -> Mapping[str, int]:
    """Return what the library holds: live_allocations, live_bytes, live_handles, and counts.

    The counts are allocations and frees; a handle is a stream, an event, a module or a graph.
    """
    totals: dict[str, int] = read_json("vgpu_memory")
    return totals
