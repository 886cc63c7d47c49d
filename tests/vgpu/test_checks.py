"""Faults planted into a kernel's machine code are found, each at the right instruction."""

import re
import struct
from collections.abc import Callable

import code_objects
import numpy as np
import pytest
from programs import PROGRAMS
from running import CompileFor, load

from conv_compiler import vgpu
from conv_compiler.vgpu import decode
from conv_compiler.vgpu.program import Program, Record

CHIP = "gfx942"
SOURCE = next(p for p in PROGRAMS if p.name == "matmul_f16")

S_NOP = struct.pack("<I", 0xBF800000)
VMCNT_ALL, LGKMCNT_ALL = 0xC00F, 0x0F00  # bits of gfx9's s_waitcnt immediate; all ones: no wait


def decoded(vmfb: bytes) -> tuple[code_objects.CodeObject, Program]:
    place = code_objects.find(vmfb)
    code = vmfb[place.text : place.text_end]
    base, _ = decode.text_section(vmfb[place.start :])
    return place, decode.decode_text(CHIP, base, code, wave_size=64)


def patched(vmfb: bytes, record: Record, change: Callable[[bytes], bytes]) -> bytes:
    """The module with one instruction's bytes changed."""
    place, _ = decoded(vmfb)
    at = place.text + record.offset
    new = change(vmfb[at : at + record.size])
    assert len(new) == record.size
    return vmfb[:at] + new + vmfb[at + record.size :]


def failure(vmfb: bytes, *, checks: bool = True) -> str:
    """The message of the launch that is expected to fail."""
    inputs = SOURCE.inputs(np.random.default_rng(3))
    with pytest.raises(RuntimeError) as caught:
        load(vgpu.device(CHIP, checks=checks), vmfb)(*inputs)
    return str(caught.value)


def addresses(message: str, kind: str) -> set[int]:
    """Addresses of the findings of one kind."""
    return {
        int(found, 16)
        for found in re.findall(rf"{kind}: [^;]*?at (0x[0-9a-f]+) `[^;`]*`, work", message)
    }


@pytest.fixture(scope="module")
def vmfb(compile_for: CompileFor) -> bytes:
    return compile_for(SOURCE.mlir, CHIP)


def set_immediate(bits: int) -> Callable[[bytes], bytes]:
    """Set bits of a SOPP immediate: a larger count waits for less."""
    return lambda code: struct.pack("<I", struct.unpack("<I", code)[0] | bits)


def test_a_kernel_as_compiled_reports_nothing(vmfb: bytes) -> None:
    inputs = SOURCE.inputs(np.random.default_rng(3))
    got = load(vgpu.device(CHIP, checks=True), vmfb)(*inputs)
    np.testing.assert_array_equal(got, SOURCE.reference(*inputs))


def test_a_removed_barrier_is_a_race(vmfb: bytes) -> None:
    _, program = decoded(vmfb)
    barriers = [r for r in program.records if r.name == "s_barrier"]
    message = failure(patched(vmfb, barriers[0], lambda _: S_NOP))
    found = addresses(message, "LDS race")
    by_address = {program.base + r.offset: r for r in program.records}
    assert found, message
    assert all(by_address[address].name.startswith("ds_") for address in found)
    assert "with no barrier between" in message
    assert re.search(r"workgroup \(\d+, \d+, \d+\), wave \d+, lane \d+", message)


def test_a_weakened_wait_is_a_use_before_it(vmfb: bytes) -> None:
    _, program = decoded(vmfb)
    records = program.records
    load_at = next(n for n, r in enumerate(records) if r.name.startswith("buffer_load"))
    wait = next(
        r for r in records[load_at:] if r.name == "s_waitcnt" and r.imm & VMCNT_ALL != VMCNT_ALL
    )
    message = failure(patched(vmfb, wait, set_immediate(VMCNT_ALL)))
    found = addresses(message, "use before wait")
    assert found, message
    assert min(found) > program.base + wait.offset
    assert "is still being loaded" in message


def test_an_lds_wait_before_a_barrier_is_needed(vmfb: bytes) -> None:
    _, program = decoded(vmfb)
    records = program.records
    barrier = next(n for n, r in enumerate(records) if r.name == "s_barrier")
    wait = next(r for r in reversed(records[:barrier]) if r.name == "s_waitcnt")
    message = failure(patched(vmfb, wait, set_immediate(LGKMCNT_ALL)))
    assert addresses(message, "barrier before wait") == {program.base + records[barrier].offset}


def test_an_lds_index_beyond_the_tile_is_found(vmfb: bytes) -> None:
    _, program = decoded(vmfb)
    read = next(r for r in program.records if r.name.startswith("ds_read"))
    message = failure(patched(vmfb, read, lambda code: b"\xf0\xff" + code[2:]))
    kinds = ("LDS out of range", "uninitialised LDS")
    found = set().union(*(addresses(message, kind) for kind in kinds))
    assert program.base + read.offset in found, message


def test_a_store_outside_its_allocation_is_found(vmfb: bytes) -> None:
    _, program = decoded(vmfb)
    store = next(r for r in program.records if r.name.startswith("buffer_store"))
    # The scalar offset is not range-checked by the hardware: take the resource's size for it.
    size_register = store.c.reg + 2
    message = failure(patched(vmfb, store, lambda code: code[:7] + bytes([size_register])))
    address = program.base + store.offset
    assert f"{address:#x} `buffer_store" in message, message
    assert "outside" in message


def test_faults_go_unseen_without_checks(vmfb: bytes) -> None:
    _, program = decoded(vmfb)
    barrier = next(r for r in program.records if r.name == "s_barrier")
    inputs = SOURCE.inputs(np.random.default_rng(3))
    load(vgpu.device(CHIP, checks=False), patched(vmfb, barrier, lambda _: S_NOP))(*inputs)
