# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory of this process as an operand of a kernel on the CPU, and a kernel's result as a numpy
array: neither is copied.

IREE 3.13 imports host memory at any address (`import_host_allocation`), but its compiler promises
the code of a kernel addresses that are multiples of 64, and a vector load at another ends the
process. Ours promises less, and a module states what (`STATED_ALIGNMENT`).
"""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache
from typing import Any

import iree.runtime as iree
import numpy as np
from iree.runtime import BufferUsage, HalBufferView, HalElementType, MemoryType
from iree.runtime.array_interop import map_dtype_to_element_type

from conv_compiler.errors import InvalidArray
from conv_compiler.runtime.arrays import Tensor
from conv_compiler.runtime.dlpack_capsule import address_of

_MEMORY = int(MemoryType.HOST_LOCAL | MemoryType.DEVICE_VISIBLE)
_USAGE = int(BufferUsage.DEFAULT | BufferUsage.MAPPING)
_BYTE = int(HalElementType.UINT_8)


@lru_cache
def _element_type(dtype: np.dtype[Any]) -> int:
    return int(map_dtype_to_element_type(dtype))


@lru_cache
def _bytes_type(count: int) -> Any:
    return ctypes.c_ubyte * count


def lies_as_kernels_want(array: np.ndarray[Any, Any], alignment: int) -> bool:
    """Whether a kernel can use an array where it lies.

    It is dense, its address is a multiple of `alignment` bytes, and it is not empty.
    """
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned and array.size):
        return False
    return array.itemsize % alignment == 0 or array.ctypes.data % alignment == 0


def in_larger(alignment: int | None, tensor: Tensor, array: Any) -> Any:
    """An operand as an array of its kernel's shape, for a slice one in whose corner it is.

    It is in the slice's memory where kernels read that, at multiples of `alignment` bytes. Then
    nothing but the slice may be touched: the larger array may end before. Else the slice is copied.
    """
    if not tensor.is_slice(array):
        return array
    own = zip(tensor.shape, array.shape, strict=True)
    sizes = tuple(size if larger is None else larger for larger, size in own)
    if alignment is not None and array.size and array.ctypes.data % alignment == 0:
        memory = _bytes_type(math.prod(sizes) * array.itemsize).from_address(array.ctypes.data)
        return np.ndarray(sizes, array.dtype, memory)
    larger = np.empty(sizes, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


def written_in_place(
    tensor: Tensor, array: np.ndarray[Any, Any], alignment: int
) -> np.ndarray[Any, Any]:
    """Memory for a result as an array of its kernel's shape; InvalidArray where kernels cannot
    write it where it lies."""
    if tensor.is_slice(array):
        lies = array.ctypes.data % alignment == 0
    else:
        lies = lies_as_kernels_want(array, alignment)
    if array.size and not lies:
        raise InvalidArray(
            f"{tensor.name}: not dense, or not aligned to {alignment} bytes; give one that is"
        )
    found: np.ndarray[Any, Any] = in_larger(alignment, tensor, array)
    return found


def placed(array: np.ndarray[Any, Any], device: Any, alignment: int) -> Any:
    """A buffer view of an array: in its memory where that will do, else of a copy.

    The array must outlive it: the bindings keep only what can be written.
    """
    if not lies_as_kernels_want(array, alignment):
        return iree.asdevicearray(device, array)._buffer_view
    memory: Any = array
    if not array.flags.writeable:  # which the bindings refuse
        memory = _bytes_type(array.nbytes).from_address(array.ctypes.data)
    buffer = device.allocator.import_host_allocation(memory, _MEMORY, _USAGE)
    return HalBufferView(buffer, array.shape, _element_type(array.dtype))


@lru_cache
def _layout(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Any, bool]:
    """The memory of an array as a type, and whether DLPack has a name for its elements."""
    # `isbuiltin` is 2 of the types of ml_dtypes, of which f8E5M2 has the kind of floats.
    named = dtype.kind in "fiu" and dtype.isbuiltin == 1
    return _bytes_type(math.prod(shape) * dtype.itemsize), named


def as_array(
    view: Any, config: Any, stated: tuple[int | None, ...], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """A numpy array in the memory of a buffer view on the host, which lives as long as it.

    `stated` is its shape where that is known. The array keeps the device's configuration too, by
    which `forks.py` knows devices.
    """
    shape: Any = tuple(view.shape) if None in stated else stated
    if 0 in shape:
        return np.empty(shape, dtype)
    kind, named = _layout(shape, dtype)
    raw = view if named else HalBufferView(view.get_buffer(), (1,), _BYTE)
    memory = kind.from_address(address_of(config.device.create_dlpack_capsule(raw, 1, 0)))
    memory._kept = (view, config)
    return np.ndarray(shape, dtype, memory)
