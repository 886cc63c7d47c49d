# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of 4 and 6 bits: arrays with one in each byte, and the packed form that kernels take.

Adjacent elements of the last axis share bytes, the first one in the lowest bits: two of 4 bits a
byte, four of 6 bits three bytes. PyTorch's `float4_e2m1fn_x2` lies so too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.errors import InvalidArray
from conv_compiler.problem.dtypes import DTYPES, DType, name_of_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_ROWS = tuple(row for row in DTYPES.values() if row.is_packed)


def pack(array: Array) -> Array:
    """Elements with a byte each as a kernel takes them.

    Args:
        array: Elements of `ml_dtypes.float4_e2m1fn`, `float6_e2m3fn` or `float6_e3m2fn`. The last
            axis is a multiple of 2 elements of 4 bits, or of 4 elements of 6 bits.

    Returns:
        A uint8 array of this shape, whose last axis counts bytes: a half or three quarters of it.

    Raises:
        InvalidArray: It is of another type, or its last axis does not fill whole bytes.

    Example:
        >>> import ml_dtypes
        >>> cc.pack(np.array([0.5, 1, 1.5, 2], ml_dtypes.float4_e2m1fn)).tolist()
        [33, 67]
    """
    row = _row(array.dtype, f"array of {array.dtype}")
    elements, size = row.packed
    groups = _groups(array, elements, row)
    codes = array.view(np.uint8).reshape(groups).astype(np.uint32) & (1 << row.bits) - 1
    words = np.bitwise_or.reduce(codes << row.bits * np.arange(elements, dtype=np.uint32), axis=-1)
    parts = words[..., None] >> 8 * np.arange(size, dtype=np.uint32)
    found: Array = parts.astype(np.uint8).reshape(*groups[:-2], groups[-2] * size)
    return found


def unpack(array: Array, dtype: Any) -> Array:
    """The elements of a packed array with a byte each.

    Args:
        array: A uint8 array, as of `pack`.
        dtype: The type of the elements: `f4E2M1FN`, `f6E2M3FN`, `f6E3M2FN`, or that of ml_dtypes.

    Returns:
        An array of ml_dtypes' type, with two elements for a byte or four for three bytes.

    Raises:
        InvalidArray: The array is not of uint8, its last axis is no whole number of elements, or
            the type is none that is packed.

    Example:
        >>> cc.unpack(np.array([33, 67], np.uint8), "f4E2M1FN").astype(float).tolist()
        [0.5, 1.0, 1.5, 2.0]
    """
    row = _row(dtype, f"elements of {dtype}")
    elements, size = row.packed
    if array.dtype != np.uint8:
        raise InvalidArray(f"array of {array.dtype}: not packed elements; give uint8")
    groups = _groups(array, size, row)
    parts = array.reshape(groups).astype(np.uint32) << 8 * np.arange(size, dtype=np.uint32)
    words = np.bitwise_or.reduce(parts, axis=-1)[..., None]
    codes = words >> row.bits * np.arange(elements, dtype=np.uint32) & (1 << row.bits) - 1
    found: Array = codes.astype(np.uint8).reshape(*groups[:-2], groups[-2] * elements)
    found = found.view(row.to_numpy())
    return found


def _row(dtype: Any, what: str) -> DType:
    """The row of a type that is packed."""
    name = name_of_dtype(dtype)
    found = next((row for row in _ROWS if row.name == name), None)
    if found is None:
        known = " or ".join(f"{row.name} ({row.numpy})" for row in _ROWS)
        raise InvalidArray(f"{what}: not packed; give {known}")
    return found


def _groups(array: Array, size: int, row: DType) -> tuple[int, ...]:
    """The shape whose last axis is one group of elements or of their bytes."""
    last = array.shape[-1] if array.ndim else 1
    if last % size:
        elements, bytes_ = row.packed
        raise InvalidArray(
            f"array {array.shape}: {elements} elements of {row.name} are {bytes_} "
            f"byte{'s' * (bytes_ > 1)}; make the last axis a multiple of {size}"
        )
    return (*array.shape[:-1], last // size, size)
