# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Any kernel of AMD machine code, launched from Python on the virtual GPU.

>>> device = vgpu.Device("gfx942")
>>> module = device.load("kernels.hsaco")
>>> module["saxpy"]((4, 1, 1), (256, 1, 1), x, y, 2.0, 1024)

The kernels may be any compiler's: Triton's, clang's for HIP, IREE's, an assembler's.
"""

from __future__ import annotations

import ctypes
import io
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import InvalidArray, InvalidArtifact, LaunchFailed
from conv_compiler.vgpu.device import device_uri, ready_decoder
from conv_compiler.vgpu.library import library

if TYPE_CHECKING:
    import numpy as np

    from conv_compiler.binary.code_note import KernelNote

# hipMemcpyKind.
_TO_DEVICE, _TO_HOST = 1, 2


class Unwritten:
    """An array that a kernel is to write, in fresh memory: a checked device reports a read of what
    nobody wrote. What the kernel leaves unwritten is undefined."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array


class Device:
    """A virtual GPU of a chip; with `checks` launches are watched for faults.

    Raises VirtualDeviceError for a chip that is not executed.
    """

    def __init__(self, chip: str, *, checks: bool = False) -> None:
        self._ordinal = int(device_uri(chip, checks=checks).rpartition("/")[2])
        self.chip, self.checks = chip, checks
        ready_decoder()

    def load(self, source: Path | str | bytes) -> Module:
        """The kernels for this chip in a file or its bytes (`binary/code_objects.py`).

        Raises InvalidArtifact where there are none, or they are damaged.
        """
        from conv_compiler.binary.code_note import read_note
        from conv_compiler.binary.code_objects import COMPRESSED, code_objects
        from conv_compiler.vgpu.predecode import predecode

        name = "bytes" if isinstance(source, bytes) else os.fspath(source)
        data = source if isinstance(source, bytes) else Path(source).read_bytes()
        found = [(read_note(io.BytesIO(elf)), elf) for elf in code_objects(data)]
        chips = sorted({note.chip for note, _ in found})
        fitting = [(note, elf) for note, elf in found if note.chip == self.chip]
        if not fitting:
            why = f"has kernels for {', '.join(chips)} only" if chips else "has no AMD code object"
            if not chips and COMPRESSED in data:
                why = "has compressed code objects, which are not read"
            raise InvalidArtifact(
                f"{name}: {why}; give a file with code for {self.chip}"
                + (", as of clang's --no-offload-compress" if "compressed" in why else "")
            )
        predecode(tuple(elf for _, elf in fitting), self.chip)
        return Module(
            {
                record.name: Kernel(self, record, handle)
                for note, elf in fitting
                for handle in [self._module(elf)]
                for record in note.kernels
            }
        )

    def call(self, name: str, *arguments: Any) -> None:
        """A HIP call on this device; LaunchFailed with the library's words where it fails."""
        self._bare("hipSetDevice", self._ordinal)
        self._bare(name, *arguments)

    def _bare(self, name: str, *arguments: Any) -> None:
        if error := getattr(library(), name)(*arguments):
            said = library().hipGetErrorString
            said.restype = ctypes.c_char_p
            raise LaunchFailed(f"{name}: {said(error).decode(errors='replace')}")

    def _module(self, elf: bytes) -> _Handle:
        handle = ctypes.c_void_p()
        try:
            self.call("hipModuleLoadData", ctypes.byref(handle), elf)
        except LaunchFailed as error:
            raise InvalidArtifact(f"code object: {error}; compile it again") from None
        return _Handle(self, handle)


class _Handle:
    """A loaded code object, unloaded with the last of its kernels."""

    def __init__(self, device: Device, module: ctypes.c_void_p) -> None:
        self.module = module
        weakref.finalize(self, library().hipModuleUnload, module)


class Module(Mapping[str, "Kernel"]):
    """The kernels of a file, by name."""

    def __init__(self, kernels: Mapping[str, Kernel]) -> None:
        self._kernels = dict(kernels)

    def __getitem__(self, name: str) -> Kernel:
        """The kernel; InvalidArtifact naming those there are for one that there is not."""
        if name not in self._kernels:
            raise InvalidArtifact(
                f"kernel {name}: not in the file; it has {', '.join(self._kernels)}"
            )
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)


class Kernel:
    """One kernel; `note` is what the compiler states of it."""

    def __init__(self, device: Device, note: KernelNote, handle: _Handle) -> None:
        self.device, self.note, self._handle = device, note, handle
        self._function = ctypes.c_void_p()
        device.call(
            "hipModuleGetFunction",
            ctypes.byref(self._function),
            handle.module,
            note.name.encode(),
        )

    def __call__(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *arguments: Any,
        lds_bytes: int = 0,
    ) -> None:
        """Launch it, and wait: `grid` workgroups of `block` threads, `lds_bytes` of dynamic LDS.

        An array (numpy's, or one with `__dlpack__` in the host's memory) is a pointer: its elements
        are copied to an allocation of its size, and back when the kernel has ended. So an access
        outside of it is found where the device checks. None is a null pointer. Numbers are passed
        by value, in the size that the kernel states.

        Raises InvalidArray for an argument that the kernel does not take, and LaunchFailed with
        what the device found; arrays are then as they were.
        """
        explicit = [one for one in self.note.args if not one.is_hidden]
        if len(arguments) != len(explicit):
            raise InvalidArray(
                f"kernel {self.note.name}: {len(arguments)} arguments; it takes {len(explicit)}"
            )
        memory = _Memory(self.device)
        try:
            held = [
                memory.held(number, note, value)
                for number, (note, value) in enumerate(zip(explicit, arguments, strict=True))
            ]
            pointers = (ctypes.c_void_p * (len(held) or 1))(*map(ctypes.addressof, held))
            sizes = map(ctypes.c_uint, (*_three(grid), *_three(block), lds_bytes))
            self.device.call("hipModuleLaunchKernel", self._function, *sizes, None, pointers, None)
            memory.fetch()
        finally:
            memory.free()


def _three(size: int | Sequence[int]) -> tuple[int, int, int]:
    """x, y and z of a size that may leave the last ones out."""
    given = (size,) if isinstance(size, int) else tuple(size)
    if not 1 <= len(given) <= 3:
        raise InvalidArray(f"size {given}: not one to three numbers; write x, y, z")
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z


class _Memory:
    """The allocations of one launch."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._arrays: list[tuple[ctypes.c_void_p, np.ndarray[Any, Any], bool]] = []

    def held(self, number: int, note: Any, value: Any) -> Any:
        """What the launch reads an argument from, kept as long as this is."""
        from conv_compiler.vgpu.arguments import POINTER, VALUE, array_of, described, value_bytes

        if note.value_kind == VALUE:
            data = value_bytes(number, note, value)
            return (ctypes.c_char * len(data)).from_buffer_copy(data)
        if note.value_kind != POINTER:
            raise InvalidArray(
                f"{described(number, note)}: no kind of argument that is passed here; "
                f"give a kernel of pointers ({POINTER}) and values ({VALUE})"
            )
        if value is None:
            return ctypes.c_void_p()
        written = not isinstance(value, Unwritten)
        given = value if written else value.array
        array = array_of(number, note, given)
        # numpy calls arrays of other libraries read-only, as they may be.
        is_read_only = array is given and not array.flags.writeable
        pointer = ctypes.c_void_p()
        size = ctypes.c_size_t(max(1, array.nbytes))
        self._device.call("hipMalloc", ctypes.byref(pointer), size)
        self._arrays.append((pointer, array, is_read_only))
        if written:
            self._copy(pointer, ctypes.c_void_p(array.ctypes.data), array.nbytes, _TO_DEVICE)
        return pointer

    def fetch(self) -> None:
        """Copy what the kernel wrote back, but into arrays that are read only."""
        for pointer, array, is_read_only in self._arrays:
            if not is_read_only:
                self._copy(ctypes.c_void_p(array.ctypes.data), pointer, array.nbytes, _TO_HOST)

    def free(self) -> None:
        """Give the memory back."""
        for pointer, *_ in self._arrays:
            self._device.call("hipFree", pointer)

    def _copy(self, to: ctypes.c_void_p, source: ctypes.c_void_p, size: int, kind: int) -> None:
        self._device.call("hipMemcpy", to, source, ctypes.c_size_t(size), kind)
