# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Registers and memory as text: what the debugger prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from conv_compiler.errors import InvalidArray, InvalidCommand, did_you_mean
from conv_compiler.vgpu_tool.words import TYPES, type_of

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

# Numbers in hexadecimal, by their bits.
HEX = {f"x{bits}": f"u{bits}" for bits in (8, 16, 32, 64)}
_REGISTER = re.compile(r"([vas])\[?(\d+)(?::(\d+))?\]?")
_A_LINE = 8


class Registers(NamedTuple):
    """Registers by their letter, v, a or s, first and last."""

    kind: str
    first: int
    last: int

    @property
    def text(self) -> str:
        """As an assembler writes them."""
        one = self.first == self.last
        return f"{self.kind}{self.first}" if one else f"{self.kind}[{self.first}:{self.last}]"


def registers(word: str) -> Registers | None:
    """The registers of `v3`, `v3:6` or `v[3:6]`; None for another word."""
    found = _REGISTER.fullmatch(word)
    if not found:
        return None
    first = int(found[2])
    return Registers(found[1], first, int(found[3] or first))


def is_type(word: str) -> bool:
    """Whether a word names a type of elements."""
    return word in TYPES or word in HEX


def elements(data: bytes | Array, name: str) -> Array:
    """Bytes, or rows of dwords, as elements of a type: `f32`, `bf16`, `x32`, ..."""
    import numpy as np

    if not is_type(name):
        known = (*TYPES, *HEX)
        raise InvalidCommand(
            f"type {name}: not in the table; {did_you_mean(name, known)}known: {', '.join(known)}"
        )
    kind = type_of(name, HEX.get(name, name))
    array = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data.view(np.uint8)
    if array.shape[-1] % kind.itemsize:
        raise InvalidArray(
            f"type {name}: has {kind.itemsize} bytes, and {array.shape[-1]} are shown; "
            "show as many as several of it have"
        )
    found: Array = array.view(kind)
    return found


def number(value: Any, name: str) -> str:
    """One element."""
    if name in HEX:
        return f"{int(value):#0{int(name[1:]) // 4 + 2}x}"
    return str(int(value)) if name[0] in "iu" else f"{float(value):.6g}"


def lanes_text(values: Array, name: str, mask: int, shown: Sequence[int]) -> Iterator[str]:
    """A line for some lanes each, or a line a lane where it has several elements; those that EXEC
    leaves out in parentheses."""
    cells = {}
    for lane in shown:
        text = " ".join(number(value, name) for value in values[lane])
        cells[lane] = text if mask >> lane & 1 else f"({text})"
    across = _A_LINE if values.shape[1] == 1 else 1
    width = max((len(text) for text in cells.values()), default=0)
    for first in range(0, len(shown), across):
        part = shown[first : first + across]
        last = f"-{part[-1]}" if len(part) > 1 else ""
        line = "  ".join(cells[lane].rjust(width) for lane in part)
        yield f"  lane {f'{part[0]}{last}':>5}  {line}"


def memory_text(values: Array, name: str, first: int) -> Iterator[str]:
    """Elements with the address of the first of each line."""
    texts = [number(value, name) for value in values]
    width = max((len(text) for text in texts), default=0)
    for at in range(0, len(texts), _A_LINE):
        address = first + at * values.itemsize
        line = "  ".join(text.rjust(width) for text in texts[at : at + _A_LINE])
        yield f"  {address:#x}  {line}"
