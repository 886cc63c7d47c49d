"""LDS instructions one by one: bytes in, registers out, lanes and addresses in Python's integers."""

from collections.abc import Callable

import ml_dtypes
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


Formula = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def halves(kind: type) -> Formula:
    """Two numbers of 16 bits in a dword, added."""

    def formula(a: np.ndarray, b: np.ndarray, _: np.ndarray) -> np.ndarray:
        sums = a.view(kind) + b.view(kind)
        return sums.astype(kind).view(a.dtype)

    return formula


def number(pick: Formula) -> Formula:
    """A NaN loses against a number."""
    return lambda a, b, c: np.where(np.isnan(a), b, np.where(np.isnan(b), a, pick(a, b, c)))


def ordered_zeros(most: bool) -> Formula:
    def formula(a: np.ndarray, b: np.ndarray, _: np.ndarray) -> np.ndarray:
        zeros = (a == 0) & (b == 0)
        first = np.signbit(a) != most
        return np.where(zeros, np.where(first, a, b), (np.maximum if most else np.minimum)(a, b))

    return formula


def of_integers(size: int) -> dict[tuple[str, str], Formula]:
    u, i, b = f"u{size}", f"i{size}", f"b{size}"
    return {
        ("add", u): lambda a, b, c: a + b,
        ("sub", u): lambda a, b, c: a - b,
        ("rsub", u): lambda a, b, c: b - a,
        ("inc", u): lambda a, b, c: np.where(a >= b, a ^ a, a + a.dtype.type(1)),
        ("dec", u): lambda a, b, c: np.where((a == 0) | (a > b), b, a - a.dtype.type(1)),
        ("min", i): lambda a, b, c: np.minimum(a, b),
        ("max", i): lambda a, b, c: np.maximum(a, b),
        ("min", u): lambda a, b, c: np.minimum(a, b),
        ("max", u): lambda a, b, c: np.maximum(a, b),
        ("and", b): lambda a, b, c: a & b,
        ("or", b): lambda a, b, c: a | b,
        ("xor", b): lambda a, b, c: a ^ b,
        ("mskor", b): lambda a, b, c: (a & ~b) | c,
        ("cmpst", b): lambda a, b, c: np.where(a == b, c, a),  # gfx9: compared with the first
        ("cmpstore", b): lambda a, b, c: np.where(a == c, b, a),
    }


def of_floats(kind: str) -> dict[tuple[str, str], Formula]:
    return {
        ("add", kind): lambda a, b, c: a + b,
        ("min", kind): lambda a, b, c: np.where(b < a, b, a),
        ("max", kind): lambda a, b, c: np.where(b > a, b, a),
        ("min_num", kind): number(ordered_zeros(most=False)),
        ("max_num", kind): number(ordered_zeros(most=True)),
        ("cmpst", kind): lambda a, b, c: np.where(a == b, c, a),
        ("cmpstore", kind): lambda a, b, c: np.where(a == c, b, a),
    }


ATOMICS: dict[tuple[str, str], Formula] = {
    **of_integers(32),
    **of_integers(64),
    **of_floats("f32"),
    **of_floats("f64"),
    ("cond_sub", "u32"): lambda a, b, c: np.where(a >= b, a - b, a),
    ("sub_clamp", "u32"): lambda a, b, c: np.where(a < b, a ^ a, a - b),
    ("pk_add", "f16"): halves(np.float16),
    ("pk_add", "bf16"): halves(ml_dtypes.bfloat16),
}
# Exchanges, which give the old value only.
EXCHANGES: dict[str, Formula] = {
    "ds_wrxchg_rtn_b32": lambda a, b, c: b,
    "ds_wrxchg_rtn_b64": lambda a, b, c: b,
    "ds_wrap_rtn_b32": lambda a, b, c: np.where(a >= b, a - b, a + c),
    "ds_condxchg32_rtn_b64": lambda a, b, c: (
        np.where(
            b.view(np.uint32).reshape(-1, 2) >> 31,
            b.view(np.uint32).reshape(-1, 2) & 0x7FFFFFFF,
            a.view(np.uint32).reshape(-1, 2),
        )
        .copy()
        .view(np.uint64)[:, 0]
    ),
}
TYPES = {"b32": "u32", "b64": "u64", "f16": "u32", "bf16": "u32"}


def atomic_case(name: str, kind: str, formula: Formula, *, returns: bool) -> None:
    """Each lane on an element of its own, one lane off; some find in memory what they compare with."""
    rng = np.random.default_rng(len(name))
    wave = Wave("gfx942")
    scramble(wave, rng)
    sampled = TYPES.get(kind, kind)
    memory, value, second = (sample(sampled, 64, rng) for _ in range(3))
    value[8:16], second[16:24] = memory[8:16], memory[16:24]
    if kind in ("f32", "f64"):  # NaN in memory and in the register, pairs of zeros
        memory[:4], value[:4] = (np.nan, 1, 0.0, -0.0), (1, np.nan, -0.0, 0.0)
    size = memory.dtype.itemsize
    wave.lds[8 : 8 + 64 * size] = memory.view(np.uint8)
    wave.put(ADDRESS, np.arange(64, dtype=np.uint32) * size)
    wave.put(DATA, value)
    wave.put(SECOND, second)
    old = wave.get(TO, memory.dtype.type)
    operands = {"a": vgpr(ADDRESS), "b": vgpr(DATA, size // 4), "imm": 8}
    operands |= {"c": vgpr(SECOND, size // 4)}
    operands |= {"d": vgpr(TO, size // 4)} if returns else {}
    wave.exec = (1 << 64) - 1 - (1 << 5)
    wave.run(instruction(name, **operands))
    with np.errstate(all="ignore"):
        want = formula(memory, value, second)
    want[5] = memory[5]
    got = wave.lds[8 : 8 + 64 * size].copy().view(memory.dtype)
    if kind in ("f16", "bf16"):
        halves_of = np.float16 if kind == "f16" else ml_dtypes.bfloat16
        got, want = got.view(halves_of), want.view(halves_of)
    assert same(got, want.astype(got.dtype)).all()
    if returns:
        lane = np.arange(64)
        assert same(wave.get(TO, memory.dtype.type), np.where(lane == 5, old, memory)).all()


@pytest.mark.parametrize(("operation", "kind"), ATOMICS)
@pytest.mark.parametrize("returns", [False, True])
def test_lds_atomics(operation: str, kind: str, returns: bool) -> None:
    name = f"ds_{operation}{'_rtn' if returns else ''}_{kind}"
    atomic_case(name, kind, ATOMICS[operation, kind], returns=returns)


@pytest.mark.parametrize("name", EXCHANGES)
def test_lds_exchanges(name: str) -> None:
    atomic_case(name, name[-3:], EXCHANGES[name], returns=True)


@pytest.mark.parametrize("stride", [1, 64])
@pytest.mark.parametrize("size", [4, 8])
def test_two_exchanges_at_once(size: int, stride: int) -> None:
    """Offsets count elements, or 64 of them; an address outside gives 0 and changes nothing."""
    wave, rng = wave_with_lds("gfx942", size)
    wave.exec = (1 << 64) - 1
    kind = np.dtype(f"u{size}")
    address = (np.arange(64) * size).astype(np.uint32)
    address[7] = LDS_BYTES
    wave.put(ADDRESS, address)
    data = [rng.integers(0, 1 << 32, 64, np.uint32).astype(kind) for _ in range(2)]
    wave.put(DATA, data[0])
    wave.put(SECOND, data[1])
    before = wave.lds.copy()
    steps = (0, 3) if stride == 64 else (0, 64)
    operands = {"a": vgpr(ADDRESS), "b": vgpr(DATA, size // 4), "c": vgpr(SECOND, size // 4)}
    name = f"ds_wrxchg2{'st64' if stride == 64 else ''}_rtn_b{8 * size}"
    places = {"imm": steps[0], "imm1": steps[1]}
    wave.run(instruction(name, d=vgpr(TO, size // 2), **operands, **places))
    want = before.copy()
    for number, step in enumerate(steps):
        got = wave.get(TO + number * size // 4, kind.type)
        for lane in range(64):
            at = int(address[lane]) + step * size * stride
            if lane == 7:
                assert got[lane] == 0
                continue
            assert got[lane] == before[at : at + size].view(kind)[0]
            want[at : at + size] = data[number][lane : lane + 1].view(np.uint8)
    np.testing.assert_array_equal(wave.lds, want)


@pytest.mark.parametrize(("name", "sign"), [("ds_append", 1), ("ds_consume", -1)])
def test_counters_of_lanes(name: str, sign: int) -> None:
    """At M0 + offset; every active lane gets the old value."""
    wave = Wave("gfx942")
    wave.lds[40:44] = np.array([1000], np.uint32).view(np.uint8)
    wave.s[125], wave.exec = 32, 0xFF00_0000_0000_000F
    wave.run(instruction(name, d=vgpr(TO), imm=8))
    assert wave.lds[40:44].view(np.uint32)[0] == 1000 + sign * 12
    active = [lane in active_lanes(wave) for lane in range(64)]
    np.testing.assert_array_equal(wave.get(TO, np.uint32), np.where(active, 1000, 0))


def test_a_misaligned_lds_atomic_is_an_error() -> None:
    wave = Wave("gfx942")
    wave.put(ADDRESS, np.full(64, 4, np.uint32))
    with pytest.raises(
        RuntimeError, match="misaligned address of an atomic, 0x4 at 0x0 `ds_add_u64"
    ):
        wave.run(instruction("ds_add_u64", a=vgpr(ADDRESS), b=vgpr(DATA, 2)))


def test_lds_atomics_of_one_address_are_all_done() -> None:
    wave = Wave("gfx942")
    wave.put(DATA, np.arange(64, dtype=np.uint32))
    wave.run(instruction("ds_add_u32", a=vgpr(ADDRESS), b=vgpr(DATA)))
    assert wave.lds[:4].view(np.uint32)[0] == 63 * 64 // 2
