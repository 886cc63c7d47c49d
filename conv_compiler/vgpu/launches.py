# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A launch of a kernel: its arguments in memory of the device, run once or again."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import InvalidArray
from conv_compiler.vgpu.arguments import (
    POINTER,
    VALUE,
    Unwritten,
    array_of,
    described,
    value_bytes,
)

if TYPE_CHECKING:
    import numpy as np

    from conv_compiler.binary.code_note import KernelNote

# hipMemcpyKind.
_TO_DEVICE, _TO_HOST = 1, 2
Call = Callable[..., None]  # of a HIP function by name, on the device


class Launch:
    """Arguments of a kernel, copied to allocations of their size; free of them when it is closed.

    `owner` has the code, and is kept as long as this is. Raises InvalidArray for an argument that
    the kernel does not take.
    """

    def __init__(
        self,
        call: Call,
        note: KernelNote,
        function: ctypes.c_void_p,
        owner: object,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        arguments: Sequence[Any],
        lds_bytes: int,
    ) -> None:
        self.note, self._call = note, call
        self.grid, self.block = three(grid), three(block)
        self._function, self._owner = function, owner
        self._sizes = [ctypes.c_uint(size) for size in (*self.grid, *self.block, lds_bytes)]
        explicit = [one for one in note.args if not one.is_hidden]
        if len(arguments) != len(explicit):
            raise InvalidArray(
                f"kernel {note.name}: {len(arguments)} arguments; it takes {len(explicit)}"
            )
        self._memory = _Memory(call)
        try:
            self._held = [
                self._memory.held(number, one, value)
                for number, (one, value) in enumerate(zip(explicit, arguments, strict=True))
            ]
        except BaseException:
            self._memory.free()
            raise

    def __enter__(self) -> Launch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the memory back."""
        self._memory.free()

    def run(self) -> None:
        """Launch it, and wait; LaunchFailed with what the device found."""
        held = self._held
        pointers = (ctypes.c_void_p * (len(held) or 1))(*map(ctypes.addressof, held))
        name = "hipModuleLaunchKernel"
        self._call(name, self._function, *self._sizes, None, pointers, None)

    def fetch(self) -> None:
        """Copy what the kernel wrote to the arrays, but for those that may not be written."""
        self._memory.fetch()

    def restore(self) -> None:
        """Put the memory into the state before the first run, at the addresses it has."""
        self._memory.restore()

    def address(self, number: int) -> int:
        """Where the memory of a pointer argument lies on the device; 0 for none."""
        held = self._held[number]
        return held.value or 0 if isinstance(held, ctypes.c_void_p) else 0


def three(size: int | Sequence[int]) -> tuple[int, int, int]:
    """x, y and z of a size that may leave the last ones out."""
    given = (size,) if isinstance(size, int) else tuple(size)
    if not 1 <= len(given) <= 3:
        raise InvalidArray(f"size {given}: not one to three numbers; write x, y, z")
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z


class _Memory:
    """The allocations of one launch."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._arrays: list[tuple[ctypes.c_void_p, np.ndarray[Any, Any], bool, bool]] = []

    def held(self, number: int, note: Any, value: Any) -> Any:
        """What the launch reads an argument from, kept as long as this is."""
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
        self._call("hipMalloc", ctypes.byref(pointer), size)
        self._arrays.append((pointer, array, written, is_read_only))
        self._fill(pointer, array, written)
        return pointer

    def restore(self) -> None:
        """Put everything into the state that `held` made."""
        for pointer, array, written, _ in self._arrays:
            self._call("vgpu_forget", pointer)
            self._fill(pointer, array, written)

    def fetch(self) -> None:
        """Copy what the kernel wrote back, but into arrays that are read only."""
        for pointer, array, _, is_read_only in self._arrays:
            if not is_read_only:
                self._copy(ctypes.c_void_p(array.ctypes.data), pointer, array.nbytes, _TO_HOST)

    def free(self) -> None:
        """Give the memory back."""
        while self._arrays:
            self._call("hipFree", self._arrays.pop()[0])

    def _fill(self, pointer: ctypes.c_void_p, array: np.ndarray[Any, Any], written: bool) -> None:
        if written:
            self._copy(pointer, ctypes.c_void_p(array.ctypes.data), array.nbytes, _TO_DEVICE)

    def _copy(self, to: ctypes.c_void_p, source: ctypes.c_void_p, size: int, kind: int) -> None:
        self._call("hipMemcpy", to, source, ctypes.c_size_t(size), kind)
