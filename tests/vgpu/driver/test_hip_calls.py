"""HIP calls that programs make and IREE does not: pointers, pitches, streams, properties, launches."""

import ctypes
from collections.abc import Callable, Iterator
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path

import numpy as np
import pytest

from conv_compiler import vgpu
from conv_compiler.binary.code_objects import code_objects
from tests.vgpu.support.bare_kernels import Hip, HipError
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

INVALID_VALUE = 1
HOST, DEVICE, MANAGED = 1, 2, 3
TOTAL_BYTES = 2**34


@pytest.fixture
def hip() -> Iterator[Hip]:
    opened = Hip(checks=False)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    opened = ctypes.CDLL(str(vgpu.library_path()))
    opened.hipGetErrorString.restype = c_char_p
    return opened


class Attributes(ctypes.Structure):
    """`hipPointerAttribute_t` of HIP 6."""

    _fields_ = (
        ("type", c_int),
        ("device", c_int),
        ("device_pointer", c_void_p),
        ("host_pointer", c_void_p),
        ("managed", c_int),
        ("flags", c_uint),
    )


@pytest.mark.parametrize(
    ("call", "free", "kind"),
    [
        ("hipMalloc", "hipFree", DEVICE),
        ("hipMallocManaged", "hipFree", MANAGED),
        ("hipHostAlloc", "hipFreeHost", HOST),
        ("hipMallocHost", "hipHostFree", HOST),
    ],
)
def test_a_pointer_is_asked_what_it_points_to(
    hip: Hip, library: ctypes.CDLL, call: str, free: str, kind: int
) -> None:
    base, attributes = c_void_p(), Attributes()
    hip.call(
        call, byref(base), c_size_t(100), *([0] if "Managed" in call or "Alloc" in call else [])
    )
    inside = c_void_p(base.value + 40)  # type: ignore[operator]
    hip.call("hipPointerGetAttributes", byref(attributes), inside)
    device = int(vgpu.device_uri("gfx90a").removeprefix("hip://"))
    assert (attributes.type, attributes.device) == (kind, device)
    assert attributes.device_pointer == inside.value
    assert attributes.host_pointer == (None if kind == DEVICE else inside.value)
    assert attributes.managed == (kind == MANAGED)
    start, size = c_void_p(), c_size_t()
    hip.call("hipMemGetAddressRange", byref(start), byref(size), inside)
    assert (start.value, size.value) == (base.value, 100)
    hip.call(free, base)
    assert library.hipPointerGetAttributes(byref(attributes), inside) == INVALID_VALUE


@pytest.mark.parametrize(
    ("attribute", "kind", "value"),
    [
        (2, c_int, DEVICE),
        (8, ctypes.c_bool, False),
        (9, c_int, int(vgpu.device_uri("gfx90a").removeprefix("hip://"))),
        (12, c_size_t, 64),
        (13, ctypes.c_bool, True),
    ],
    ids=["type", "managed", "device", "size", "mapped"],
)
def test_one_attribute_of_a_pointer(hip: Hip, attribute: int, kind: type, value: object) -> None:
    out = kind()
    hip.call("hipPointerGetAttribute", byref(out), attribute, c_void_p(hip.allocate(64)))
    assert out.value == value


def test_addresses_of_a_pointer(hip: Hip) -> None:
    base, out = hip.allocate(64), c_void_p()
    for attribute, value in ((3, base + 8), (11, base)):
        hip.call("hipPointerGetAttribute", byref(out), attribute, c_void_p(base + 8))
        assert out.value == value
    with pytest.raises(HipError, match="device memory, which the host does not see"):
        hip.call("hipPointerGetAttribute", byref(out), 4, c_void_p(base))
    with pytest.raises(HipError, match="pointer attribute 15: the virtual device has no answer"):
        hip.call("hipPointerGetAttribute", byref(out), 15, c_void_p(base))


def test_memory_that_is_left(hip: Hip) -> None:
    free, total = c_size_t(), c_size_t()
    hip.call("hipMemGetInfo", byref(free), byref(total))
    hip.allocate(2**20)
    left = c_size_t()
    hip.call("hipMemGetInfo", byref(left), None)
    assert (total.value, free.value - left.value) == (TOTAL_BYTES, 2**20)


def test_rows_with_a_pitch(hip: Hip) -> None:
    """Odd widths: the bytes between the rows stay as they are."""
    base, pitch = c_void_p(), c_size_t()
    hip.call("hipMallocPitch", byref(base), byref(pitch), c_size_t(13), c_size_t(5))
    assert pitch.value == 128
    rows = np.arange(5 * 17, dtype=np.uint8).reshape(5, 17)
    size = c_size_t
    hip.call("hipMemcpy2D", base, pitch, c_void_p(rows.ctypes.data), size(17), size(13), size(5), 1)
    hip.call("hipMemset2D", c_void_p(base.value + 128), pitch, 7, size(3), size(2))  # type: ignore[operator]
    expected = np.full((5, 128), 0xFF, np.uint8)
    expected[:, :13] = rows[:, :13]
    expected[1:3, :3] = 7
    found = np.frombuffer(ctypes.string_at(base.value or 0, 5 * 128), np.uint8)
    assert (found.reshape(5, 128) == expected).all()
    with pytest.raises(HipError, match="pitch of 12 bytes: is less than a row of 13"):
        hip.call(
            "hipMemcpy2D", base, pitch, c_void_p(rows.ctypes.data), size(12), size(13), size(5), 1
        )
    hip.call("hipFree", base)


def test_streams(hip: Hip) -> None:
    stream, event = c_void_p(), c_void_p()
    number, flags = c_int(-1), c_uint()
    hip.call("hipStreamCreate", byref(stream))
    hip.call("hipStreamDestroy", stream)
    hip.call("hipStreamCreateWithPriority", byref(stream), 1, 0)
    for call in ("hipStreamGetPriority", "hipStreamIsCapturing"):
        number.value = -1
        hip.call(call, stream, byref(number))
        assert number.value == 0
    hip.call("hipStreamGetFlags", stream, byref(flags))
    hip.call("hipStreamGetDevice", stream, byref(number))
    assert flags.value == 1
    assert number.value == int(vgpu.device_uri("gfx90a").removeprefix("hip://"))
    hip.call("hipEventCreate", byref(event))
    hip.call("hipEventRecordWithFlags", event, stream, 0)
    called = []
    callback = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_void_p)(lambda *of: called.append(of))
    hip.call("hipStreamAddCallback", stream, callback, c_void_p(5), 0)
    assert called == [(stream.value, 0, 5)]
    hip.call("hipEventDestroy", event)
    hip.call("hipStreamDestroy", stream)


class Properties(ctypes.Structure):
    """`hipDeviceProp_tR0600` by offsets of its header, of what is looked at."""

    _fields_ = (("bytes", ctypes.c_char * 1472),)

    def integer(self, offset: int, kind: type = c_int) -> int:
        return int(kind.from_buffer(self, offset).value)

    def text(self, offset: int) -> str:
        return ctypes.string_at(ctypes.addressof(self) + offset).decode()


@pytest.mark.parametrize("chip", vgpu.CHIPS)
def test_properties_as_hip_6_has_them(library: ctypes.CDLL, chip: str) -> None:
    device = int(vgpu.device_uri(chip).removeprefix("hip://"))
    properties = Properties()
    assert library.hipGetDevicePropertiesR0600(byref(properties), device) == 0
    assert properties.text(0) == f"virtual {chip}"
    assert properties.text(1160) == chip
    assert properties.integer(288, c_size_t) == TOTAL_BYTES
    major, minor = c_int(), c_int()
    assert library.hipDeviceComputeCapability(byref(major), byref(minor), device) == 0
    assert f"gfx{major.value}{minor.value}" == chip[:-1]
    assert properties.integer(360) == major.value
    text = ctypes.create_string_buffer(13)
    assert library.hipDeviceGetPCIBusId(text, 13, device) == 0
    assert text.value.decode() == f"0000:{device:02x}:00.0"
    assert library.hipDeviceGetPCIBusId(text, 12, device) == INVALID_VALUE


def test_functions_by_their_names(library: ctypes.CDLL) -> None:
    found, status = c_void_p(), c_int(-1)
    for version, name in ((500, "hipGetDeviceProperties"), (600, "hipGetDevicePropertiesR0600")):
        words = (b"hipGetDeviceProperties", byref(found), version, ctypes.c_uint64(0))
        assert library.hipGetProcAddress(*words, byref(status)) == 0
        function = ctypes.cast(getattr(library, name), c_void_p)
        assert (found.value, status.value) == (function.value, 0)
    for name in (b"hipNoSuchCall", b"vgpu_forget", b"malloc"):
        words = (name, byref(found), 600, ctypes.c_uint64(0))
        assert library.hipGetProcAddress(*words, byref(status)) == INVALID_VALUE
        assert (found.value, status.value) == (None, 1)


class Dim3(ctypes.Structure):
    _fields_ = (("x", c_uint), ("y", c_uint), ("z", c_uint))


class LaunchAttribute(ctypes.Structure):
    _fields_ = (("id", c_int), ("pad", c_int), ("value", c_int * 16))


class DriverConfig(ctypes.Structure):
    """`HIP_LAUNCH_CONFIG`."""

    _fields_ = (
        ("grid", Dim3),
        ("block", Dim3),
        ("lds_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    )


class Config(ctypes.Structure):
    """`hipLaunchConfig_t`."""

    _fields_ = (
        ("grid", Dim3),
        ("block", Dim3),
        ("lds_bytes", c_size_t),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    )


class FuncAttributes(ctypes.Structure):
    """`hipFuncAttributes`."""

    _fields_ = (
        ("binary_version", c_int),
        ("cache_mode", c_int),
        ("constant_bytes", c_size_t),
        ("local_bytes", c_size_t),
        ("dynamic_lds_bytes", c_int),
        ("threads", c_int),
        ("registers", c_int),
        ("carveout", c_int),
        ("ptx_version", c_int),
        ("lds_bytes", c_size_t),
    )


SIZE = 1000


class Kernel:
    """`multiply_add_f32` on gfx90a: its function, and three arrays of 1000 floats."""

    def __init__(self, hip: Hip, elf: bytes, block: int) -> None:
        self.hip, self.function = hip, c_void_p()
        name = b"main_dispatch_0_elementwise_1000_f32"
        hip.call("hipModuleGetFunction", byref(self.function), hip.load(elf), name)
        self.arrays = [np.arange(SIZE, dtype=np.float32) % n for n in (7, 5, 1)]
        self.pointers = [c_void_p(hip.allocate(4 * SIZE)) for _ in self.arrays]
        for pointer, array in zip(self.pointers, self.arrays, strict=True):
            hip.call("hipMemcpyHtoD", pointer, c_void_p(array.ctypes.data), c_size_t(4 * SIZE))
        self.params = (c_void_p * 3)(*map(ctypes.addressof, self.pointers))
        self.block, self.grid = block, -(-SIZE // block)

    def check(self) -> None:
        found = np.empty(SIZE, np.float32)
        size = c_size_t(4 * SIZE)
        self.hip.call("hipMemcpyDtoH", c_void_p(found.ctypes.data), self.pointers[2], size)
        a, b, _ = self.arrays
        assert (found == a * b + a).all()


@pytest.fixture
def kernel(hip: Hip, compile_for: CompileFor, tmp_path: Path) -> Kernel:
    (elf,) = code_objects(compile_for(BY_NAME["multiply_add_f32"].mlir, "gfx90a"))
    (tmp_path / "k.hsaco").write_bytes(elf)
    (loaded,) = vgpu.Device("gfx90a").load(tmp_path / "k.hsaco").values()
    return Kernel(hip, elf, loaded.note.reqd_workgroup_size[0])


def by_buffer(kernel: Kernel, size: int = 24) -> None:
    """Arguments as one piece of memory, in the way of HIP's module samples."""
    buffer = (c_void_p * 3)(*(pointer.value for pointer in kernel.pointers))
    length = c_size_t(size)
    extra = (c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(length), 3)
    sizes = map(c_uint, (kernel.grid, 1, 1, kernel.block, 1, 1, 0))
    kernel.hip.call("hipModuleLaunchKernel", kernel.function, *sizes, None, None, extra)


def by_driver_config(kernel: Kernel, cooperative: int = 0) -> None:
    attribute = LaunchAttribute(id=2, value=(cooperative, *[0] * 15))
    grid, block = Dim3(kernel.grid, 1, 1), Dim3(kernel.block, 1, 1)
    config = DriverConfig(grid, block, 0, None, ctypes.pointer(attribute), 1)
    kernel.hip.call("hipDrvLaunchKernelEx", byref(config), kernel.function, kernel.params, None)


def by_config(kernel: Kernel, cooperative: int = 0) -> None:
    attribute = LaunchAttribute(id=2, value=(cooperative, *[0] * 15))
    grid, block = Dim3(kernel.grid, 1, 1), Dim3(kernel.block, 1, 1)
    config = Config(grid, block, 0, None, ctypes.pointer(attribute), 1)
    kernel.hip.call("hipLaunchKernelExC", byref(config), kernel.function, kernel.params)


@pytest.mark.parametrize("launch", [by_buffer, by_driver_config, by_config])
def test_a_kernel_is_launched(kernel: Kernel, launch: Callable[[Kernel], None]) -> None:
    launch(kernel)
    kernel.check()


def test_a_buffer_that_ends_before_its_arguments(kernel: Kernel) -> None:
    with pytest.raises(HipError, match="packed arguments of 23 bytes: argument 2 lies behind"):
        by_buffer(kernel, size=23)


@pytest.mark.parametrize("launch", [by_driver_config, by_config])
def test_workgroups_do_not_wait_for_each_other(
    kernel: Kernel, launch: Callable[[Kernel, int], None]
) -> None:
    with pytest.raises(HipError, match="cooperative launch"):
        launch(kernel, 1)


def test_what_a_function_needs(kernel: Kernel) -> None:
    attributes = FuncAttributes()
    kernel.hip.call("hipFuncGetAttributes", byref(attributes), kernel.function)
    one = c_int()
    for number, value in (
        (0, attributes.threads),
        (1, attributes.lds_bytes),
        (3, attributes.local_bytes),
        (4, attributes.registers),
        (8, attributes.dynamic_lds_bytes),
    ):
        kernel.hip.call("hipFuncGetAttribute", byref(one), number, kernel.function)
        assert one.value == value, number


@pytest.mark.parametrize(("lds", "limit"), [(0, 0), (0, 100), (40000, 0), (0, 30)])
def test_the_workgroup_that_fills_a_unit(kernel: Kernel, lds: int, limit: int) -> None:
    """No other size of whole waves holds more work-items."""
    grid, block, held, most = c_int(), c_int(), c_int(), c_int()
    words = (kernel.function, c_size_t(lds))
    kernel.hip.call("hipOccupancyMaxPotentialBlockSize", byref(grid), byref(block), *words, limit)
    kernel.hip.call("hipFuncGetAttribute", byref(most), 0, kernel.function)
    most.value = min(most.value, limit or most.value)
    found = []
    for size in [*range(64, most.value + 1, 64)] or [most.value]:
        call = "hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"
        kernel.hip.call(call, byref(held), kernel.function, size, c_size_t(lds), 0)
        found.append((held.value * size, size, held.value))
    assert (grid.value * block.value, block.value, grid.value) == max(found)
