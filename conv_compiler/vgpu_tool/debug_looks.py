# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the debugger shows: where it stands, code, waves, registers, LDS and memory."""

from __future__ import annotations

import cmd
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from conv_compiler.errors import InvalidCommand
from conv_compiler.vgpu.debug_stops import Breakpoint, End, Reason, Stop
from conv_compiler.vgpu.debugger import ACCUMULATION, VECTORS, Debugger
from conv_compiler.vgpu_tool.debug_values import (
    Registers,
    elements,
    is_type,
    lanes_text,
    memory_text,
    number,
    registers,
)
from conv_compiler.vgpu_tool.debug_words import count, dump, lanes, none, place_of

if TYPE_CHECKING:
    from conv_compiler.vgpu import Kernel
    from conv_compiler.vgpu.launches import Launch

_LISTED = 11  # instructions of `list`
_SHOWN = 64  # elements of `lds`, `mem` and `arg`
_SCALARS = 106
# Scalar registers with names, and their digits.
_NAMED = {"exec": 16, "vcc": 16, "m0": 8, "scc": 1}


class Looks(cmd.Cmd):
    """The commands that change nothing."""

    def __init__(self, debugger: Debugger, kernel: Kernel, launch: Launch, out: TextIO) -> None:
        super().__init__(stdout=out)
        self._debugger, self._kernel, self._launch = debugger, kernel, launch
        self._points: dict[int, tuple[Breakpoint, ...]] = {}
        self._wave: int | None = None  # the wave that is looked at, where it is another one

    def do_where(self, words: str) -> None:
        """where (w): where it stands."""
        none(words)
        self._show()

    def do_list(self, words: str) -> None:
        """list [N] (l): N instructions around this place (11), with their source lines."""
        listed = count(words, _LISTED)
        stop = self._standing()
        here = self._address(stop)
        code = self._debugger.code()
        index = next((i for i, line in enumerate(code) if line.address >= here), len(code))
        first = max(0, index - listed // 2)
        before = None
        for line in code[first : first + listed]:
            place = self._kernel.lines.at(line.address)
            if place and place[:2] != before:
                before = place[:2]
                self._say(place.described())
            mark = "=>" if line.address == here else "  "
            star = "*" if any(point.address == line.address for point in self._all()) else " "
            self._say(f"{mark}{star}{line.address:#x}  {line.text}")

    def do_wave(self, words: str) -> None:
        """wave [N]: look at another wave of the workgroup; without a word, list them."""
        stop = self._standing()
        waves = self._debugger.waves()
        if words:
            wanted = count(words, 0)
            if wanted >= len(waves):
                raise InvalidCommand(f"wave {wanted}: the workgroup has {len(waves)}")
            self._wave = wanted
        seen = stop.wave if self._wave is None else self._wave
        for one in waves:
            mark = "=>" if one.index == stop.wave else "  "
            looked = "*" if one.index == seen else " "
            self._say(
                f"{mark}{looked}wave {one.index}  {one.state}  at {one.address:#x}  exec "
                f"{one.exec:#x}"
            )

    def do_print(self, words: str) -> None:
        """print REGISTER ... [TYPE] [lanes FIRST:LAST] (p): registers of the wave: v3, v4:5, a0,
        s0:3, exec, vcc, m0, scc. TYPE is x32 (as it is without one), f32, f16, bf16, i32, u32, f64
        or another. Values of lanes that EXEC leaves out are in parentheses."""
        self._standing()
        given = words.split()
        if not given:
            raise InvalidCommand("print: names no register; write print v3 f32 lanes 0:7")
        wanted = None
        if "lanes" in given:
            at = given.index("lanes")
            wanted, given = " ".join(given[at + 1 :]), given[:at]
        kind = given.pop() if len(given) > 1 and is_type(given[-1]) else "x32"
        for word in given:
            self._print(word, kind, wanted)

    def do_lds(self, words: str) -> None:
        """lds [OFFSET [COUNT]] [TYPE]: elements of LDS from a byte on (x32)."""
        self._standing()
        (first, many), kind = dump(words, (0, _SHOWN))
        data = self._debugger.lds()
        if first >= len(data):
            raise InvalidCommand(f"lds {first}: the workgroup has {len(data)} bytes")
        self._dump(data[first:], many, kind, first)

    def do_mem(self, words: str) -> None:
        """mem ADDRESS [COUNT] [TYPE]: elements of memory, by the address that the kernel uses."""
        self._standing()
        (address, many), kind = dump(words, (None, _SHOWN))
        size = many * elements(b"", kind).itemsize
        data = self._debugger.memory(address, size)
        if data is None:
            raise InvalidCommand(f"mem {address:#x}: {size} bytes there are not in one allocation")
        self._dump(data, many, kind, address)

    def do_arg(self, words: str) -> None:
        """arg NUMBER [FIRST [COUNT]] [TYPE]: elements of an argument's array, as they are now."""
        self._standing()
        (which, first, many), kind = dump(words, (None, 0, _SHOWN))
        address = self._launch.address(which)
        size = elements(b"", kind).itemsize
        data = address and self._debugger.memory(address + first * size, many * size)
        while address and data is None and many > 1:  # as many as there are
            many -= 1
            data = self._debugger.memory(address + first * size, many * size)
        if not data:
            raise InvalidCommand(f"arg {which}: is no array with an element {first}")
        self._dump(data, many, kind, address + first * size)

    def _say(self, line: str) -> None:
        print(line, file=self.stdout)

    def _standing(self) -> Stop:
        if isinstance(self._debugger.at, End):
            raise InvalidCommand("the launch has ended; go on by back, reverse, goto or restart")
        return self._debugger.at

    def _all(self) -> Sequence[Breakpoint]:
        return tuple(one for points in self._points.values() for one in points)

    def _address(self, stop: Stop) -> int:
        """Where the wave is that is looked at."""
        waves = self._debugger.waves()
        other = self._wave is not None and self._wave != stop.wave and self._wave < len(waves)
        return waves[self._wave].address if other and self._wave is not None else stop.address

    def _show(self) -> None:
        at = self._debugger.at
        if isinstance(at, End):
            self._say(f"the launch failed: {at.error}" if at.error else "the launch has ended")
            return
        why = "" if at.reason is Reason.STEP else f", {at.reason.name.lower()}"
        group = place_of(at.group, self._launch.grid)
        self._say(f"step {at.step}, workgroup {group}, wave {at.wave}{why}")
        if at.text:
            self._say(at.text)
        place = self._kernel.lines.at(at.address)
        if place:
            self._say(place.described())
        text = next((one.text for one in self._debugger.code() if one.address == at.address), "?")
        self._say(f"=> {at.address:#x}  {text}")

    def _print(self, word: str, kind: str, wanted: str | None) -> None:
        stop = self._standing()
        wave = stop.wave if self._wave is None else self._wave
        state = self._debugger.waves()[wave]
        if word in _NAMED:
            self._say(f"{word} = {getattr(state, word):#0{_NAMED[word] + 2}x}")
            return
        named = registers(word)
        if named is None:
            raise InvalidCommand(
                f"register {word}: not known; write v3, v4:5, a0, s0:3, {', '.join(_NAMED)}"
            )
        if named.kind == "s":
            dwords = self._scalars(wave, named)
            values = elements(dwords, kind)
            self._say(f"{named.text} = {' '.join(number(value, kind) for value in values)}")
            return
        rows = self._vectors(wave, named)
        shown = lanes(wanted, state.lanes)
        values = elements(rows, kind)
        self._say(f"{named.text}, {kind}")
        for line in lanes_text(values, kind, state.exec, shown):
            self._say(line)

    def _scalars(self, wave: int, named: Registers) -> Any:
        found = self._debugger.scalars(wave)
        if found is None or not named.first <= named.last < _SCALARS:
            raise InvalidCommand(f"register {named.text}: there are s0 to s{_SCALARS - 1}")
        return found[named.first : named.last + 1]

    def _vectors(self, wave: int, named: Registers) -> Any:
        import numpy as np

        offset = ACCUMULATION if named.kind == "a" else 0
        most = VECTORS - ACCUMULATION
        if not named.first <= named.last < most:
            raise InvalidCommand(f"register {named.text}: there are {named.kind}0 to {most - 1}")
        rows = [
            self._debugger.vector(wave, row + offset) for row in range(named.first, named.last + 1)
        ]
        return np.ascontiguousarray(np.stack([row for row in rows if row is not None], axis=1))

    def _dump(self, data: bytes, many: int, kind: str, first: int) -> None:
        size = elements(b"", kind).itemsize
        whole = data[: min(many, len(data) // size) * size]
        for line in memory_text(elements(whole, kind), kind, first):
            self._say(line)
