# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays on devices and on the host, the ways between them, and what a kernel takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import iree.runtime as iree
import numpy as np

from conv_compiler.errors import InvalidArray, LaunchFailed
from conv_compiler.problem.block_scales import SUFFIX
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.problem.layouts import without_groups
from conv_compiler.runtime.devices import reason

# What the codes of block scales and packed elements are to numpy.
CODES = np.dtype(np.uint8)


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """Shape and type of one operand of a kernel; None stands for a dimension of any size.

    `part` is the shape of the slice that is read, from the first element on; None for all of it.
    `packed` is the type of elements whose bytes it holds, empty for all others.
    """

    name: str
    shape: tuple[int | None, ...]
    dtype: np.dtype[Any]
    part: tuple[int | None, ...] | None = None
    packed: str = ""

    @classmethod
    def parse(cls, name: str, text: str, part: str = "", packed: str = "") -> Tensor:
        """The operand an MLIR tensor type such as `2x3xf16` states, and its part by `2x2`.

        The codes of block scales and packed elements have no sign, which an `i8` does not tell.
        """
        *sizes, element = text.split("x")
        return cls(
            name=name,
            shape=_shape(sizes),
            dtype=CODES if packed or name.endswith(SUFFIX) else DTYPES[element].to_numpy(),
            part=_shape(part.split("x")) if part else None,
            packed=packed,
        )

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis, of a tensor of one shape."""
        sizes = [0 if size is None else size for size in self.shape]
        return tuple(
            self.dtype.itemsize * math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))
        )

    @property
    def is_scales(self) -> bool:
        """Whether it holds codes of block scales."""
        return self.name.endswith(SUFFIX)

    def of(self, images: int | None) -> Tensor:
        """The same with so many images, where that is open."""
        if images is None:
            return self
        shape, part = (
            one and tuple(images if size is None else size for size in one)
            for one in (self.shape, self.part)
        )
        return replace(self, shape=shape or (), part=part)

    def is_slice(self, array: Any) -> bool:
        """Whether a numpy array is the part alone, and lies as in the larger tensor."""
        if not self.is_part(array.shape):
            return False
        if not isinstance(array, np.ndarray):
            return False
        every = zip(array.shape, array.strides, self.steps, strict=True)
        return not array.size or all(size == 1 or step == want for size, step, want in every)

    def is_part(self, shape: Sequence[int]) -> bool:
        """Whether an array of a shape has that of the slice."""
        return self.part is not None and _fits(shape, self.part)

    def is_empty(self, images: int | None) -> bool:
        """Whether it has no elements, with so many images where that is open."""
        return 0 in self.shape or (images == 0 and None in self.shape)

    def empty(self, images: int | None) -> np.ndarray[Any, Any]:
        """A host array of this shape and type, unwritten, but zeros around a slice."""
        make = np.empty if self.part is None else np.zeros
        return make([images if size is None else size for size in self.shape], self.dtype)

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether an array of a shape has this one."""
        return _fits(shape, self.shape)

    def check(self, array: Any) -> None:
        """Raise InvalidArray unless the array has this shape and type."""
        shape, dtype = tuple(array.shape), array.dtype
        if shape == self.shape and dtype == self.dtype:  # every call of a program comes here
            return
        if self.packed and dtype == DTYPES[self.packed].to_numpy():
            raise InvalidArray(
                f"{self.name} {dtype}: a byte for each element; give conv_compiler.pack of it"
            )
        if self.is_part(shape):
            if dtype == self.dtype and not self.is_slice(array):
                raise InvalidArray(
                    f"{self.name} {shape}: lies otherwise than as a slice of {self.shape}; give "
                    "one of numpy that does, or the larger array"
                )
        elif not self.fits(shape):
            raise InvalidArray(
                f"{self.name} {shape}: not the kernel's shape; give {self.shape}"
                f"{without_groups(self.name, shape, self.shape)}"
            )
        if dtype != self.dtype:
            raise InvalidArray(f"{self.name} {dtype}: not the kernel's type; give {self.dtype}")


def _shape(sizes: Sequence[str]) -> tuple[int | None, ...]:
    return tuple(None if size == "?" else int(size) for size in sizes)


def _fits(shape: Sequence[int], wanted: Sequence[int | None]) -> bool:
    return len(shape) == len(wanted) and all(
        want in (None, size) for size, want in zip(shape, wanted, strict=True)
    )


def images_of(batches: Iterable[tuple[str, Sequence[int], int]]) -> int | None:
    """The images of operands with a dynamic batch, None without; `batches` has name, shape and axis
    of each. Raises InvalidArray where they differ."""
    images = None
    for name, shape, axis in batches:
        images = shape[axis] if images is None else images
        if images != shape[axis]:
            raise InvalidArray(
                f"{name} {tuple(shape)}: a batch of {shape[axis]}; give all operands {images}"
            )
    return images


def as_codes(tensor: Tensor, array: Any) -> Any:
    """A numpy array of E8M0 numbers as their codes, where these are what an operand holds."""
    is_e8m0 = isinstance(array, np.ndarray) and array.dtype.name == "float8_e8m0fnu"
    return array.view(CODES) if is_e8m0 and tensor.is_scales else array


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    """The values of a device array, in memory of their own.

    In IREE 3.13 a host array mapped from a device array keeps the memory only as long as that very
    object lives: of `array.to_host().reshape(-1)` the next call overwrites the values.
    """
    if 0 in array.shape:  # nothing to map, which the HIP driver refuses
        return np.empty(array.shape, array.dtype)
    host: np.ndarray[Any, Any] = array.to_host()
    return host if host.flags.owndata else host.copy()


def place(array: Any, config: Any, device: str) -> Any:
    """A device array on a device, of a numpy array or another device's; LaunchFailed where it
    cannot hold it.

    One that is there already is given back.
    """
    if isinstance(array, iree.DeviceArray) and array._device is not config.device:
        array = to_numpy(array)
    try:
        placed = iree.asdevicearray(config.device, array, implicit_host_transfer=True)
    except RuntimeError as error:
        raise LaunchFailed(
            f"array of {array.nbytes} bytes: device {device} cannot hold it "
            f"({reason(error)}); give a smaller batch"
        ) from error
    return keeping(placed, config)


def keeping(array: Any, config: Any) -> Any:
    """A device array that keeps its device's configuration, by which `forks.py` knows devices."""
    array._config = config
    return array


def check_device(name: str, array: Any, device: Any, called: str) -> None:
    """Raise InvalidArray where a device array is of another device than the kernel.

    IREE would wait for that device in vain.
    """
    if array._device is not device:
        raise InvalidArray(
            f"{name}: an array of another device than the kernel's ({called}); "
            "copy it there with the kernel's put"
        )


def check_operands(
    tensors: Sequence[Tensor], operands: Sequence[Any], device: Any, called: str
) -> bool:
    """Whether one is a device array; InvalidArray when a shape, type or device is wrong."""
    on_device = False
    for tensor, array in zip(tensors, operands, strict=True):
        if isinstance(array, iree.DeviceArray):
            on_device = True
            check_device(tensor.name, array, device, called)
        elif not isinstance(array, np.ndarray):
            raise InvalidArray(
                f"{tensor.name} {type(array).__name__}: not an array of numpy, of a device or "
                "of a library with DLPack; convert it with numpy.asarray"
            )
        tensor.check(array)
    return on_device
