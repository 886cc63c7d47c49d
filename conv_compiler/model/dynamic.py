# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of a kernel from its machine code and a run, or a first look, on the virtual GPU."""

from __future__ import annotations

from dataclasses import replace

from conv_compiler.model.counts import Counts, KernelCounts
from conv_compiler.model.launch import Launch
from conv_compiler.model.met_pixels import LINE_BYTES
from conv_compiler.vgpu.counters import KernelCounters

# Fields of Counts that follow a class of the counters.
_CLASSES = {
    "matrix": ("matrix", "matrix_cycles", "matrix_flops"),
    "valu": ("valu", "valu_slots", "vector_flops"),
    "salu": ("salu",),
    "scalar_load": ("scalar_loads",),
    "branch": ("branches",),
    "barrier": ("barriers",),
    "wait": ("waits",),
    "lds_read": ("lds_reads_4", "lds_reads_8", "lds_reads_16"),
    "global_read": ("loads", "load_dwords"),
    "lds_write": ("lds_writes_4", "lds_writes_8", "lds_writes_16"),
    "global_write": ("stores", "store_dwords"),
}


def _amount(counts: Counts, kind: str) -> float:
    first = {"lds_read": "lds_reads", "lds_write": "lds_writes"}.get(kind, _CLASSES[kind][0])
    return float(getattr(counts, first))


def dies_reading(counters: KernelCounters, launch: Launch) -> float | None:
    """How many dies read each byte of a launch's operands, on average; None where it reads none."""
    if not launch.read_bytes:
        return None
    return counters.die_read_lines * LINE_BYTES / counters.launches / launch.read_bytes


def dies_at_once(counters: KernelCounters) -> float | None:
    """How many dies read each line that a first look saw read; None where it saw none."""
    return counters.die_read_lines / counters.read_lines if counters.read_lines else None


def with_counters(counts: KernelCounts, counters: KernelCounters) -> KernelCounts:
    """Static counts corrected to what a run counted, by class of instruction.

    The machine code says what is in the main loop, which widths LDS instructions have and which
    vector instructions are slow; each class is then scaled, in the loop and outside alike, to the
    number the run counted, averaged over its waves. Bytes, cache lines and bank conflicts are the
    run's, shared out as the instructions that cause them are.
    """
    waves, wave = counters.waves, counts.wave
    scale: dict[str, float] = {}
    for kind, names in _CLASSES.items():
        if expected := _amount(wave, kind):
            counted = counters.instructions.get(kind, 0)
            if kind == "lds_write" and not counted:  # loads write to LDS by themselves
                factor = scale["loads"]
            else:
                factor = counted / waves / expected
            scale |= dict.fromkeys(names, factor)
    loads, stores = max(1.0, wave.loads), max(1.0, wave.stores)
    lds = max(1.0, wave.lds_reads + wave.lds_writes)
    # What L1 holds it serves by itself; each piece that is stored goes on to L2.
    served = counters.fetched_lines / waves, counters.global_write_lines / waves
    looked_up = counters.global_read_lines / waves, counters.global_write_lines / waves

    def shared(part: Counts, lines: tuple[float, float]) -> float:
        return lines[0] * part.loads / loads + lines[1] * part.stores / stores

    def corrected(part: Counts) -> Counts:
        values = {name: getattr(part, name) * factor for name, factor in scale.items()}
        lds_share = (part.lds_reads + part.lds_writes) / lds
        return replace(
            part,
            **values,
            load_bytes=counters.global_read_bytes / waves * part.loads / loads,
            store_bytes=counters.global_write_bytes / waves * part.stores / stores,
            line_bytes=LINE_BYTES * shared(part, served),
            lines=shared(part, looked_up),
            lds_conflict_cycles=counters.lds_conflict_cycles / waves * lds_share,
        )

    return replace(
        counts,
        body=tuple(corrected(part) for part in counts.body),
        outside=corrected(counts.outside),
        source="virtual",
    )


def with_rates(counts: KernelCounts, counters: KernelCounters) -> KernelCounts:
    """Static counts with what addresses decide, as a first look saw it.

    The look ran every workgroup up to its first barriers, so its numbers of instructions say
    nothing; its cycles of bank conflicts for each LDS instruction and its cache lines for each load
    stand for the whole kernel. Stores come later: theirs are the static bytes.
    """
    written = counters.lds_write_conflict_cycles

    def rate(amount: int, kind: str) -> float:
        return amount / counters.instructions[kind] if amount else 0.0

    read_conflict = rate(counters.lds_conflict_cycles - written, "lds_read")
    write_conflict = rate(written, "lds_write")
    fetched_bytes = rate(counters.fetched_lines * LINE_BYTES, "global_read")
    lines = rate(counters.global_read_lines, "global_read")

    def rated(part: Counts) -> Counts:
        return replace(
            part,
            line_bytes=fetched_bytes * part.loads + part.store_bytes,
            lines=lines * part.loads + part.store_bytes / LINE_BYTES,
            lds_conflict_cycles=read_conflict * part.lds_reads + write_conflict * part.lds_writes,
        )

    return replace(
        counts,
        body=tuple(rated(part) for part in counts.body),
        outside=rated(counts.outside),
        source="look",
    )
