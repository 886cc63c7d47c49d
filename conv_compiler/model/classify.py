# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pipe an instruction goes to, and what it counts there."""

from __future__ import annotations

import re

from conv_compiler.model.counts import Counts
from conv_compiler.model.instructions import Instruction
from conv_compiler.model.matrix import is_matrix, matrix_work

# Vector instructions of four issue slots. Transcendental: measured, 16 cycles on gfx942
# (github.com/tingqli/pyhip). 32-bit integer products: a quarter of the rate on older chips; newer
# documents disagree, so the slower is taken.
_SLOW = re.compile(
    r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_|v_mul_(lo|hi)_[ui]32|v_mad_(co_)?[ui]64_[ui]32"
)
_SLOW_SLOTS = 4
# Arithmetic operations a lane does in one instruction of these; others do none that counts.
_FLOPS = (
    (re.compile(r"v_pk_(fma|mad|fmac)_f"), 4),
    (re.compile(r"v_pk_(add|mul)_f"), 2),
    (re.compile(r"v_dot2"), 4),
    (re.compile(r"v_dot4"), 8),
    (re.compile(r"v_(dual_)?(fma|fmac|mad|mac|fmaak|fmamk)(_mix\w*)?_(f|legacy)"), 2),
    (re.compile(r"v_mad_[ui](32_[ui]24|64)|v_mad_i32_i16"), 2),
    (re.compile(r"v_(dual_)?(add|sub|mul)_f"), 1),
)
_NOTHING = ("s_nop", "s_sleep", "s_delay_alu", "s_clause", "s_endpgm", "s_code_end", "s_sendmsg",
            "s_set", "s_inst_prefetch")  # fmt: skip


def _lds_bytes(width: int) -> int:
    return next(size for size in (4, 8, 16, 32) if width <= size)


def _lds(kind: str, width: int) -> Counts:
    size = _lds_bytes(width)
    # Two 16-byte halves do not exist as one instruction of its own rate; they count as two.
    return Counts(**{f"lds_{kind}_{min(size, 16)}": size / min(size, 16)})


def classify(one: Instruction, chip: str, lanes: int) -> Counts:
    """What one wave-instruction counts."""
    name = one.name
    if is_matrix(name):
        work = matrix_work(chip, name, one.is_short)
        return Counts(matrix=1, matrix_cycles=work.cycles, matrix_flops=work.flops)
    if name.startswith("v_"):
        return _vector(one, lanes)
    if name.startswith(("ds_write", "ds_store")):
        return _lds("writes", one.width)
    if name.startswith("ds_"):
        return _lds("reads", one.width)
    if name.startswith(("buffer_", "global_", "flat_", "scratch_")):
        return _memory(one, lanes)
    return next((counts for pattern, counts in _SCALAR if pattern.match(name)), Counts(salu=1))


# Scalar instructions by the start of their names; all others count as scalar arithmetic.
_SCALAR = (
    (re.compile(r"s_(buffer_)?load"), Counts(scalar_loads=1)),
    (re.compile(r"s_c?branch"), Counts(branches=1)),
    (re.compile(r"s_barrier(_wait)?$"), Counts(barriers=1)),
    (re.compile(r"s_wait|s_barrier_signal$"), Counts(waits=1)),
    (re.compile("|".join(_NOTHING)), Counts()),
)


def _vector(one: Instruction, lanes: int) -> Counts:
    """A vector instruction; the second half of a dual-issue pair takes no slot."""
    flops = next((flops for pattern, flops in _FLOPS if pattern.match(one.name)), 0)
    slots = 0 if one.dual else _SLOW_SLOTS if _SLOW.match(one.name) else 1
    return Counts(valu=0 if one.dual else 1, valu_slots=slots, vector_flops=flops * lanes)


def _memory(one: Instruction, lanes: int) -> Counts:
    moved, dwords = one.width * lanes, max(1.0, one.width / 4)
    if "_load" in one.name:
        loaded = Counts(loads=1, load_dwords=dwords, load_bytes=moved, line_bytes=moved)
        return loaded + _lds("writes", one.width) if one.to_lds else loaded
    if "_store" in one.name or "_atomic" in one.name:
        return Counts(stores=1, store_dwords=dwords, store_bytes=moved, line_bytes=moved)
    return Counts(waits=1)  # cache control


def is_barrier(name: str) -> bool:
    """Whether waves of a workgroup meet here."""
    return name in ("s_barrier", "s_barrier_wait")


# Where `s_waitcnt`'s number keeps a counter, as (shift, bits) pieces from the lowest, by lanes: on
# gfx9 and on gfx11 (LLVM, `AMDGPUAsmGFX9` and `AMDGPUAsmGFX11`, "waitcnt").
_WAITCNT: dict[str, dict[int, tuple[tuple[int, int], ...]]] = {
    "vmcnt": {64: ((0, 4), (14, 2)), 32: ((10, 6),)},
    "lgkmcnt": {64: ((8, 4),), 32: ((4, 6),)},
}


def loads_in_flight(one: Instruction, lanes: int) -> int | None:
    """How many loads from memory a wave may leave in flight past this wait; None if any number."""
    if one.name.startswith("s_wait_loadcnt"):
        value = int(" ".join(one.operands), 0)
        return value >> 8 & 63 if one.name.endswith("dscnt") else value
    return _waitcnt(one, lanes, "vmcnt")


def lds_in_flight(one: Instruction, lanes: int) -> int | None:
    """How many LDS accesses a wave may leave in flight past this wait; None if any number.

    Scalar loads share the counter on gfx9 and gfx11.
    """
    if one.name.startswith("s_wait_") and one.name.endswith("dscnt"):
        return int(" ".join(one.operands), 0) & 63
    return _waitcnt(one, lanes, "lgkmcnt")


def _waitcnt(one: Instruction, lanes: int, counter: str) -> int | None:
    """A counter of `s_waitcnt`, written by name or as the number machine code has."""
    text = " ".join(one.operands)
    if one.name != "s_waitcnt":
        return None
    if match := re.search(rf"{counter}\((\d+)\)", text):
        return int(match[1])
    if not re.fullmatch(r"-?[\dxa-f]+", text):
        return None
    value, count, width = int(text, 0), 0, 0
    for shift, bits in _WAITCNT[counter][lanes]:
        count |= (value >> shift & (1 << bits) - 1) << width
        width += bits
    return None if count == (1 << width) - 1 else count
