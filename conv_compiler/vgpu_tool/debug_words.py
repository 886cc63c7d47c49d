# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Words of the debugger's commands: numbers, lanes, and places in the code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from conv_compiler.binary.symbols import code_symbols
from conv_compiler.errors import InvalidCommand

if TYPE_CHECKING:
    from collections.abc import Collection

    from conv_compiler.vgpu import Kernel


def count(text: str, default: int) -> int:
    """A number as Python writes it; the default where there is none."""
    if not text:
        return default
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if value < 0:
        raise InvalidCommand(f"number {text}: is none; write it as 64 or 0x40")
    return value


def one(words: str, form: str) -> str:
    """The only word there is."""
    if len(words.split()) != 1:
        raise InvalidCommand(f"{words or 'no word'}: write {form}")
    return words.strip()


def none(words: str) -> None:
    """No words."""
    if words:
        raise InvalidCommand(f"{words}: not known here; the command takes no words")


def dump(words: str, defaults: tuple[int | None, ...]) -> tuple[list[int], str]:
    """Numbers, and behind them a type; None is a number that must be given."""
    given = words.split()
    kind = given.pop() if given and not given[-1][0].isdigit() else "x32"
    needed = sum(default is None for default in defaults)
    if not needed <= len(given) <= len(defaults):
        raise InvalidCommand(f"{words or 'no word'}: {needed} to {len(defaults)} numbers are taken")
    rest = [default for default in defaults[len(given) :] if default is not None]
    return [*(count(word, 0) for word in given), *rest], kind


def lanes(text: str | None, most: int) -> range:
    """Lanes of `FIRST:LAST` or of one number; all where nothing is said."""
    if text is None:
        return range(most)
    first, _, last = text.partition(":")
    if not first:
        raise InvalidCommand("lanes: names none; write lanes 0:7")
    begin = count(first, 0)
    end = count(last, begin)
    if not begin <= end < most:
        raise InvalidCommand(f"lanes {text}: the wave has 0 to {most - 1}")
    return range(begin, end + 1)


def workgroup(text: str, grid: Sequence[int]) -> int:
    """The number of a workgroup from its place, as in `2,0,0`."""
    parts = text.split(",")
    place = [count(part, 0) for part in parts] + [0] * (3 - len(parts))
    if len(place) > 3 or any(at >= size for at, size in zip(place, grid, strict=True)):
        raise InvalidCommand(f"group {text}: not in the grid of {','.join(map(str, grid))}")
    x, y, z = place
    return x + grid[0] * (y + grid[1] * z)


def place_of(number: int, grid: Sequence[int]) -> tuple[int, int, int]:
    """The place of a workgroup from its number."""
    x, y, _ = grid
    return number % x, number // x % y, number // (x * y)


def addresses(where: str, kernel: Kernel, code: Collection[int]) -> Sequence[int]:
    """The instructions of an address, a symbol or a source line; `code` are all there are."""
    file, colon, line = where.rpartition(":")
    if line.isdecimal():
        found = kernel.lines.addresses(file, int(line))
        if not found:
            raise InvalidCommand(f"break {where}: no code is of that line")
        return found
    name, plus, offset = where.partition("+")
    symbols = code_symbols(kernel.elf)
    if not plus and where.lower().startswith("0x"):
        address = count(where, 0)
    elif name in symbols and not colon:
        address = symbols[name] + (count(offset, 0) if plus else 0)
    else:
        raise InvalidCommand(
            f"break {where}: neither an address, a line nor a symbol; symbols: {', '.join(symbols)}"
        )
    if address not in code:
        raise InvalidCommand(f"break {where}: no instruction begins at {address:#x}")
    return (address,)
