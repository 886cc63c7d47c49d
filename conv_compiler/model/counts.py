# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one wave of a kernel executes, by pipe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from operator import add, attrgetter

# Arithmetic of one 16x16x16 matrix instruction: the unit that counts are told in.
EQUIVALENT_FLOPS = 2 * 16 * 16 * 16


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Wave-instructions of one wave, and what they move.

    Cycles of matrix instructions are those they keep one SIMD's matrix unit. `valu_slots` are
    issue slots of the vector unit: one an instruction, more for slow ones, none for the second half
    of a dual-issue pair. LDS instructions are told apart by the bytes a lane moves, rounded up;
    `lds_conflict_cycles` are those beyond conflict-free ones. `load_dwords` and `store_dwords` are
    dwords a lane moves to or from memory, where smaller pieces count as one; `line_bytes` is the
    size of all cache lines that L2 serves, and `lines` are those that L1 looks up for loads and
    stores. Where addresses are not known, these are the bytes moved and 0.
    """

    matrix: float = 0
    matrix_cycles: float = 0
    matrix_flops: float = 0
    valu: float = 0
    valu_slots: float = 0
    vector_flops: float = 0
    salu: float = 0
    scalar_loads: float = 0
    branches: float = 0
    barriers: float = 0
    waits: float = 0
    lds_reads_4: float = 0
    lds_reads_8: float = 0
    lds_reads_16: float = 0
    lds_writes_4: float = 0
    lds_writes_8: float = 0
    lds_writes_16: float = 0
    lds_conflict_cycles: float = 0
    loads: float = 0
    stores: float = 0
    load_dwords: float = 0
    store_dwords: float = 0
    load_bytes: float = 0
    store_bytes: float = 0
    line_bytes: float = 0
    lines: float = 0

    def __add__(self, other: Counts) -> Counts:
        return _named(map(add, VALUES(self), VALUES(other)))

    def scaled(self, factor: float) -> Counts:
        """The counts of `factor` times the work."""
        return _named(value * factor for value in VALUES(self))

    @property
    def lds_reads(self) -> float:
        """LDS-read instructions of any width."""
        return self.lds_reads_4 + self.lds_reads_8 + self.lds_reads_16

    @property
    def lds_writes(self) -> float:
        """LDS-write instructions of any width."""
        return self.lds_writes_4 + self.lds_writes_8 + self.lds_writes_16

    @property
    def equivalents(self) -> float:
        """Matrix work in 16x16x16 instructions."""
        return self.matrix_flops / EQUIVALENT_FLOPS


NAMES = tuple(field.name for field in fields(Counts))
VALUES = attrgetter(*NAMES)


_ZEROS = dict.fromkeys(NAMES, 0)


def counted(**values: float) -> Counts:
    """`Counts(**values)`: a choice makes thousands, and a frozen class's own `__init__` takes
    five times as long."""
    made = object.__new__(Counts)
    made.__dict__.update(_ZEROS, **values)
    assert len(made.__dict__) == len(NAMES), f"{set(values) - set(NAMES)}: not counted"
    return made


def _named(values: Iterable[float]) -> Counts:
    made = object.__new__(Counts)
    made.__dict__.update(zip(NAMES, values, strict=True))
    return made


def total(parts: Iterable[Counts]) -> Counts:
    """The sum of some counts."""
    rows = [VALUES(part) for part in parts]
    return _named(map(sum, zip(*rows, strict=True))) if rows else Counts()


@dataclass(frozen=True, kw_only=True)
class KernelCounts:
    """What a wave of a kernel executes: its main loop and all the rest.

    `body` is one iteration of the main loop, cut at its barriers (empty where there is no loop),
    `iterations` how often it runs, `outside` everything else. `load_distance` is the number of
    iterations between a load from memory and the wait for it: 0 when it is waited for at once,
    `stages - 1` of a software pipeline. `interleaved` tells of a prediction that instructions of
    different pipes alternate, `reads_ahead` that fragments of two iterations have registers.
    `source` says where the numbers are from: "static" (machine code),
    "virtual" (counted on the virtual GPU) or "predicted" (a tiling).
    """

    body: tuple[Counts, ...] = ()
    iterations: float = 0
    outside: Counts = Counts()
    load_distance: float = 0
    interleaved: bool = False
    reads_ahead: bool = False
    source: str

    @cached_property
    def iteration(self) -> Counts:
        """One iteration of the main loop."""
        return total(self.body)

    @cached_property
    def wave(self) -> Counts:
        """The whole kernel."""
        return self.iteration.scaled(self.iterations) + self.outside
