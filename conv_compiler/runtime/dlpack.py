# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of other libraries by DLPack: taken where they lie, results given back as their kind.

DLPack is how PyTorch, JAX and CuPy exchange arrays (github.com/dmlc/dlpack; the Python array API
standard on `__dlpack__` and `from_dlpack`).
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import iree.runtime as iree
import numpy as np

from conv_compiler.errors import InvalidArray
from conv_compiler.runtime.dlpack_capsule import lies_as_iree_wants, viewed


class Memory(IntEnum):
    """Whose memory an array lies in: DLDeviceType of dlpack.h."""

    HOST = 1
    CUDA = 2
    ROCM = 10


@dataclass(frozen=True, kw_only=True)
class Stream:
    """The stream behind which a library puts its work on an array, and the call that waits for it.

    `number` is what `__dlpack__` is given for the driver's default stream.
    """

    number: int
    library: str
    wait: str


_STREAMS = MappingProxyType(
    {
        Memory.CUDA: Stream(number=1, library="libcuda.so.1", wait="cuStreamSynchronize"),
        Memory.ROCM: Stream(number=0, library="libamdhip64.so", wait="hipStreamSynchronize"),
    }
)


@lru_cache
def _waiting(memory: Memory) -> Any:
    """The driver's function that waits for its default stream."""
    stream = _STREAMS[memory]
    return getattr(ctypes.CDLL(stream.library), stream.wait)


def is_foreign(array: Any) -> bool:
    """Whether an array is of another library than numpy and IREE, and can be exchanged."""
    return not isinstance(array, np.ndarray) and hasattr(array, "__dlpack_device__")


def library_of(array: Any) -> Any:
    """The module whose `from_dlpack` makes arrays of this kind; InvalidArray without one."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    for kind in type(array).__mro__:
        module = sys.modules.get(kind.__module__.partition(".")[0])
        if hasattr(module, "from_dlpack"):
            return module
    raise InvalidArray(
        f"array {type(array).__name__}: its library has no from_dlpack; convert it with "
        "numpy.asarray"
    )


def imported(
    name: str, array: Any, device: Any, memory: Memory, number: int, *, in_place: bool = False
) -> Any:
    """The array for a kernel on an IREE device with this memory and number.

    On the host it is a numpy array in the same memory, else a device array. On a card IREE takes
    arrays that are dense and aligned to 64 bytes; others are copied. Raises InvalidArray for an
    array in other memory, for one that its library does not hand over, and `in_place` for one that
    would be copied to a card.
    """
    where, index = array.__dlpack_device__()
    if where != memory or (memory is not Memory.HOST and index != number):
        raise InvalidArray(
            f"{name}: an array of another device than the kernel's; move it there first"
        )
    capsule = _capsule(name, array, memory)
    if memory is Memory.HOST:
        return viewed(name, capsule)
    if not lies_as_iree_wants(capsule):
        if in_place:
            raise InvalidArray(f"{name}: not dense, or not aligned to 64 bytes; give one that is")
        capsule = _capsule(name, _copy(array), memory)
    view = device.from_dlpack_capsule(capsule)
    _waiting(memory)(None)
    return iree.DeviceArray(device, view, implicit_host_transfer=True)


def _capsule(name: str, array: Any, memory: Memory) -> Any:
    """The array's DLPack capsule, behind its library's pending work."""
    try:
        if memory is Memory.HOST:
            return array.__dlpack__()
        return array.__dlpack__(stream=_STREAMS[memory].number)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidArray(
            f"{name}: its library does not hand it over ({str(error).rstrip('.')}); "
            "give one that it does"
        ) from error


def _copy(array: Any) -> Any:
    """A dense copy, by its library."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__().asarray(array, copy=True, order="C")
    return array.contiguous().clone()


class _Exported:
    """A device array for any library's `from_dlpack`."""

    def __init__(self, array: Any, memory: Memory, number: int) -> None:
        self._array, self._where = array, (int(memory), number)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._where

    def __dlpack__(self, **_asked: Any) -> Any:
        # Of no stream: a call returns when the device is done.
        array = self._array
        return array._device.create_dlpack_capsule(array._buffer_view, *self._where)


def exported(array: Any, like: Any, memory: Memory, number: int) -> Any:
    """A device array as one of the library of `like`.

    On the host it is in the same memory. IREE 3.13 exports no memory of its CUDA and HIP devices
    (cuda_allocator.c: "CUDA buffer type is not supported for export"), so there it is copied, on
    the device, into memory of the library's.
    """
    if memory is Memory.HOST:
        return library_of(like).from_dlpack(_Exported(array, memory, number))
    fresh = fresh_like(like, array)
    target = imported("result", fresh, array._device, memory, number)
    _copy_on_device(array, target)
    return fresh


def fresh_like(like: Any, array: Any) -> Any:
    """An array of the library of `like`, on its device, with the shape and type of another; zeros
    where a kernel writes a slice of it."""
    library = library_of(like)
    dtype = getattr(library, array.dtype.name)
    make = library.zeros if getattr(array, "part", None) else library.empty
    return make(tuple(array.shape), dtype=dtype, device=like.device)


def _copy_on_device(source: Any, target: Any) -> None:
    """Copy between arrays of one device, and wait for it."""
    device, done = source._device, source._device.create_semaphore(0)
    before, behind = (iree.HalFence.create_at(done, value) for value in (0, 1))
    buffers = (one._buffer_view.get_buffer() for one in (source, target))
    device.queue_copy(*buffers, before, behind)
    behind.wait()


def check_memory(out: Any, takes_result: bool, on_host: bool) -> None:
    """Raise InvalidArray for an array that no kernel can write its result into."""
    why = ""
    if not takes_result:
        why = (
            "the kernel takes no memory for its result; leave it out, or compile with "
            "result_operand"
        )
    elif not (
        is_foreign(out)
        or isinstance(out, iree.DeviceArray)
        or (on_host and isinstance(out, np.ndarray))
    ):
        why = f"of {type(out).__name__}; give an array of a library with DLPack"
    elif isinstance(out, np.ndarray) and not out.flags.writeable:
        why = "read-only; give memory that can be written"
    if why:
        raise InvalidArray(f"out: {why}")
