# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is in a DLPack capsule: whether IREE takes it as it lies, and the same as a numpy array; and
capsules of memory that is lent.

`numpy.from_dlpack` takes neither bf16 nor 8-bit floats, which are types of `ml_dtypes`. The structs
are those of dlpack.h, version 0.8.
"""

from __future__ import annotations

import ctypes
import math
import struct
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from conv_compiler.errors import InvalidArray


class _Tensor(ctypes.Structure):
    """DLTensor, with DLDevice and DLDataType; DLManagedTensor begins with one."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    """DLManagedTensor; no deleter is called where it is null."""

    _fields_ = (
        ("tensor", _Tensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


# The same as one read, for each field of a structure costs a call.
_HEAD = struct.Struct("=Q3i2BH3Q")
# (DLDataTypeCode, bits, lanes) -> numpy's type.
_TYPES = MappingProxyType(
    {
        **{(0, 8 * n, 1): np.dtype(f"i{n}") for n in (1, 2, 4, 8)},
        (17, 4, 2): np.dtype("u1"),  # two of float4_e2m1fn
        (1, 8, 1): np.dtype("u1"),  # codes of block scales, packed elements
        **{(2, 8 * n, 1): np.dtype(f"f{n}") for n in (2, 4, 8)},
        (4, 16, 1): np.dtype(ml_dtypes.bfloat16),
        (10, 8, 1): np.dtype(ml_dtypes.float8_e4m3fn),
        (11, 8, 1): np.dtype(ml_dtypes.float8_e4m3fnuz),
        (12, 8, 1): np.dtype(ml_dtypes.float8_e5m2),
        (13, 8, 1): np.dtype(ml_dtypes.float8_e5m2fnuz),
    }
)

_CODES = MappingProxyType({dtype: code for (code, *_), dtype in _TYPES.items()})
_NAME = b"dltensor"  # alive as long as capsules: they have its address

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)


_capsule_of = ctypes.pythonapi.PyCapsule_New
_capsule_of.restype = ctypes.py_object
_capsule_of.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class _Memory:
    """Memory for numpy, alive as long as an array of it is, for it has the capsule."""

    def __init__(self, capsule: Any, address: int, strides: tuple[int, ...], view: Any) -> None:
        self._capsule = capsule
        self.__array_interface__ = {
            "version": 3,
            "data": (address, True),
            "strides": strides,
            **view,
        }


# IREE 3.13's heap buffers (runtime/src/iree/hal/buffer_heap.c), and the codes of types that its
# bindings import (runtime/bindings/python/hal.cc).
ALIGNMENT = 64
_IMPORTED = (0, 2, 4)


def _tensor(capsule: Any) -> Any:
    return _Tensor.from_address(_pointer_of(capsule, _NAME))


_address_at = ctypes.c_void_p.from_address


def address_of(capsule: Any) -> int:
    """Where the memory of a capsule of IREE's begins, whose offset is 0."""
    return _address_at(_pointer_of(capsule, _NAME)).value or 0


def lies_as_iree_wants(capsule: Any) -> bool:
    """Whether IREE takes a capsule: dense, aligned, of one of its types, and not empty.

    It must be asked before IREE is: a capsule that IREE refuses is used up all the same.
    """
    tensor = _tensor(capsule)
    sizes = tensor.shape[: tensor.ndim]
    if 0 in sizes or tensor.code not in _IMPORTED:
        return False
    if (tensor.data + tensor.byte_offset) % ALIGNMENT:
        return False
    if not tensor.strides:
        return True
    step = 1
    for size, stride in zip(reversed(sizes), tensor.strides[: tensor.ndim][::-1], strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def lent(
    address: int, where: tuple[int, int], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[Any, Any]:
    """A capsule of a dense array at an address of a device (DLDeviceType and number), and what must
    live as long as who takes the capsule. The memory stays the caller's."""
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    managed = _Managed(
        _Tensor(
            data=address,
            device=where,
            ndim=len(shape),
            code=_CODES[dtype],
            bits=8 * dtype.itemsize,
            lanes=1,
            shape=sizes,
        )
    )
    return _capsule_of(ctypes.addressof(managed), _NAME, None), (managed, sizes)


def viewed(name: str, capsule: Any) -> np.ndarray[Any, Any]:
    """A numpy array that shares the memory of a capsule on the host.

    Raises InvalidArray for a type that no kernel takes.
    """
    head = _HEAD.unpack(ctypes.string_at(_pointer_of(capsule, _NAME), _HEAD.size))
    data, _, _, ndim, code, bits, lanes, at, steps, offset = head
    dtype = _TYPES.get((code, bits, lanes))
    if dtype is None:
        raise InvalidArray(
            f"{name}: of DLPack's type {code} with {bits} bits, which no kernel "
            "takes; see conv-compiler list dtypes"
        )
    shape = _numbers(at, ndim)
    if 0 in shape:
        return np.empty(shape, dtype)
    size = dtype.itemsize
    dense = _dense(shape)
    strides = _numbers(steps, ndim) if steps else dense
    if strides == dense:
        memory = (ctypes.c_ubyte * (size * math.prod(shape))).from_address(data + offset)
        memory._kept = capsule
        return np.ndarray(shape, dtype, memory)
    # Of a type numpy's interface knows, and then of the one it is.
    view = {"shape": shape, "typestr": f"|V{size}"}
    spread = _Memory(capsule, data + offset, tuple(size * step for step in strides), view)
    return np.asarray(spread).view(dtype)


def _numbers(address: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"={count}q", ctypes.string_at(address, 8 * count))


@lru_cache
def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a dense array, in elements."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
