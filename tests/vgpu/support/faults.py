"""Faults to plant into a kernel's machine code, and what the checks must say of each."""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from conv_compiler.vgpu.program import VGPR0, Record
from tests.vgpu.support import code_objects
from tests.vgpu.support.kernels import (
    BARRIER_ENDS,
    BARRIER_STARTS,
    TWO_ADDRESSES,
    Kernel,
    fields_of,
    limit_of,
    loads_memory,
    loads_scalars,
    loads_to_lds,
    read_by,
    reads_lds,
    stores_memory,
    writes_lds,
    written_by,
)


@dataclass(frozen=True)
class Fault:
    """A changed module; the kind of finding it must give, where, and which other instruction it must name."""

    kernel: Kernel
    kind: str
    at: frozenset[int]
    other: frozenset[int] = frozenset()
    first: int | None = None  # address of the first finding
    between: int | None = None  # an address between the two instructions
    lane: bool = True  # the finding names one


def weakened(kernel: Kernel, wait: Record, counter: str) -> Kernel:
    """The module with the wait's limit at its greatest, which waits for nothing."""
    fields = fields_of(kernel.chip, wait.name, counter)
    ones = sum((1 << bits) - 1 << first for first, bits in fields)
    return kernel.patched(wait, lambda code: struct.pack("<I", struct.unpack("<I", code)[0] | ones))


def needed_wait(
    kernel: Kernel, counter: str, counts: Callable[[Record], bool]
) -> tuple[Record, list[Record]]:
    """The first wait whose absence shows, and the instructions before the next one that need it."""
    records = kernel.records
    outstanding: list[set[int]] = []
    ends = [n for n, r in enumerate(records) if limit_of(kernel.chip, r, counter) is not None]
    for n, r in enumerate(records):
        if counts(r):
            outstanding.append(written_by(r))
        most = limit_of(kernel.chip, r, counter)
        if most is None:
            continue
        done = len(outstanding) - most
        covered = set().union(*outstanding[: max(done, 0)])
        until = next((end for end in ends if end > n), len(records))
        uses = [use for use in records[n:until] if read_by(use) & covered]
        if uses:
            return r, uses
        del outstanding[: max(done, 0)]
    raise ValueError(f"no wait for {counter} that anything needs")


def first_shared_tile(kernel: Kernel) -> tuple[int, int, int]:
    """Indices of the signal and the end of the first barrier after LDS was filled, and of the next barrier."""
    records = kernel.records
    read = next(n for n, r in enumerate(records) if reads_lds(r))
    end = max(n for n, r in enumerate(records[:read]) if r.name in BARRIER_ENDS)
    start = max(n for n, r in enumerate(records[: end + 1]) if r.name in BARRIER_STARTS)
    after = next(
        n for n, r in enumerate(records) if n > end and r.name in (*BARRIER_STARTS, "s_endpgm")
    )
    return start, end, after


def barrier_removed(kernel: Kernel) -> Fault:
    """Waves read a tile that others are still writing."""
    start, end, after = first_shared_tile(kernel)
    records = kernel.records
    changed = kernel.without(*(records[n] for n in sorted({start, end})))
    accesses = frozenset(
        kernel.address(r)
        for n, r in enumerate(records[:after])
        if (writes_lds(r) if n < start else reads_lds(r))
    )
    return Fault(changed, "LDS race", accesses, accesses, between=kernel.address(records[end]))


def load_wait_weakened(kernel: Kernel) -> Fault:
    """A wait for data from memory waits for nothing."""
    wait, uses = needed_wait(kernel, "load", loads_memory)
    at = [kernel.address(use) for use in uses]
    return Fault(weakened(kernel, wait, "load"), "use before wait", frozenset(at), first=at[0])


def lds_wait_weakened(kernel: Kernel) -> Fault:
    """A wait for data from LDS waits for nothing."""
    wait, uses = needed_wait(kernel, "lds", reads_lds)
    at = [kernel.address(use) for use in uses]
    return Fault(weakened(kernel, wait, "lds"), "use before wait", frozenset(at), first=at[0])


def scalar_wait_weakened(kernel: Kernel) -> Fault:
    """A wait for scalar loads waits for nothing."""
    wait, uses = needed_wait(kernel, "scalar", loads_scalars)
    at = [kernel.address(use) for use in uses]
    changed = weakened(kernel, wait, "scalar")
    return Fault(changed, "use before wait", frozenset(at), first=at[0], lane=False)


def wait_before_barrier_weakened(kernel: Kernel) -> Fault:
    """A wave says that it is done writing the tile when it is not."""
    start, end, after = first_shared_tile(kernel)
    records = kernel.records
    direct = [r for r in records if loads_to_lds(r)]
    counter = "load" if direct else "lds"
    wait = [r for r in records[:start] if limit_of(kernel.chip, r, counter) is not None][-1]
    changed = weakened(kernel, wait, counter)
    if not direct:
        barrier = kernel.address(records[start])
        return Fault(changed, "barrier before wait", frozenset({barrier}), lane=False)
    reads = [kernel.address(r) for r in records[end:after] if reads_lds(r)]
    loads = frozenset(kernel.address(r) for r in direct)
    return Fault(changed, "LDS use before wait", loads.union(reads), loads, first=reads[0])


def lds_read_a_tile_further(kernel: Kernel) -> Fault:
    """The read of the last tile in LDS begins where that tile ends."""
    plain = [r for r in kernel.records if reads_lds(r) and not r.name.startswith(TWO_ADDRESSES)]
    last = max(plain, key=lambda r: r.imm)
    tile_starts = min(r.imm for r in plain if r.a == last.a)
    offset = (
        last.imm + code_objects.metadata(kernel.vmfb, ".group_segment_fixed_size") - tile_starts
    )
    changed = kernel.patched(last, lambda code: struct.pack("<H", offset) + code[2:])
    return Fault(changed, "LDS out of range", frozenset({kernel.address(last)}))


def with_scalar_offset(kernel: Kernel, access: Record) -> Kernel:
    """Take the resource's size for the scalar offset, which the hardware does not range-check."""
    register = access.c.reg + 2
    if kernel.chip.startswith("gfx12"):
        return kernel.patched(access, lambda code: bytes([code[0] & 0x80 | register]) + code[1:])
    return kernel.patched(access, lambda code: code[:7] + bytes([register]))


def store_out_of_range(kernel: Kernel) -> Fault:
    """The first store goes behind its buffer."""
    store = next(r for r in kernel.records if stores_memory(r))
    at = frozenset({kernel.address(store)})
    return Fault(with_scalar_offset(kernel, store), "out of allocation", at)


def load_out_of_range(kernel: Kernel) -> Fault:
    """The first load comes from behind its buffer."""
    load = next(r for r in kernel.records if loads_memory(r) or loads_to_lds(r))
    at = frozenset({kernel.address(load)})
    return Fault(with_scalar_offset(kernel, load), "out of allocation", at)


def lds_never_written(kernel: Kernel) -> Fault:
    """A part of the tile is read that nobody wrote."""
    _, end, after = first_shared_tile(kernel)
    write = next(r for r in kernel.records if writes_lds(r))
    reads = frozenset(kernel.address(r) for r in kernel.records[end:after] if reads_lds(r))
    return Fault(kernel.without(write), "uninitialised LDS", reads)


def register_never_written(kernel: Kernel) -> Fault:
    """An LDS read takes its address from a register that is written only later."""
    records = kernel.records
    n = next(n for n, r in enumerate(records) if reads_lds(r))
    before, later = (set().union(*map(written_by, part)) for part in (records[:n], records[n:]))
    fresh = max(later - before) - VGPR0
    changed = kernel.patched(records[n], lambda code: code[:4] + bytes([fresh]) + code[5:])
    return Fault(changed, "uninitialised register", frozenset({kernel.address(records[n])}))


def memory_never_written(kernel: Kernel) -> Fault:
    """The second kernel reads what the first did not store."""
    first_end = next(n for n, r in enumerate(kernel.records) if r.name == "s_endpgm")
    store = next(r for r in kernel.records[:first_end] if stores_memory(r))
    loads = frozenset(kernel.address(r) for r in kernel.records[first_end:] if loads_memory(r))
    return Fault(kernel.without(store), "uninitialised memory", loads)


# Fault -> the program it is planted into.
FAULTS: dict[Callable[[Kernel], Fault], str] = {
    barrier_removed: "matmul_f16",
    load_wait_weakened: "multiply_add_f32",
    lds_wait_weakened: "matmul_f16",
    scalar_wait_weakened: "multiply_add_f32",
    wait_before_barrier_weakened: "matmul_f16",
    lds_read_a_tile_further: "matmul_f16",
    store_out_of_range: "matmul_f16",
    load_out_of_range: "matmul_f16",
    lds_never_written: "matmul_f16",
    register_never_written: "matmul_f16",
    memory_never_written: "gram_product_f32",
}
