"""What the executor counts, against counts by hand and the bank model of docs/vgpu.md in sets."""

import numpy as np
import pytest

from conv_compiler.vgpu.program import OFFEN, VCC
from tests.vgpu.support.instructions import Wave, instruction, sgpr, vgpr

BANKS, LINE = 32, 128
ADDRESS, DATA, TO = 100, 110, 130


def test_every_class_of_a_small_program() -> None:
    wave = Wave("gfx942")
    memory = np.zeros(1024, np.uint32)
    start = memory.ctypes.data
    wave.s[0], wave.s[1] = start & 0xFFFFFFFF, start >> 32
    wave.put(ADDRESS, np.arange(64, dtype=np.uint32) * 4)
    scalar_base = {"a": vgpr(ADDRESS), "x": sgpr(0, 2)}
    wave.run(
        instruction("s_mov_b32", d=sgpr(4), a=sgpr(128)),
        instruction("s_load_dwordx2", d=sgpr(6, 2), a=sgpr(0, 2)),
        instruction("s_waitcnt"),
        *[instruction("v_mov_b32", d=vgpr(DATA), a=vgpr(ADDRESS))] * 3,
        *[instruction("ds_write_b32", a=vgpr(ADDRESS), b=vgpr(DATA))] * 2,
        instruction("s_barrier"),
        instruction("ds_read_b32", d=vgpr(TO), a=vgpr(ADDRESS)),
        *[instruction("global_load_dword", d=vgpr(TO), **scalar_base)] * 4,
        instruction("global_store_dword", b=vgpr(DATA), **scalar_base),
        *[
            instruction(
                "v_mfma_f32_16x16x16_f16",
                d=vgpr(0, 4),
                a=vgpr(8, 2),
                b=vgpr(10, 2),
                c=vgpr(0, 4),
            )
        ]
        * 2,
        instruction("s_cbranch_scc1", imm=0),
        instruction("s_nop"),
    )
    counted = wave.counted()
    assert {name: n for name, n in counted.items() if n} == {
        "matrix": 2,
        "valu": 3,
        "salu": 1,
        "scalar_load": 1,
        "lds_read": 1,
        "lds_write": 2,
        "global_read": 4,
        "global_write": 1,
        "branch": 1,
        "barrier": 1,
        "wait": 2,
        "other": 1,  # s_endpgm
        "scalar_read_bytes": 8,
        "global_read_bytes": 4 * 64 * 4,
        "global_write_bytes": 64 * 4,
        "global_read_lines": 4 * lines(start + np.arange(64) * 4, 4),
        "global_write_lines": lines(start + np.arange(64) * 4, 4),
        "fetched_lines": lines(start + np.arange(64) * 4, 4),
        "lds_read_bytes": 64 * 4,
        "lds_write_bytes": 2 * 64 * 4,
        "lds_cycles": 3 * 2,
        "matrix_flops": 2 * 2 * 16 * 16 * 16,
    }


def lines(addresses: np.ndarray, size: int) -> int:
    """Distinct cache lines that the bytes of all lanes lie in."""
    return len({(int(at) + byte) // LINE for at in addresses for byte in range(size)})


def lds_cycles(addresses: np.ndarray, active: list[int], size: int) -> tuple[int, int]:
    """Cycles of an access, and those of them above one for each group of lanes."""
    dwords = max(1, size // 4)
    together = max(1, BANKS // dwords)
    cycles = conflicts = 0
    for first in range(0, len(addresses), together):
        banks: dict[int, set[int]] = {}
        for lane in set(range(first, first + together)) & set(active):
            for k in range(dwords):
                dword = int(addresses[lane]) // 4 + k
                banks.setdefault(dword % BANKS, set()).add(dword)
        turns = max(map(len, banks.values()), default=0)
        cycles += turns
        conflicts += max(0, turns - 1)
    return cycles, conflicts


PATTERNS = {
    "row": lambda lane, size: lane * size,
    "broadcast": lambda lane, size: 0 * lane,
    "two dwords a bank": lambda lane, size: lane * 2 * size,
    "column": lambda lane, size: lane % 8 * 128 + lane // 8 * size,
    "padded column": lambda lane, size: lane % 8 * 132 + lane // 8 * size,
    "random": lambda lane, size: np.random.default_rng(1).integers(0, 900, len(lane)) * 4,
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("size", [1, 2, 4, 8, 12, 16])
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_lds_cycles_and_conflicts(pattern: str, size: int, chip: str) -> None:
    wave = Wave(chip)
    address = PATTERNS[pattern](np.arange(wave.lanes), size).astype(np.uint32)
    wave.put(ADDRESS, address)
    wave.exec &= ~0b110100
    active = [lane for lane in range(wave.lanes) if wave.exec >> lane & 1]
    kind = {1: "u8", 2: "u16", 4: "b32", 8: "b64", 12: "b96", 16: "b128"}[size]
    verb = "read" if chip == "gfx942" else "load"
    wave.run(instruction(f"ds_{verb}_{kind}", d=vgpr(TO, 4), a=vgpr(ADDRESS)))
    counted = wave.counted()
    want = lds_cycles(address, active, size)
    assert (counted["lds_cycles"], counted["lds_conflict_cycles"]) == want
    assert counted["lds_read_bytes"] == size * len(active)


def test_known_conflicts() -> None:
    """Figures that need no model: 64 lanes on one bank take 64 turns, in two groups of 32 lanes."""
    wave = Wave("gfx942")
    wave.put(ADDRESS, np.arange(64, dtype=np.uint32) * 4 * BANKS % 4096)
    wave.run(instruction("ds_read_b32", d=vgpr(TO), a=vgpr(ADDRESS)))
    assert wave.counted()["lds_cycles"] == 64
    assert wave.counted()["lds_conflict_cycles"] == 62
    assert wave.counted()["lds_write_conflict_cycles"] == 0
    wave.run(instruction("ds_write_b32", a=vgpr(ADDRESS), b=vgpr(TO)))
    assert wave.counted()["lds_write_conflict_cycles"] == 62


@pytest.mark.parametrize("size", [1, 4, 8, 16])
@pytest.mark.parametrize("stride", [0, 1, 4, 16, 60, 128, 200])
def test_cache_lines(size: int, stride: int) -> None:
    """Distinct 128-byte lines an instruction, dropped lanes of a buffer access left out."""
    memory = np.zeros(64 * 256, np.uint8)
    start = memory.ctypes.data
    at = start + 3 + np.arange(64) * stride
    kind = {1: "ubyte", 4: "dword", 8: "dwordx2", 16: "dwordx4"}[size]
    wave = Wave("gfx942")
    wave.put(ADDRESS, at.astype(np.uint64))
    wave.run(instruction(f"global_load_{kind}", d=vgpr(TO, 4), a=vgpr(ADDRESS, 2)))
    assert wave.counted()["global_read_lines"] == lines(at, size)
    assert wave.counted()["global_read_bytes"] == 64 * size

    wave = Wave("gfx942")
    records = 64 * stride // 2 + size
    wave.s[8:11] = start & 0xFFFFFFFF, start >> 32, records
    wave.put(ADDRESS, (np.arange(64) * stride).astype(np.uint32))
    operands = {"a": vgpr(ADDRESS), "c": sgpr(8, 4), "flags": OFFEN}
    wave.run(instruction(f"buffer_load_{kind}", d=vgpr(TO, 4), **operands))
    step = min(size, 4)
    inside = [
        sum(lane * stride + byte + step <= records for byte in range(0, size, step)) * step
        for lane in range(64)
    ]
    counted = wave.counted()
    assert counted["global_read_bytes"] == sum(inside)
    if set(inside) <= {
        0,
        size,
    }:  # lanes that are in range in part are counted apart from the others
        kept = np.array([lane * stride for lane in range(64) if inside[lane]])
        assert counted["global_read_lines"] == lines(start + kept, size)


def test_l1_serves_what_it_holds() -> None:
    """Columns of two bytes read one after another fetch their lines once; far rows do each time.

    gfx90a's L1 holds 128 lines: 64 rows and 64 others fit, 192 do not.
    """
    memory = np.zeros(192 * 256 + LINE, np.uint8)
    start = -(-memory.ctypes.data // LINE) * LINE
    rows = start + np.arange(64, dtype=np.uint64) * 256

    def fetched(chip: str, starts: list[int]) -> tuple[int, int]:
        wave = Wave(chip)
        for n, at in enumerate(starts):
            wave.put(ADDRESS + 2 * n, rows + np.uint64(at))
        loads = [
            instruction("global_load_ushort", d=vgpr(TO), a=vgpr(ADDRESS + 2 * n, 2))
            for n in range(len(starts))
        ]
        wave.run(*loads)
        counted = wave.counted()
        return counted["fetched_lines"], counted["global_read_lines"]

    far = 64 * 256
    assert fetched("gfx90a", [0, 2, 4, 126]) == (64, 256)
    assert fetched("gfx90a", [0, far, 2, far + 2]) == (128, 256)
    assert fetched("gfx90a", [0, far, 2 * far, 2]) == (256, 256)
    assert fetched("gfx942", [0, far, 2 * far, 2]) == (192, 256)  # it holds 256


def test_a_branch_taken_is_counted_once_a_pass() -> None:
    """A loop of three passes: counts are of what was executed, not of the code."""
    wave = Wave("gfx942")
    wave.s[0] = 3
    wave.run(
        instruction("v_mov_b32", d=vgpr(TO), a=vgpr(ADDRESS)),
        instruction("s_sub_u32", d=sgpr(0), a=sgpr(0), b=sgpr(129)),
        instruction("s_cmp_lg_u32", a=sgpr(0), b=sgpr(128)),
        instruction("s_cbranch_scc1", imm=-4),
    )
    counted = wave.counted()
    assert (counted["valu"], counted["salu"], counted["branch"]) == (3, 6, 3)
    assert wave.s[VCC] == 0
