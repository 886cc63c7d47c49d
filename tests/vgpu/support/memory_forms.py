"""The forms of loads and stores, and what they do to bytes and registers, in Python's integers."""

from dataclasses import dataclass

import numpy as np

from tests.vgpu.support.instructions import Wave


@dataclass(frozen=True)
class Form:
    """How a value lies in memory and in registers.

    `half`: None for whole dwords, "low" or "high" for the half of the register that is meant.
    """

    size: int  # bytes
    signed: bool = False
    half: str | None = None

    @property
    def dwords(self) -> int:
        return max(1, self.size // 4)


_NARROW = {
    "u8": Form(1),
    "i8": Form(1, signed=True),
    "u16": Form(2),
    "i16": Form(2, signed=True),
    "low_u8": Form(1, half="low"),
    "low_i8": Form(1, signed=True, half="low"),
    "low_b16": Form(2, half="low"),
    "high_u8": Form(1, half="high"),
    "high_i8": Form(1, signed=True, half="high"),
    "high_b16": Form(2, half="high"),
}
_WIDE = {"b32": Form(4), "b64": Form(8), "b96": Form(12), "b128": Form(16)}
_STORES = {
    "b8": Form(1),
    "b16": Form(2),
    "high_b8": Form(1, half="high"),
    "high_b16": Form(2, half="high"),
}


def _spelled(forms: dict[str, Form], names: str, pattern: str) -> dict[str, Form]:
    """Mnemonics of the forms: `names` has one for each, in their order."""
    spelled = names.split()
    return {pattern.format(name): form for name, form in zip(spelled, forms.values(), strict=True)}


LOADS, STORES = _NARROW | _WIDE, _STORES | _WIDE
_CDNA_LOADS = (
    "ubyte sbyte ushort sshort ubyte_d16 sbyte_d16 short_d16 ubyte_d16_hi sbyte_d16_hi "
    "short_d16_hi dword dwordx2 dwordx3 dwordx4"
)
_RDNA_LOADS = "u8 i8 u16 i16 d16_u8 d16_i8 d16_b16 d16_hi_u8 d16_hi_i8 d16_hi_b16 b32 b64 b96 b128"
_CDNA_STORES = "byte short byte_d16_hi short_d16_hi dword dwordx2 dwordx3 dwordx4"
_RDNA_STORES = "b8 b16 d16_hi_b8 d16_hi_b16 b32 b64 b96 b128"
_LDS_LOADS = "u8 i8 u16 i16 u8_d16 i8_d16 u16_d16 u8_d16_hi i8_d16_hi u16_d16_hi b32 b64 b96 b128"
_LDS_STORES = "b8 b16 b8_d16_hi b16_d16_hi b32 b64 b96 b128"


def loads(space: str, chip: str) -> dict[str, Form]:
    """Mnemonics of the loads of `space` (global, flat, scratch, buffer) on a chip."""
    names = _CDNA_LOADS if chip.startswith("gfx9") else _RDNA_LOADS
    return _spelled(LOADS, names, f"{space}_load_{{}}")


def stores(space: str, chip: str) -> dict[str, Form]:
    names = _CDNA_STORES if chip.startswith("gfx9") else _RDNA_STORES
    return _spelled(STORES, names, f"{space}_store_{{}}")


def lds_loads(chip: str) -> dict[str, Form]:
    verb = "read" if chip.startswith("gfx9") else "load"
    return _spelled(LOADS, _LDS_LOADS, f"ds_{verb}_{{}}")


def lds_stores(chip: str) -> dict[str, Form]:
    verb = "write" if chip.startswith("gfx9") else "store"
    return _spelled(STORES, _LDS_STORES, f"ds_{verb}_{{}}")


def loaded(form: Form, data: bytes, old: list[int]) -> list[int]:
    """The registers after a load of `data`; `old` are the registers before."""
    if form.size >= 4:
        return [int.from_bytes(data[i : i + 4], "little") for i in range(0, form.size, 4)]
    value = int.from_bytes(data, "little", signed=form.signed)
    if form.half == "low":
        return [old[0] & 0xFFFF0000 | value & 0xFFFF]
    if form.half == "high":
        return [old[0] & 0xFFFF | (value & 0xFFFF) << 16]
    return [value & 0xFFFFFFFF]


def stored(form: Form, registers: list[int]) -> bytes:
    """The bytes that a store writes."""
    whole = b"".join(int(r).to_bytes(4, "little") for r in registers)
    start = 2 if form.half == "high" else 0
    return whole[start : start + form.size]


def registers(wave: Wave, number: int, dwords: int, lane: int) -> list[int]:
    return [int(x) for x in wave.v[number : number + dwords, lane]]


def scramble(wave: Wave, rng: np.random.Generator) -> None:
    """Random registers, and about three quarters of the lanes active."""
    wave.v[:] = rng.integers(0, 1 << 32, wave.v.shape, np.uint32)
    active = rng.random(wave.lanes) < 0.75
    wave.exec = sum(1 << lane for lane in np.flatnonzero(active).tolist())


def active_lanes(wave: Wave) -> list[int]:
    return [lane for lane in range(wave.lanes) if wave.exec >> lane & 1]
