"""Raw buffer instructions one by one: addresses, the range check of each dword, LDS and private forms."""

import numpy as np
import pytest

from conv_compiler.vgpu.program import LDS, OFFEN
from tests.vgpu.support.instructions import (
    LDS_BYTES,
    SCRATCH_LANE_BYTES,
    Wave,
    instruction,
    sgpr,
    vgpr,
)
from tests.vgpu.support.memory_forms import (
    Form,
    active_lanes,
    loaded,
    loads,
    registers,
    scramble,
    stored,
    stores,
)

CHIPS = ["gfx942", "gfx1100"]
ADDRESS, DATA, TO = 100, 110, 130
RESOURCE, OFFSET = 8, 20
MEMORY_BYTES, RECORDS, SHIFT = 4096, 1021, 32
SWIZZLED = 1 << 31


class Buffer:
    """A resource of RECORDS bytes inside a larger allocation, whose rest must stay as it is."""

    def __init__(self, wave: Wave, rng: np.random.Generator) -> None:
        self.data = rng.integers(0, 256, MEMORY_BYTES, np.uint8)
        start = self.data.ctypes.data
        wave.s[RESOURCE : RESOURCE + 3] = start & 0xFFFFFFFF, start >> 32, RECORDS
        wave.s[OFFSET] = SHIFT


def lane_offsets(wave: Wave, rng: np.random.Generator, form: Form, immediate: int) -> np.ndarray:
    """Offsets of any alignment around the end of the buffer, and beyond it in both directions."""
    # Steps of 16 keep lanes that store from overlapping.
    offsets = rng.permutation(72)[: wave.lanes] * 16 + rng.integers(0, 17 - form.size, wave.lanes)
    offsets[0] = RECORDS - form.size
    offsets[1] = RECORDS - form.size + 17
    offsets[2] = 1 << 31
    offsets[3] = -1  # wraps around with the instruction's offset when that is not 0
    return (offsets - immediate).astype(np.int64) & 0xFFFFFFFF


def inside(offset: int, size: int) -> list[bool]:
    """Which dwords of an access are in range; a narrow one is checked as a whole."""
    step = min(size, 4)
    return [offset + start + step <= RECORDS for start in range(0, size, step)]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("immediate", [0, 100, 4095])
def test_buffer_loads(chip: str, immediate: int) -> None:
    """The scalar offset moves the base and does not take part in the check."""
    for name, form in loads("buffer", chip).items():
        rng = np.random.default_rng(len(name) + immediate)
        wave = Wave(chip)
        scramble(wave, rng)
        buffer = Buffer(wave, rng)
        offsets = lane_offsets(wave, rng, form, immediate)
        wave.put(ADDRESS, offsets.astype(np.uint32))
        before = wave.v.copy()
        operands = {"a": vgpr(ADDRESS), "c": sgpr(RESOURCE, 4), "x": sgpr(OFFSET)}
        result = vgpr(TO, form.dwords)
        wave.run(instruction(name, d=result, imm=immediate, flags=OFFEN, **operands))
        for lane in range(wave.lanes):
            old = before[TO : TO + form.dwords, lane].tolist()
            offset = (int(offsets[lane]) + immediate) & 0xFFFFFFFF
            data = b"".join(
                buffer.data[at : at + 4].tobytes()[: form.size] if ok else bytes(min(form.size, 4))
                for k, ok in enumerate(inside(offset, form.size))
                for at in [offset + SHIFT + 4 * k]
            )
            want = loaded(form, data, old) if lane in active_lanes(wave) else old
            assert registers(wave, TO, form.dwords, lane) == want, (name, lane, offset)


@pytest.mark.parametrize("chip", CHIPS)
def test_buffer_stores(chip: str) -> None:
    """Dwords out of range are dropped, the others of the same lane are written."""
    for name, form in stores("buffer", chip).items():
        rng = np.random.default_rng(len(name))
        wave = Wave(chip)
        scramble(wave, rng)
        buffer = Buffer(wave, rng)
        offsets = lane_offsets(wave, rng, form, 8)
        wave.put(ADDRESS, offsets.astype(np.uint32))
        want = bytearray(buffer.data.tobytes())
        for lane in active_lanes(wave):
            offset = (int(offsets[lane]) + 8) & 0xFFFFFFFF
            data = stored(form, registers(wave, DATA, form.dwords, lane))
            for k, ok in enumerate(inside(offset, form.size)):
                at = offset + SHIFT + 4 * k
                piece = data[4 * k : 4 * k + 4]
                if ok:
                    want[at : at + len(piece)] = piece
        operands = {"a": vgpr(ADDRESS), "c": sgpr(RESOURCE, 4), "x": sgpr(OFFSET)}
        data_in = vgpr(DATA, form.dwords)
        wave.run(instruction(name, b=data_in, imm=8, flags=OFFEN, **operands))
        assert buffer.data.tobytes() == bytes(want), name


def test_buffer_load_without_lane_offsets() -> None:
    wave = Wave("gfx942")
    buffer = Buffer(wave, np.random.default_rng(0))
    operands = {"c": sgpr(RESOURCE, 4), "x": sgpr(OFFSET)}
    wave.run(instruction("buffer_load_dword", d=vgpr(TO), imm=20, **operands))
    want = buffer.data[SHIFT + 20 : SHIFT + 24].view(np.uint32)[0]
    assert (wave.get(TO, np.uint32) == want).all()


@pytest.mark.parametrize("dwords", [1, 3, 4])
def test_buffer_load_to_lds(dwords: int) -> None:
    """Dwords out of range are written to LDS as zeros."""
    rng = np.random.default_rng(dwords)
    wave = Wave("gfx950")
    scramble(wave, rng)
    wave.lds[:] = 0xEE
    buffer = Buffer(wave, rng)
    size, m0 = 4 * dwords, 128
    offsets = lane_offsets(wave, rng, Form(size), 0)
    wave.put(ADDRESS, offsets.astype(np.uint32))
    wave.s[125] = m0
    want = wave.lds.copy()
    for lane in active_lanes(wave):
        to = m0 + 4 + size * lane
        offset = (int(offsets[lane]) + 4) & 0xFFFFFFFF
        for k, ok in enumerate(inside(offset, size)):
            at = offset + SHIFT + 4 * k
            want[to + 4 * k : to + 4 * k + 4] = buffer.data[at : at + 4] if ok else 0
    suffix = {1: "dword", 3: "dwordx3", 4: "dwordx4"}[dwords]
    operands = {"a": vgpr(ADDRESS), "c": sgpr(RESOURCE, 4), "x": sgpr(OFFSET)}
    wave.run(instruction(f"buffer_load_{suffix}", imm=4, flags=OFFEN | LDS, **operands))
    assert len(want) == LDS_BYTES
    np.testing.assert_array_equal(wave.lds, want)


def test_private_segment_resource() -> None:
    """A swizzled resource gives every lane its window; the scalar offset counts for all lanes."""
    rng = np.random.default_rng(7)
    wave = Wave("gfx90a")
    wave.scratch[:] = rng.integers(0, 256, wave.scratch.shape, np.uint8)
    wave.s[RESOURCE + 1] = SWIZZLED
    wave.s[OFFSET] = 4 * wave.lanes
    at = rng.integers(0, SCRATCH_LANE_BYTES - 4 - 12 - 8, wave.lanes)
    wave.put(ADDRESS, at.astype(np.uint32))
    operands = {"a": vgpr(ADDRESS), "c": sgpr(RESOURCE, 4), "x": sgpr(OFFSET)}
    wave.run(instruction("buffer_load_dwordx2", d=vgpr(TO, 2), imm=12, flags=OFFEN, **operands))
    for lane in range(wave.lanes):
        start = at[lane] + 4 + 12
        want = loaded(Form(8), wave.scratch[lane, start : start + 8].tobytes(), [])
        assert registers(wave, TO, 2, lane) == want
    with pytest.raises(RuntimeError, match="private segment address out of range"):
        wave.run(instruction("buffer_load_dwordx2", d=vgpr(TO, 2), imm=60, flags=OFFEN, **operands))
