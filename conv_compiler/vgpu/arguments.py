# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel's arguments as its code reads them, from Python values, held against its metadata."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import InvalidArray

if TYPE_CHECKING:
    import numpy as np

    from conv_compiler.binary.code_note import ArgumentNote

# value_kind of a pointer that is given as an array (LLVM AMDGPU usage, code object metadata).
POINTER = "global_buffer"
VALUE = "by_value"
# Letters of `struct` for numbers by their bytes.
_INTEGERS = {1: "bB", 2: "hH", 4: "iI", 8: "qQ"}
_FLOATS = {2: "e", 4: "f", 8: "d"}


class Unwritten:
    """An array that a kernel is to write, in fresh memory: a checked device reports a read of what
    nobody wrote. What the kernel leaves unwritten is undefined."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array


def described(number: int, note: ArgumentNote) -> str:
    """How an argument is called in an error: its number, its name if it has one, what it is."""
    name = f" {note.name}" if note.name else ""
    space = f" in {note.address_space} memory" if note.address_space else ""
    return f"argument {number}{name} ({note.value_kind}, {note.size} bytes{space})"


def array_of(number: int, note: ArgumentNote, value: Any) -> np.ndarray[Any, Any]:
    """The memory of an argument that is a pointer, as a numpy array that shares it.

    Raises InvalidArray for what is no array, or one whose elements do not lie one after another.
    """
    import numpy as np

    what = described(number, note)
    if not isinstance(value, np.ndarray):
        if not hasattr(value, "__dlpack__"):
            raise InvalidArray(
                f"{what} {type(value).__name__}: not an array of numpy or of a library with "
                "DLPack; give one, or None for a null pointer"
            )
        value = np.from_dlpack(value)
    if not value.flags.c_contiguous:
        raise InvalidArray(
            f"{what} of strides {value.strides}: its elements do not lie one after another; "
            "give numpy.ascontiguousarray of it"
        )
    found: np.ndarray[Any, Any] = value
    return found


def value_bytes(number: int, note: ArgumentNote, value: Any) -> bytes:
    """The bytes of an argument that is passed by its value.

    A number takes the argument's size: an int that of an integer, a float that of a float. A number
    of numpy, and bytes as of a struct, must have that size. Raises InvalidArray.
    """
    import numpy as np

    what = described(number, note)
    if isinstance(value, np.generic | np.ndarray):
        found = value.tobytes()
    elif isinstance(value, bytes | bytearray | memoryview):
        found = bytes(value)
    elif isinstance(value, bool | int):
        found = _packed(_INTEGERS.get(note.size, ""), value)
    elif isinstance(value, float):
        found = _packed(_FLOATS.get(note.size, ""), value)
    else:
        raise InvalidArray(f"{what} {type(value).__name__}: not a number; give one, or its bytes")
    if len(found) != note.size:
        raise InvalidArray(
            f"{what} {value!r}: has {len(found) or 'not these'} bytes; "
            f"give a number of {note.size} bytes, or as many bytes"
        )
    return found


def _packed(letters: str, value: float) -> bytes:
    """A number by the first of the letters that holds it; nothing where none does."""
    for letter in letters:
        try:
            return struct.pack(f"<{letter}", value)
        except (struct.error, OverflowError):
            continue
    return b""
