"""Global, flat, scratch and scalar memory instructions one by one, against slices of bytes."""

import numpy as np
import pytest

from tests.vgpu.support.instructions import (
    LDS_BYTES,
    SCRATCH_LANE_BYTES,
    Wave,
    instruction,
    sgpr,
    vgpr,
)
from tests.vgpu.support.memory_forms import (
    active_lanes,
    loaded,
    loads,
    registers,
    scramble,
    stored,
    stores,
)

CHIPS = ["gfx942", "gfx1201"]
ADDRESS, DATA, TO = 100, 110, 130
MEMORY_BYTES = 2048
BASE = 4  # SGPR pair of a scalar base


class Memory:
    """Random bytes with room on both sides, and lane addresses in them."""

    def __init__(self, wave: Wave, rng: np.random.Generator, size: int) -> None:
        self.data = rng.integers(0, 256, MEMORY_BYTES, np.uint8)
        self.start = self.data.ctypes.data
        self.at = rng.permutation(MEMORY_BYTES // 16)[: wave.lanes] * 16
        self.at += rng.integers(0, 17 - size, wave.lanes)  # any alignment, no overlap


def use_base(wave: Wave, value: int) -> None:
    wave.s[BASE], wave.s[BASE + 1] = value & 0xFFFFFFFF, value >> 32


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("space", "offset", "base"), [
    ("global", 0, False), ("global", -24, False), ("global", 40, True), ("global", -8, True),
    ("flat", 0, False), ("flat", 16, False),
])  # fmt: skip
def test_loads(chip: str, space: str, offset: int, base: bool) -> None:
    """64-bit addresses in VGPRs, or an SGPR pair and 32-bit offsets; signed instruction offset."""
    for name, form in loads(space, chip).items():
        rng = np.random.default_rng(len(name))
        wave = Wave(chip)
        scramble(wave, rng)
        memory = Memory(wave, rng, form.size)
        operands = {"a": vgpr(ADDRESS, 1 if base else 2), "imm": offset}
        if base:
            use_base(wave, memory.start - offset)
            wave.put(ADDRESS, memory.at.astype(np.uint32))
            operands["x"] = sgpr(BASE, 2)
        else:
            wave.put(ADDRESS, (memory.start + memory.at - offset).astype(np.uint64))
        before = wave.v.copy()
        wave.run(instruction(name, d=vgpr(TO, form.dwords), **operands))
        for lane in range(wave.lanes):
            want = before[TO : TO + form.dwords, lane].tolist()
            at = memory.at[lane]
            if lane in active_lanes(wave):
                want = loaded(form, memory.data[at : at + form.size].tobytes(), want)
            assert registers(wave, TO, form.dwords, lane) == want, (name, lane)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("space", ["global", "flat"])
def test_stores(chip: str, space: str) -> None:
    for name, form in stores(space, chip).items():
        rng = np.random.default_rng(len(name))
        wave = Wave(chip)
        scramble(wave, rng)
        memory = Memory(wave, rng, form.size)
        wave.put(ADDRESS, (memory.start + memory.at - 12).astype(np.uint64))
        want = bytearray(memory.data.tobytes())
        for lane in active_lanes(wave):
            at = memory.at[lane]
            want[at : at + form.size] = stored(form, registers(wave, DATA, form.dwords, lane))
        operands = {"a": vgpr(ADDRESS, 2), "b": vgpr(DATA, form.dwords)}
        wave.run(instruction(name, imm=12, **operands))
        assert memory.data.tobytes() == bytes(want), name


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("address", ["vector", "scalar", "both", "offset"])
def test_scratch(chip: str, address: str) -> None:
    """Every lane has a window of its own; VGPR, SGPR and instruction offsets add up."""
    rng = np.random.default_rng(2)
    for name, form in (loads("scratch", chip) | stores("scratch", chip)).items():
        wave = Wave(chip)
        scramble(wave, rng)
        wave.scratch[:] = rng.integers(0, 256, wave.scratch.shape, np.uint8)
        vector = rng.integers(0, 17, wave.lanes) if address in ("vector", "both") else 0
        scalar = 9 if address in ("scalar", "both") else 0
        at = np.zeros(wave.lanes, np.int64) + vector + scalar + 7
        wave.put(ADDRESS, np.broadcast_to(np.uint32(vector), wave.lanes))
        wave.s[BASE] = scalar
        operands = {"imm": 7}
        operands |= {"a": vgpr(ADDRESS)} if address in ("vector", "both") else {}
        operands |= {"x": sgpr(BASE)} if address in ("scalar", "both") else {}
        if "_load_" in name:
            before = wave.v.copy()
            wave.run(instruction(name, d=vgpr(TO, form.dwords), **operands))
            for lane in active_lanes(wave):
                data = wave.scratch[lane, at[lane] : at[lane] + form.size].tobytes()
                want = loaded(form, data, before[TO : TO + form.dwords, lane].tolist())
                assert registers(wave, TO, form.dwords, lane) == want, (name, lane)
        else:
            want_bytes = wave.scratch.copy()
            for lane in active_lanes(wave):
                data = stored(form, registers(wave, DATA, form.dwords, lane))
                place = slice(at[lane], at[lane] + form.size)
                want_bytes[lane, place] = np.frombuffer(data, np.uint8)
            wave.run(instruction(name, b=vgpr(DATA, form.dwords), **operands))
            np.testing.assert_array_equal(wave.scratch, want_bytes)


def test_scratch_outside_the_window_is_an_error() -> None:
    wave = Wave("gfx942")
    with pytest.raises(RuntimeError, match="scratch address out of range"):
        wave.run(instruction("scratch_load_dword", d=vgpr(TO), imm=SCRATCH_LANE_BYTES - 3))


@pytest.mark.parametrize("dwords", [1, 3, 4])
def test_global_load_to_lds(dwords: int) -> None:
    """Lane after lane from M0 plus the instruction offset; the LDS place of a lane is fixed."""
    rng = np.random.default_rng(dwords)
    wave = Wave("gfx950")
    scramble(wave, rng)
    memory = Memory(wave, rng, 4 * dwords)
    offset, m0 = 8, 64
    wave.s[125] = m0
    wave.put(ADDRESS, (memory.start + memory.at - offset).astype(np.uint64))
    want = wave.lds.copy()
    for lane in active_lanes(wave):
        to = m0 + offset + 4 * dwords * lane
        at = memory.at[lane]
        want[to : to + 4 * dwords] = memory.data[at : at + 4 * dwords]
    suffix = {1: "dword", 3: "dwordx3", 4: "dwordx4"}[dwords]
    wave.run(instruction(f"global_load_lds_{suffix}", a=vgpr(ADDRESS, 2), imm=offset))
    assert len(want) == LDS_BYTES
    np.testing.assert_array_equal(wave.lds, want)


SCALAR = {
    "gfx942": {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16},
    "gfx1201": {"b32": 1, "b64": 2, "b96": 3, "b128": 4, "b256": 8, "b512": 16},
}


@pytest.mark.parametrize("chip", CHIPS)
def test_scalar_loads(chip: str) -> None:
    """The low two bits of the address do not count; an SGPR offset may be added."""
    memory = np.random.default_rng(1).integers(0, 1 << 32, 64, np.uint32)
    for suffix, dwords in SCALAR[chip].items():
        for immediate, scalar in ((0, None), (8, None), (10, 5), (-4, 12)):
            wave = Wave(chip)
            use_base(wave, memory.ctypes.data + 16)
            wave.s[6] = scalar or 0
            operands = {"x": sgpr(6)} if scalar is not None else {}
            record = {"d": sgpr(32, dwords), "a": sgpr(BASE, 2), "imm": immediate}
            wave.run(instruction(f"s_load_{suffix}", **record, **operands))
            first = (16 + (immediate + (scalar or 0)) // 4 * 4) // 4
            np.testing.assert_array_equal(wave.s[32 : 32 + dwords], memory[first : first + dwords])


@pytest.mark.parametrize("chip", CHIPS)
def test_scalar_buffer_loads(chip: str) -> None:
    """Dwords beyond the resource's size read 0."""
    memory = np.random.default_rng(2).integers(0, 1 << 32, 64, np.uint32)
    for suffix, dwords in SCALAR[chip].items():
        for offset, size in ((0, 256), (8, 64), (20, 28), (40, 16)):
            wave = Wave(chip)
            use_base(wave, memory.ctypes.data)
            wave.s[BASE + 2] = size
            record = {"d": sgpr(32, dwords), "a": sgpr(BASE, 4), "imm": offset}
            wave.run(instruction(f"s_buffer_load_{suffix}", **record))
            inside = 4 * np.arange(dwords) + offset + 4 <= size
            want = np.where(inside, memory[offset // 4 : offset // 4 + dwords], 0)
            np.testing.assert_array_equal(wave.s[32 : 32 + dwords], want)
