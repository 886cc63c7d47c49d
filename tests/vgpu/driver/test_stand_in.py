"""The HIP calls themselves, through ctypes: memory, copies, events, graphs, devices and errors."""

import ctypes
import gc
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_void_p

import iree.runtime as rt
import numpy as np
import pytest

import conv_compiler
from conv_compiler import vgpu
from conv_compiler.errors import UnsupportedTarget
from conv_compiler.model.facts import chip_facts
from conv_compiler.runtime.kernel import load as load_artifact
from conv_compiler.targets import find_target
from tests.chips import each

INVALID_VALUE, INVALID_POINTER, INVALID_DEVICE, INVALID_IMAGE, NOT_SUPPORTED = 1, 17, 101, 200, 801


@pytest.fixture(scope="module")
def hip() -> ctypes.CDLL:
    library = ctypes.CDLL(str(vgpu.library_path()))
    library.hipGetErrorString.restype = c_char_p
    library.hipGetErrorName.restype = c_char_p
    for name in ("hipFree", "hipHostFree", "hipHostUnregister"):
        getattr(library, name).argtypes = [c_void_p]
    library.hipMemcpy.argtypes = [c_void_p, c_void_p, c_size_t, c_int]
    library.hipHostRegister.argtypes = [c_void_p, c_size_t, c_uint]
    for name, value in (("D8", ctypes.c_char), ("D16", ctypes.c_short), ("D32", c_int)):
        getattr(library, f"hipMemset{name}Async").argtypes = [c_void_p, value, c_size_t, c_void_p]
    return library


def allocate(hip: ctypes.CDLL, size: int) -> c_void_p:
    pointer = c_void_p()
    assert hip.hipMalloc(byref(pointer), c_size_t(size)) == 0
    return pointer


def read(pointer: c_void_p, size: int) -> bytes:
    return ctypes.string_at(pointer.value, size)


def test_every_symbol_of_the_driver_is_there(hip: ctypes.CDLL) -> None:
    """The names come from the runtime's own binary, so a newer runtime that wants more fails here."""
    from iree._runtime_libs import _runtime

    with open(_runtime.__file__, "rb") as file:
        strings = file.read().split(b"\0")
    wanted = {
        s.decode()
        for s in strings
        if s.startswith(b"hip")
        and s[3:4].isupper()
        and s.isalnum()
        and not s.startswith((b"hipError", b"hipSuccess"))
    }
    assert len(wanted) == 75
    assert [name for name in sorted(wanted) if not hasattr(hip, name)] == []


def test_fresh_device_memory_is_poisoned(hip: ctypes.CDLL) -> None:
    pointer = allocate(hip, 100)
    assert read(pointer, 100) == b"\xff" * 100
    assert hip.hipFree(pointer) == 0


def test_empty_allocation_is_null(hip: ctypes.CDLL) -> None:
    assert allocate(hip, 0).value is None
    assert hip.hipFree(None) == 0


def test_fills_of_each_width(hip: ctypes.CDLL) -> None:
    pointer = allocate(hip, 12)
    assert hip.hipMemsetD32Async(pointer, 0x01020304, 3, None) == 0
    assert hip.hipMemsetD16Async(pointer, 0x0506, 2, None) == 0
    assert hip.hipMemsetD8Async(pointer, b"\x07", 1, None) == 0
    assert read(pointer, 12) == bytes((7, 5, 6, 5, 4, 3, 2, 1, 4, 3, 2, 1))
    hip.hipFree(pointer)


def test_copies_both_ways(hip: ctypes.CDLL) -> None:
    data = np.arange(64, dtype=np.uint8)
    back = np.zeros_like(data)
    pointer = allocate(hip, data.nbytes)
    assert hip.hipMemcpy(pointer, data.ctypes.data, data.nbytes, 1) == 0
    assert hip.hipMemcpy(back.ctypes.data, pointer, data.nbytes, 2) == 0
    assert (back == data).all()
    hip.hipFree(pointer)


def test_copy_past_the_end_is_refused(hip: ctypes.CDLL) -> None:
    data = np.zeros(64, dtype=np.uint8)
    pointer = allocate(hip, 16)
    assert hip.hipMemcpy(pointer, data.ctypes.data, 17, 1) == INVALID_VALUE
    text = hip.hipGetErrorString(INVALID_VALUE).decode()
    assert text == "target of a copy of 17 bytes at offset 0: leaves the allocation of 16 bytes"
    hip.hipFree(pointer)


def test_double_free_is_refused(hip: ctypes.CDLL) -> None:
    pointer = allocate(hip, 16)
    assert hip.hipFree(pointer) == 0
    assert hip.hipFree(pointer) == INVALID_POINTER
    assert b"may have been freed before" in hip.hipGetErrorString(INVALID_POINTER)


def test_free_by_the_wrong_call_names_the_right_one(hip: ctypes.CDLL) -> None:
    pointer = allocate(hip, 16)
    assert hip.hipHostFree(pointer) == INVALID_POINTER
    assert hip.hipGetErrorString(INVALID_POINTER).endswith(b"released by hipFree")
    assert hip.hipFree(pointer) == 0


def test_registered_memory_must_not_overlap(hip: ctypes.CDLL) -> None:
    data = np.zeros(64, dtype=np.uint8)
    assert hip.hipHostRegister(data.ctypes.data, 64, 0) == 0
    assert hip.hipHostRegister(data.ctypes.data + 8, 8, 0) == INVALID_VALUE
    assert hip.hipHostUnregister(data.ctypes.data) == 0
    assert hip.hipHostRegister(data.ctypes.data + 8, 8, 0) == 0
    assert hip.hipHostUnregister(data.ctypes.data + 8) == 0


def test_totals_follow_allocations(hip: ctypes.CDLL) -> None:
    # The totals are the process's: no device of an earlier test may be collected meanwhile.
    gc.collect()
    gc.disable()
    try:
        before = vgpu.memory_totals()
        pointer = allocate(hip, 1000)
        during = vgpu.memory_totals()
        hip.hipFree(pointer)
        after = vgpu.memory_totals()
    finally:
        gc.enable()
    assert during["live_bytes"] - before["live_bytes"] == 1000
    assert after["live_allocations"] == before["live_allocations"]


def test_error_is_fetched_once_and_its_text_stays(hip: ctypes.CDLL) -> None:
    assert hip.hipDeviceGet(byref(c_int()), 99) == INVALID_DEVICE
    assert hip.hipGetLastError() == INVALID_DEVICE
    assert hip.hipGetLastError() == 0
    assert (
        hip.hipGetErrorString(INVALID_DEVICE) == b"device 99: does not exist; devices are 0 to 21"
    )
    assert hip.hipGetErrorString(INVALID_IMAGE) == b"not a code object"
    assert hip.hipGetErrorName(INVALID_IMAGE) == b"hipErrorInvalidImage"


def test_unknown_attribute_is_refused(hip: ctypes.CDLL) -> None:
    assert hip.hipDeviceGetAttribute(byref(c_int()), 9999, 0) == INVALID_VALUE


def test_memory_pools_are_declined(hip: ctypes.CDLL) -> None:
    assert hip.hipMemPoolCreate(byref(c_void_p()), None) == NOT_SUPPORTED


@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_a_device_a_chip(hip: ctypes.CDLL, chip: str) -> None:
    ordinal = int(vgpu.device_uri(chip).removeprefix("hip://"))
    name = ctypes.create_string_buffer(64)
    assert hip.hipDeviceGetName(name, 64, ordinal) == 0
    assert name.value.decode() == f"virtual {chip}"
    wave, lds = c_int(), c_int()
    assert hip.hipDeviceGetAttribute(byref(wave), 87, ordinal) == 0
    assert hip.hipDeviceGetAttribute(byref(lds), 74, ordinal) == 0
    assert wave.value == (64 if chip.startswith("gfx9") else 32)
    assert lds.value == (163840 if chip == "gfx950" else 65536)


def test_checked_devices_are_devices_of_their_own() -> None:
    uris = {vgpu.device_uri(chip, checks=checks) for chip in vgpu.CHIPS for checks in (False, True)}
    assert uris == {f"hip://{i}" for i in range(2 * len(vgpu.CHIPS))}


def test_a_chip_that_is_compiled_for_only_is_refused_and_says_why() -> None:
    why = "chip gfx1250: has no virtual device, for no table of its instructions' encodings"
    with pytest.raises(vgpu.VirtualDeviceError, match=why):
        vgpu.device("gfx1250")
    problem = conv_compiler.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3))
    artifact = conv_compiler.compile(problem, "gfx1250")
    assert artifact.main_kernel.mma
    with pytest.raises(UnsupportedTarget, match=why):
        load_artifact(artifact, "vgpu")
    with pytest.raises(UnsupportedTarget, match="gfx1250: not modelled, for no table of its"):
        chip_facts(find_target("gfx1250"))


def test_unknown_chip_is_refused() -> None:
    with pytest.raises(
        vgpu.VirtualDeviceError,
        match=r"chip gfx000: has no virtual device; .*known: gfx908, gfx90a",
    ):
        vgpu.device("gfx000")


def test_events_measure_time(hip: ctypes.CDLL) -> None:
    start, stop, passed = c_void_p(), c_void_p(), c_float(-1)
    for event in (start, stop):
        assert hip.hipEventCreate(byref(event)) == 0
        assert hip.hipEventRecord(event, None) == 0
    assert hip.hipEventElapsedTime(byref(passed), start, stop) == 0
    assert 0 <= passed.value < 1000
    for event in (start, stop):
        assert hip.hipEventDestroy(event) == 0


def test_host_function_runs(hip: ctypes.CDLL) -> None:
    seen: list[int] = []
    callback = ctypes.CFUNCTYPE(None, c_void_p)(lambda data: seen.append(data))
    assert hip.hipLaunchHostFunc(None, callback, c_void_p(5)) == 0
    assert seen == [5]


class MemsetParams(ctypes.Structure):
    _fields_ = (
        ("dst", c_void_p),
        ("element_size", c_uint),
        ("height", c_size_t),
        ("pitch", c_size_t),
        ("value", c_uint),
        ("width", c_size_t),
    )


def test_graph_runs_what_it_held_when_instantiated(hip: ctypes.CDLL) -> None:
    pointer = allocate(hip, 16)
    graph, executable, node = c_void_p(), c_void_p(), c_void_p()
    two_rows = MemsetParams(pointer, 2, 2, 8, 0x0102, 3)
    one_byte = MemsetParams(pointer, 1, 1, 0, 9, 1)
    assert hip.hipGraphCreate(byref(graph), 0) == 0
    assert hip.hipGraphAddMemsetNode(byref(node), graph, None, c_size_t(0), byref(two_rows)) == 0
    assert hip.hipGraphInstantiate(byref(executable), graph, None, None, c_size_t(0)) == 0
    assert hip.hipGraphAddMemsetNode(byref(node), graph, None, c_size_t(0), byref(one_byte)) == 0
    assert hip.hipGraphDestroy(graph) == 0
    assert hip.hipGraphLaunch(executable, None) == 0
    row = b"\x02\x01" * 3 + b"\xff\xff"
    assert read(pointer, 16) == row * 2
    assert hip.hipGraphExecDestroy(executable) == 0
    hip.hipFree(pointer)


def test_garbage_is_no_code_object(hip: ctypes.CDLL) -> None:
    image = ctypes.create_string_buffer(b"not an ELF", 4096)
    assert hip.hipModuleLoadData(byref(c_void_p()), image) == INVALID_IMAGE


def test_array_goes_to_the_device_and_back() -> None:
    data = np.arange(1000, dtype=np.float32)
    array = rt.asdevicearray(vgpu.device("gfx942"), data)
    assert (array.to_host() == data).all()
