"""LDS instructions one by one: bytes in, registers out, lanes and addresses in Python's integers."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.vgpu.support.formats import same, sample
from tests.vgpu.support.instructions import LDS_BYTES, Wave, instruction, vgpr
from tests.vgpu.support.memory_forms import (
    Form,
    active_lanes,
    lds_loads,
    lds_stores,
    loaded,
    registers,
    scramble,
    stored,
)

CHIPS = ["gfx942", "gfx1100"]
ADDRESS, DATA, SECOND, TO = 100, 110, 120, 130


def wave_with_lds(chip: str, seed: int) -> tuple[Wave, np.random.Generator]:
    rng = np.random.default_rng(seed)
    wave = Wave(chip)
    scramble(wave, rng)
    wave.lds[:] = rng.integers(0, 256, LDS_BYTES, np.uint8)
    return wave, rng


def inside(address: int, size: int) -> bool:
    return address + size <= LDS_BYTES


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("offset", [0, 13])
def test_lds_loads(chip: str, offset: int) -> None:
    """At any alignment; what lies outside reads 0."""
    for name, form in lds_loads(chip).items():
        wave, rng = wave_with_lds(chip, len(name))
        address = rng.integers(0, LDS_BYTES + 8, wave.lanes).astype(np.uint32)
        address[:3] = LDS_BYTES - form.size - offset + np.array([0, 1, -1])
        wave.put(ADDRESS, address)
        before = wave.v.copy()
        wave.run(instruction(name, d=vgpr(TO, form.dwords), a=vgpr(ADDRESS), imm=offset))
        for lane in range(wave.lanes):
            old = before[TO : TO + form.dwords, lane].tolist()
            at = int(address[lane]) + offset
            data = wave.lds[at : at + form.size].tobytes() if inside(at, form.size) else b""
            want = loaded(form, data.ljust(form.size, b"\0"), old)
            if lane not in active_lanes(wave):
                want = old
            assert registers(wave, TO, form.dwords, lane) == want, (name, lane)


@pytest.mark.parametrize("chip", CHIPS)
def test_lds_stores(chip: str) -> None:
    """Lanes write in their order; what lies outside is dropped."""
    for name, form in lds_stores(chip).items():
        wave, rng = wave_with_lds(chip, len(name))
        address = rng.integers(0, LDS_BYTES + 8, wave.lanes).astype(np.uint32)
        address[:2] = LDS_BYTES - form.size - 5 + np.array([0, 1])
        wave.put(ADDRESS, address)
        want = bytearray(wave.lds.tobytes())
        data = vgpr(DATA, form.dwords)
        for lane in active_lanes(wave):
            at = int(address[lane]) + 5
            if inside(at, form.size):
                want[at : at + form.size] = stored(form, registers(wave, DATA, form.dwords, lane))
        wave.run(instruction(name, a=vgpr(ADDRESS), b=data, imm=5))
        assert wave.lds.tobytes() == bytes(want), name


TWO = {"_b32": (4, 1), "_b64": (8, 1), "st64_b32": (4, 64), "st64_b64": (8, 64)}
RDNA_TWO = {"st64_b32": "_stride64_b32", "st64_b64": "_stride64_b64"}


def two_name(chip: str, verb: str, suffix: str) -> str:
    if chip.startswith("gfx9"):
        return f"ds_{verb}2{suffix}"
    return f"ds_{ {'read': 'load', 'write': 'store'}[verb] }_2addr{RDNA_TWO.get(suffix, suffix)}"


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("suffix", TWO)
def test_lds_two_addresses(chip: str, suffix: str) -> None:
    """Offsets count elements, or 64 elements; the address register may be the first result."""
    size, stride = TWO[suffix]
    form = Form(size)
    offsets = (2, 5) if stride == 64 else (3, 200)
    steps = [offset * size * stride for offset in offsets]
    wave, rng = wave_with_lds(chip, size)
    address = (rng.integers(0, 160, wave.lanes) * 4).astype(np.uint32)
    wave.put(TO, address)
    before = wave.v.copy()
    places = {"imm": offsets[0], "imm1": offsets[1]}
    result = vgpr(TO, 2 * form.dwords)
    wave.run(instruction(two_name(chip, "read", suffix), d=result, a=vgpr(TO), **places))
    for lane in range(wave.lanes):
        starts = [int(address[lane]) + step for step in steps]
        want = [r for at in starts for r in loaded(form, wave.lds[at : at + size].tobytes(), [])]
        if lane not in active_lanes(wave):
            want = before[TO : TO + 2 * form.dwords, lane].tolist()
        assert registers(wave, TO, 2 * form.dwords, lane) == want

    wave, rng = wave_with_lds(chip, size + 1)
    address = (rng.permutation(wave.lanes) * 2 * size).astype(np.uint32)
    wave.put(ADDRESS, address)
    want_bytes = bytearray(wave.lds.tobytes())
    for number, step in zip((DATA, SECOND), steps, strict=True):
        for lane in active_lanes(wave):
            at = int(address[lane]) + step
            want_bytes[at : at + size] = stored(form, registers(wave, number, form.dwords, lane))
    operands = {
        "a": vgpr(ADDRESS),
        "b": vgpr(DATA, form.dwords),
        "c": vgpr(SECOND, form.dwords),
    }
    wave.run(instruction(two_name(chip, "write", suffix), **operands, **places))
    assert wave.lds.tobytes() == bytes(want_bytes)


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_transposed_load(bits: int) -> None:
    """16 lanes read 16 x 64 bits as rows of 16 elements; each lane gets a column of them.

    Source: the CDNA4 ISA guide, DS_READ_B64_TR_B*: the block that 16 lanes load is transposed.
    """
    rng = np.random.default_rng(bits)
    wave = Wave("gfx950")
    per_lane = 64 // bits
    elements = rng.integers(0, 1 << bits, (4, per_lane, 16)).astype(object)
    for group in range(4):
        flat = elements[group].reshape(16, per_lane)  # one row of this a lane
        for lane in range(16):
            value = sum(int(e) << bits * i for i, e in enumerate(flat[lane]))
            at = 128 * group + 8 * lane
            wave.lds[at : at + 8] = np.frombuffer(value.to_bytes(8, "little"), np.uint8)
    wave.put(ADDRESS, np.arange(64, dtype=np.uint32) * 8)
    wave.run(instruction(f"ds_read_b64_tr_b{bits}", d=vgpr(TO, 2), a=vgpr(ADDRESS)))
    got = wave.get(TO, np.uint64)
    for lane in range(64):
        column = elements[lane // 16][:, lane % 16]
        assert int(got[lane]) == sum(int(e) << bits * i for i, e in enumerate(column)), lane


def test_lane_moves_through_lds() -> None:
    """ds_bpermute pulls, ds_permute pushes, ds_swizzle moves within 32 lanes; no memory changes."""
    wave, rng = wave_with_lds("gfx942", 3)
    target = rng.permutation(64)
    address = (target * 4 + rng.integers(0, 4, 64) + 256 * rng.integers(0, 3, 64)).astype(np.uint32)
    wave.put(ADDRESS, address)
    data, old, lds = wave.v[DATA].copy(), wave.v[TO].copy(), wave.lds.copy()
    operands = {"a": vgpr(ADDRESS), "b": vgpr(DATA)}
    active = active_lanes(wave)
    wave.run(instruction("ds_bpermute_b32", d=vgpr(TO), **operands))
    for lane in range(64):
        source = int(target[lane])
        want = (data[source] if source in active else 0) if lane in active else old[lane]
        assert wave.v[TO, lane] == want
    wave.v[TO] = old
    wave.run(instruction("ds_permute_b32", d=vgpr(TO), **operands))
    pushed = {int(target[lane]): data[lane] for lane in active}
    for lane in range(64):
        assert wave.v[TO, lane] == (pushed.get(lane, 0) if lane in active else old[lane])
    swizzles: dict[int, Callable[[int], int]] = {
        0x8000 | 0b01_00_11_10: lambda lane: lane & ~3 | (2, 3, 0, 1)[lane & 3],
        0x1F | 3 << 10: lambda lane: lane ^ 3,  # and 31, or 0, xor 3
        0x1C | 2 << 5 | 1 << 10: lambda lane: (lane & ~3 | 2) ^ 1,
    }
    for offset, source_of in swizzles.items():
        wave.v[TO] = old
        wave.run(instruction("ds_swizzle_b32", d=vgpr(TO), a=vgpr(DATA), imm=offset))
        for lane in active:
            source = source_of(lane)
            assert wave.v[TO, lane] == (data[source] if source in active else 0)
    assert (wave.lds == lds).all()
    with pytest.raises(RuntimeError, match="ds_swizzle"):
        wave.run(instruction("ds_swizzle_b32", d=vgpr(TO), a=vgpr(DATA), imm=0xE000))
    wave.run(instruction("ds_nop"))


Formula = Callable[[np.ndarray, np.ndarray], np.ndarray]
ATOMICS: dict[tuple[str, str], Formula] = {
    ("add", "u32"): lambda a, b: a + b,
    ("sub", "u32"): lambda a, b: a - b,
    ("add", "u64"): lambda a, b: a + b,
    ("add", "f32"): lambda a, b: a + b,
    ("min", "i32"): np.minimum,
    ("max", "i32"): np.maximum,
    ("min", "u32"): np.minimum,
    ("max", "u32"): np.maximum,
    ("and", "b32"): lambda a, b: a & b,
    ("or", "b32"): lambda a, b: a | b,
    ("xor", "b32"): lambda a, b: a ^ b,
    ("min", "f32"): lambda a, b: np.where(b < a, b, a),
    ("max", "f32"): lambda a, b: np.where(b > a, b, a),
}


@pytest.mark.parametrize(("operation", "kind"), ATOMICS)
@pytest.mark.parametrize("returns", [False, True])
def test_lds_atomics(operation: str, kind: str, returns: bool) -> None:
    """Each lane on an element of its own, and all lanes on one, in their order."""
    rng = np.random.default_rng(len(operation))
    wave = Wave("gfx942")
    sampled = kind.replace("b32", "u32")
    memory, value = sample(sampled, 64, rng), sample(sampled, 64, rng)
    if kind == "f32":  # the first lanes: NaN in memory and in the register, pairs of zeros
        memory[:4], value[:4] = (np.nan, 1, 0.0, -0.0), (1, np.nan, -0.0, 0.0)
    size = memory.dtype.itemsize
    wave.lds[8 : 8 + 64 * size] = memory.view(np.uint8)
    wave.put(ADDRESS, np.arange(64, dtype=np.uint32) * size)
    wave.put(DATA, value)
    name = f"ds_{operation}{'_rtn' if returns else ''}_{kind}"
    operands = {"a": vgpr(ADDRESS), "b": vgpr(DATA, size // 4), "imm": 8}
    operands |= {"d": vgpr(TO, size // 4)} if returns else {}
    wave.exec = (1 << 64) - 1 - (1 << 5)
    wave.run(instruction(name, **operands))
    with np.errstate(all="ignore"):
        want = ATOMICS[operation, kind](memory, value)
    want[5] = memory[5]
    got = wave.lds[8 : 8 + 64 * size].copy().view(memory.dtype)
    assert same(got, want).all()
    if returns:
        back = wave.get(TO, memory.dtype.type)
        assert same(back, np.where(np.arange(64) == 5, np.zeros_like(memory), memory)).all()


def test_lds_atomics_of_one_address_are_all_done() -> None:
    wave = Wave("gfx942")
    wave.put(DATA, np.arange(64, dtype=np.uint32))
    wave.run(instruction("ds_add_u32", a=vgpr(ADDRESS), b=vgpr(DATA)))
    assert wave.lds[:4].view(np.uint32)[0] == 63 * 64 // 2
