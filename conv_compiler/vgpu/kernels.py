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
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import InvalidArtifact, LaunchFailed
from conv_compiler.vgpu.device import device_uri, ready_decoder
from conv_compiler.vgpu.library import library

if TYPE_CHECKING:
    from conv_compiler.binary.code_note import KernelNote
    from conv_compiler.binary.source_lines import SourceLines
    from conv_compiler.vgpu.launches import Launch


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
        return _Handle(handle, elf)


class _Handle:
    """A loaded code object, unloaded with the last of its kernels."""

    def __init__(self, module: ctypes.c_void_p, elf: bytes) -> None:
        self.module, self.elf = module, elf
        weakref.finalize(self, library().hipModuleUnload, module)

    @cached_property
    def lines(self) -> SourceLines:
        from conv_compiler.binary.source_lines import source_lines

        return source_lines(self.elf)


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

    @property
    def elf(self) -> bytes:
        """The code object it is of."""
        return self._handle.elf

    @property
    def lines(self) -> SourceLines:
        """Which lines of a source its code comes from, where the compiler says so."""
        return self._handle.lines

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
        with self.prepared(grid, block, *arguments, lds_bytes=lds_bytes) as launch:
            launch.run()
            launch.fetch()

    def prepared(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *arguments: Any,
        lds_bytes: int = 0,
    ) -> Launch:
        """A launch with memory for its arguments, which `with` gives back; a call's arguments."""
        from conv_compiler.vgpu.launches import Launch

        function = self._function
        call = self.device.call
        return Launch(call, self.note, function, self._handle, grid, block, arguments, lds_bytes)
