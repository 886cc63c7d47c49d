"""A module whose machine code is known and can be changed, and what its instructions do."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from conv_compiler.vgpu import decode
from conv_compiler.vgpu.program import VCC, VGPR0, Operand, Record
from tests.vgpu.support import code_objects

S_NOP = struct.pack("<I", 0xBF800000)  # the same on gfx9, gfx11 and gfx12


@dataclass(frozen=True)
class Kernel:
    """A module whose instructions are known and can be replaced."""

    vmfb: bytes
    chip: str

    @cached_property
    def place(self) -> code_objects.CodeObject:
        return code_objects.find(self.vmfb)

    @cached_property
    def base(self) -> int:
        return decode.text_section(self.vmfb[self.place.start :])[0]

    @cached_property
    def records(self) -> list[Record]:
        code = self.vmfb[self.place.text : self.place.text_end]
        return decode.decode_text(self.chip, self.base, code, wave_size=self.lanes).records

    @property
    def lanes(self) -> int:
        return 64 if self.chip.startswith("gfx9") else 32

    def address(self, record: Record) -> int:
        return self.base + record.offset

    def text_at(self, address: int) -> str:
        """The disassembly of the instruction at an address."""
        return next(r.text for r in self.records if self.address(r) == address)

    def patched(self, record: Record, change: Callable[[bytes], bytes]) -> "Kernel":
        """The module with one instruction's bytes changed."""
        at = self.place.text + record.offset
        new = change(self.vmfb[at : at + record.size])
        assert len(new) == record.size
        return Kernel(self.vmfb[:at] + new + self.vmfb[at + record.size :], self.chip)

    def without(self, *records: Record) -> "Kernel":
        """The module with instructions replaced by s_nop."""
        changed = self
        for record in records:
            changed = changed.patched(record, lambda code: S_NOP * (len(code) // 4))
        return changed


TWO_ADDRESSES = ("ds_read2", "ds_load_2addr")
BARRIER_ENDS = ("s_barrier", "s_barrier_wait")
BARRIER_STARTS = ("s_barrier", "s_barrier_signal")


def reads_lds(r: Record) -> bool:
    return r.name.startswith(("ds_read", "ds_load"))


def writes_lds(r: Record) -> bool:
    return r.name.startswith(("ds_write", "ds_store")) or loads_to_lds(r)


def loads_to_lds(r: Record) -> bool:
    return r.name.startswith("buffer_load") and " lds" in r.text


def loads_memory(r: Record) -> bool:
    return r.name.startswith(("buffer_load", "global_load")) and not loads_to_lds(r)


def stores_memory(r: Record) -> bool:
    return r.name.startswith(("buffer_store", "global_store"))


def loads_scalars(r: Record) -> bool:
    return r.name.startswith("s_load")


def registers(*operands: Operand) -> set[int]:
    """Operand codes of the SGPRs and VGPRs among them; a VGPR's is 256 and more."""
    return {
        op.reg + n
        for op in operands
        if op.reg < VCC or VGPR0 <= op.reg < 2 * VGPR0
        for n in range(op.dwords)
    }


def read_by(r: Record) -> set[int]:
    return registers(r.a, r.b, r.c, r.x)


def written_by(r: Record) -> set[int]:
    return registers(r.d, r.e)


# Family -> counter -> name of a wait -> where its immediate holds the limit, as (first bit, bits).
Fields = tuple[tuple[int, int], ...]
WAITS: dict[str, dict[str, dict[str, Fields]]] = {
    "gfx9": {
        "load": {"s_waitcnt": ((0, 4), (14, 2))},
        "lds": {"s_waitcnt": ((8, 4),)},
        "scalar": {"s_waitcnt": ((8, 4),)},
    },
    "gfx11": {
        "load": {"s_waitcnt": ((10, 6),)},
        "lds": {"s_waitcnt": ((4, 6),)},
        "scalar": {"s_waitcnt": ((4, 6),)},
    },
    "gfx12": {
        "load": {"s_wait_loadcnt": ((0, 6),), "s_wait_loadcnt_dscnt": ((8, 6),)},
        "lds": {"s_wait_dscnt": ((0, 6),), "s_wait_loadcnt_dscnt": ((0, 6),)},
        "scalar": {"s_wait_kmcnt": ((0, 5),)},
    },
}


def fields_of(chip: str, name: str, counter: str) -> Fields:
    """Where a wait's immediate holds a counter's limit; nowhere when it is no wait for it."""
    family = next(family for family in WAITS if chip.startswith(family))
    return WAITS[family][counter].get(name, ())


def limit_of(chip: str, r: Record, counter: str) -> int | None:
    """How many accesses a wait leaves outstanding; None when it does not wait for the counter."""
    value = width = 0
    for first, bits in fields_of(chip, r.name, counter):
        value |= (r.imm >> first & (1 << bits) - 1) << width
        width += bits
    return value if value < (1 << width) - 1 else None
