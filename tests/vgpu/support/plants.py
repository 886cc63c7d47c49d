"""A fault planted at each place of a kernel where one of its kind can be, by changing machine code."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from conv_compiler.vgpu.program import Record
from tests.vgpu.support.faults import weakened, with_scalar_offset
from tests.vgpu.support.in_flight import is_lds
from tests.vgpu.support.kernels import (
    BARRIER_STARTS,
    WAITS,
    Kernel,
    fields_of,
    limit_of,
    stores_memory,
)

BARRIER, WAIT, BEYOND, WITHIN, STORE = (
    "barrier removed",
    "wait loosened",
    "LDS offset beyond",
    "LDS offset within",
    "store past the end",
)
KINDS = (BARRIER, WAIT, BEYOND, STORE, WITHIN)
_TWO = ("read2", "write2", "2addr")
_MOST_OFFSET, _MOST_PAIR_OFFSET = 0xFFFF, 0xFF
_DWORD = 4
# Family -> (first bit, bits) of the signed offset of a global store.
_GLOBAL_OFFSET = {"gfx9": (0, 13), "gfx11": (0, 13), "gfx12": (72, 24)}


@dataclass(frozen=True)
class Plant:
    """A changed kernel, the instruction that was changed, and the counter of a loosened wait."""

    kind: str
    kernel: Kernel
    record: Record
    counter: str = ""

    @property
    def at(self) -> int:
        return self.kernel.address(self.record)

    @property
    def text(self) -> str:
        return f"{self.kind} at {self.at:#x} `{self.record.text}` {self.counter}".rstrip()


def plants(kernel: Kernel, kind: str, lds_bytes: int, most_bytes: int) -> Iterator[Plant]:
    """Every plant of a kind; `most_bytes` is the size of the largest array that is written."""
    if kind == BARRIER:
        yield from _barriers(kernel)
    elif kind == WAIT:
        yield from _waits(kernel)
    elif kind == STORE:
        yield from _stores(kernel, most_bytes)
    else:
        yield from _lds_offsets(kernel, kind, lds_bytes)


def _barriers(kernel: Kernel) -> Iterator[Plant]:
    """Each barrier becomes s_nop; on gfx12 its signal and the wait that follows."""
    records = kernel.records
    for n, r in enumerate(records):
        if r.name in BARRIER_STARTS:
            ends = (one for one in records[n:] if one.name == "s_barrier_wait")
            both = [r] if r.name == "s_barrier" else [r, next(ends)]
            yield Plant(BARRIER, kernel.without(*both), r)


def _waits(kernel: Kernel) -> Iterator[Plant]:
    """Each limit of each wait becomes the greatest: it waits for nothing of that counter."""
    family = next(one for one in WAITS if kernel.chip.startswith(one))
    for r in kernel.records:
        fields = {
            fields_of(kernel.chip, r.name, counter): counter
            for counter in reversed(WAITS[family])
            if limit_of(kernel.chip, r, counter) is not None
        }
        for counter in fields.values():
            yield Plant(WAIT, weakened(kernel, r, counter), r, counter)


def _lds_offsets(kernel: Kernel, kind: str, lds_bytes: int) -> Iterator[Plant]:
    """The offset of an LDS access grows by all of the LDS, or by a dword (the first of two offsets
    by one of its elements)."""
    for r in kernel.records:
        if not is_lds(r):
            continue
        two = any(word in r.name for word in _TWO)
        most = _MOST_PAIR_OFFSET if two else _MOST_OFFSET
        if kind == BEYOND:
            offset = r.imm + lds_bytes
        else:
            offset = (r.imm & _MOST_PAIR_OFFSET) + 1 if two else r.imm + _DWORD
        if offset <= most and not (two and kind == BEYOND):
            head = struct.pack("<B" if two else "<H", offset)
            yield Plant(kind, kernel.patched(r, _beginning(head)), r)


def _beginning(head: bytes) -> Callable[[bytes], bytes]:
    return lambda code: head + code[len(head) :]


def _stores(kernel: Kernel, most_bytes: int) -> Iterator[Plant]:
    """Each store goes further by the size of its array: what was its first element lands one past
    the end. A buffer store takes the resource's size as scalar offset, which has no range check; a
    global one has it in its offset, where there is room."""
    for r in kernel.records:
        if not stores_memory(r):
            continue
        if r.name.startswith("buffer_"):
            yield Plant(STORE, with_scalar_offset(kernel, r), r)
        elif changed := _further(kernel, r, most_bytes):
            yield Plant(STORE, changed, r)


def _further(kernel: Kernel, r: Record, by: int) -> Kernel | None:
    family = next(one for one in _GLOBAL_OFFSET if kernel.chip.startswith(one))
    first, bits = _GLOBAL_OFFSET[family]
    offset = r.imm + by
    if offset >= 1 << (bits - 1):
        return None
    mask = (1 << bits) - 1

    def change(code: bytes) -> bytes:
        word = int.from_bytes(code, "little")
        return (word & ~(mask << first) | offset << first).to_bytes(len(code), "little")

    return kernel.patched(r, change)
