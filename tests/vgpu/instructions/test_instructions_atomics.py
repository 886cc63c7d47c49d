"""Atomic operations on global, flat and buffer memory, lane by lane in Python or numpy."""

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.vgpu.program import OFFEN
from tests.vgpu.support.formats import FLOATS, larger, same, sample, smaller
from tests.vgpu.support.instructions import Wave, instruction, sgpr, vgpr

ADDRESS, DATA, TO = 100, 110, 130
RESOURCE = 8


@dataclass(frozen=True)
class Operation:
    """What the memory of a lane becomes: a formula of the old values, the operands, the compares."""

    kind: str
    formula: Callable[..., np.ndarray]
    rdna: str = ""  # its name on RDNA, where another
    chip: str = "gfx942"


def packed(dtype: type) -> Callable[..., np.ndarray]:
    """Sums of the two halves of a dword."""

    def formula(old: np.ndarray, value: np.ndarray, _: np.ndarray) -> np.ndarray:
        a, b = (x.view(dtype).astype(np.float32) for x in (old, value))
        return (a + b).astype(dtype).view(np.uint32)

    return formula


def sized(word: str, signed: str, suffix: str) -> dict[str, Operation]:
    """The integer operations of one width: source, the ISA guides' tables of vector memory atomics."""
    bits = word[1:]
    rows = {
        "swap": (word, lambda a, b, c: b, f"swap_b{bits}"),
        "cmpswap": (word, lambda a, b, c: np.where(a == c, b, a), f"cmpswap_b{bits}"),
        "add": (word, lambda a, b, c: a + b, f"add_u{bits}"),
        "sub": (word, lambda a, b, c: a - b, f"sub_u{bits}"),
        "smin": (signed, lambda a, b, c: np.minimum(a, b), f"min_i{bits}"),
        "smax": (signed, lambda a, b, c: np.maximum(a, b), f"max_i{bits}"),
        "umin": (word, lambda a, b, c: np.minimum(a, b), f"min_u{bits}"),
        "umax": (word, lambda a, b, c: np.maximum(a, b), f"max_u{bits}"),
        "and": (word, lambda a, b, c: a & b, f"and_b{bits}"),
        "or": (word, lambda a, b, c: a | b, f"or_b{bits}"),
        "xor": (word, lambda a, b, c: a ^ b, f"xor_b{bits}"),
        "inc": (word, lambda a, b, c: np.where(a >= b, 0 * a, a + 1), f"inc_u{bits}"),
        "dec": (word, lambda a, b, c: np.where((a == 0) | (a > b), b, a - 1), f"dec_u{bits}"),
    }
    return {name + suffix: Operation(*row) for name, row in rows.items()}


OPERATIONS = sized("u32", "i32", "") | sized("u64", "i64", "_x2") | {
    "csub_u32": Operation(
        "u32", lambda a, b, c: np.where(a < b, 0 * a, a - b), "sub_clamp_u32", chip="gfx1100"
    ),
    "cond_sub_u32": Operation("u32", lambda a, b, c: np.where(a >= b, a - b, a), chip="gfx1201"),
    "add_f32": Operation("f32", lambda a, b, c: a + b),
    "min_f32": Operation("f32", lambda a, b, c: np.where(b < a, b, a), chip="gfx1100"),
    "max_f32": Operation("f32", lambda a, b, c: np.where(b > a, b, a), chip="gfx1100"),
    "min_num_f32": Operation("f32", lambda a, b, c: smaller(a, b), chip="gfx1201"),
    "max_num_f32": Operation("f32", lambda a, b, c: larger(a, b), chip="gfx1201"),
    "cmpswap_f32": Operation("f32", lambda a, b, c: np.where(a == c, b, a), chip="gfx1100"),
    "add_f64": Operation("f64", lambda a, b, c: a + b),
    "min_f64": Operation("f64", lambda a, b, c: np.where(b < a, b, a)),
    "max_f64": Operation("f64", lambda a, b, c: np.where(b > a, b, a)),
    "pk_add_f16": Operation("u32", packed(np.float16)),
    "pk_add_bf16": Operation("u32", packed(ml_dtypes.bfloat16)),
}  # fmt: skip


def place(wave: Wave, space: str, start: int, offsets: np.ndarray, size: int) -> dict[str, object]:
    """Registers and operands of an access at `start + offsets`."""
    if space != "buffer":
        wave.put(ADDRESS, (start + offsets).astype(np.uint64))
        return {"a": vgpr(ADDRESS, 2)}
    wave.s[RESOURCE : RESOURCE + 3] = start & 0xFFFFFFFF, start >> 32, size
    wave.put(ADDRESS, offsets.astype(np.uint32))
    return {"a": vgpr(ADDRESS), "c": sgpr(RESOURCE, 4), "flags": OFFEN}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("space", ["global", "flat", "buffer"])
@pytest.mark.parametrize("returns", [False, True])
def test_atomic(name: str, space: str, returns: bool) -> None:
    operation = OPERATIONS[name]
    rng = np.random.default_rng(len(name))
    wave = Wave(operation.chip)
    lanes = wave.lanes
    memory, value, compare = (sample(operation.kind, lanes, rng) for _ in range(3))
    if (
        operation.kind in FLOATS
    ):  # the first lanes: NaN in memory and in the register, pairs of zeros
        memory[:4], value[:4] = (np.nan, 1, 0.0, -0.0), (1, np.nan, -0.0, 0.0)
    compare = np.where(rng.random(lanes) < 0.5, memory, compare)
    size = memory.dtype.itemsize
    wave.put(DATA, value)
    wave.put(DATA + size // 4, compare)
    wave.exec &= ~(1 << 7)
    want = np.zeros_like(memory)
    with np.errstate(all="ignore"):
        want[:] = operation.formula(memory, value, compare)
    want[7] = memory[7]
    data = memory.copy()
    order = rng.permutation(lanes)
    data[order] = memory
    start = data.ctypes.data
    operands = place(wave, space, start, order * size, data.nbytes)
    count = 2 if "cmpswap" in name else 1
    operands["b"] = vgpr(DATA, count * size // 4)
    operands |= {"d": vgpr(TO, size // 4)} if returns else {}
    old = wave.get(TO, memory.dtype.type)
    wave.run(instruction(f"{space}_atomic_{name}", **operands))
    got = data[order]
    dtype = {"pk_add_f16": np.float16, "pk_add_bf16": ml_dtypes.bfloat16}.get(name)
    if dtype:
        assert same(got.view(dtype), want.view(dtype)).all()
    else:
        assert same(got, want).all()
    back = np.where(np.arange(lanes) == 7, old, memory if returns else old)
    assert same(wave.get(TO, memory.dtype.type), back).all()


RDNA_CASES = [(n, o) for n, o in OPERATIONS.items() if o.rdna and o.chip == "gfx942"]


@pytest.mark.parametrize(("name", "operation"), RDNA_CASES, ids=lambda x: x if str(x) == x else "")
def test_rdna_name_is_the_same_row(name: str, operation: Operation) -> None:
    rng = np.random.default_rng(3)
    results = []
    start, value = (sample(operation.kind, 32, rng) for _ in range(2))
    for chip, spelled in (("gfx942", name), ("gfx1201", operation.rdna)):
        wave = Wave(chip)
        data = start.copy()
        size = data.dtype.itemsize
        wave.put(DATA, value)
        wave.put(DATA + size // 4, start)
        wave.exec = 0xFFFFFFFF
        operands = place(wave, "global", data.ctypes.data, np.arange(wave.lanes) * size, 0)
        wave.run(instruction(f"global_atomic_{spelled}", b=vgpr(DATA, size // 2), **operands))
        results.append(data)
    np.testing.assert_array_equal(*results)
    assert (results[0] != start).any()


def test_lanes_on_one_address_are_all_done() -> None:
    wave = Wave("gfx942")
    total = np.zeros(1, np.uint64)
    wave.put(DATA, np.arange(64, dtype=np.uint64))
    operands = place(wave, "global", total.ctypes.data, np.zeros(64, np.int64), 0)
    wave.run(instruction("global_atomic_add_x2", b=vgpr(DATA, 2), d=vgpr(TO, 2), **operands))
    assert total[0] == 63 * 64 // 2
    np.testing.assert_array_equal(wave.get(TO, np.uint64), np.arange(64) * (np.arange(64) - 1) // 2)


def test_buffer_atomic_out_of_range_gives_zero_and_changes_nothing() -> None:
    wave = Wave("gfx942")
    data = np.full(64, 5, np.uint32)
    operands = place(wave, "buffer", data.ctypes.data, np.arange(64) * 4, 130)
    wave.put(DATA, np.ones(64, np.uint32))
    wave.put(TO, np.full(64, 9, np.uint32))
    wave.run(instruction("buffer_atomic_add", b=vgpr(DATA), d=vgpr(TO), **operands))
    inside = np.arange(64) * 4 + 4 <= 130
    np.testing.assert_array_equal(data, np.where(inside, 6, 5))
    np.testing.assert_array_equal(wave.get(TO, np.uint32), np.where(inside, 5, 0))


def test_misaligned_atomic_is_an_error() -> None:
    wave = Wave("gfx942")
    data = np.zeros(4, np.uint32)
    operands = place(wave, "global", data.ctypes.data, np.full(64, 2), 0)
    with pytest.raises(RuntimeError, match="misaligned address of an atomic"):
        wave.run(instruction("global_atomic_add", b=vgpr(DATA), **operands))
