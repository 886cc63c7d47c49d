# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The conversation of `vgpu debug`: a command a line, on the standard library's `cmd`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from conv_compiler.errors import ConvError, InvalidCommand
from conv_compiler.vgpu.debug_calls import NEVER
from conv_compiler.vgpu.debug_stops import Breakpoint, End, Plan, Reason, Stop
from conv_compiler.vgpu.debugger import Debugger
from conv_compiler.vgpu_tool.debug_looks import Looks
from conv_compiler.vgpu_tool.debug_words import (
    addresses,
    count,
    none,
    one,
    place_of,
    workgroup,
)

if TYPE_CHECKING:
    from conv_compiler.vgpu import Kernel
    from conv_compiler.vgpu.launches import Launch

_INTRO = "The kernel stands before its first instruction. `help` lists the commands."
_MOST_STEPS = 100_000  # of `next`, which is meant for a loop of few instructions


class Shell(Looks):
    """The commands; `do` carries out one, `converse` those of a terminal or a pipe."""

    prompt = "(vgpu) "

    def __init__(self, debugger: Debugger, kernel: Kernel, launch: Launch, out: TextIO) -> None:
        super().__init__(debugger, kernel, launch, out)
        self._last = debugger.at  # the last place at which it stood
        self.aliases = {
            "s": "step",
            "n": "next",
            "c": "continue",
            "b": "break",
            "rs": "back",
            "rc": "reverse",
            "l": "list",
            "p": "print",
            "w": "where",
            "q": "quit",
            "EOF": "quit",
        }

    @property
    def is_wrong(self) -> bool:
        """Whether it has failed, or stands at a fault or a finding."""
        at = self._debugger.at
        if isinstance(at, End):
            return bool(at.error)
        return at.reason in (Reason.FINDING, Reason.FAULT)

    def converse(self) -> None:
        """Carry out commands until one of them is `quit`."""
        self._say(_INTRO)
        self._show()
        interrupted = False
        while True:
            try:
                if interrupted:
                    self._say("")
                self.cmdloop()
                return
            except KeyboardInterrupt:
                interrupted = True

    def do(self, line: str) -> bool:
        """Carry out a command; whether it was the last one."""
        return bool(self.onecmd(self.precmd(line)))

    def onecmd(self, line: str) -> bool:
        """Carry out a command, and say what is wrong with it."""
        try:
            return bool(super().onecmd(line))
        except ConvError as error:
            self._say(f"error: {error}")
            return False

    def precmd(self, line: str) -> str:
        """The command with its whole name."""
        name, blank, rest = line.strip().partition(" ")
        return self.aliases.get(name, name) + blank + rest

    def default(self, line: str) -> None:
        """Refuse a word that is no command."""
        raise InvalidCommand(f"command {line.split()[0]}: not known here; see help")

    # Forwards.

    def do_step(self, words: str) -> None:
        """step [N] (s): execute N instructions of this wave (1); other waves take their turns."""
        stop = self._standing()
        target = (stop.group, stop.wave, stop.executed + count(words, 1))
        self._go(Plan(wave=target, breakpoints=self._all()))

    def do_next(self, words: str) -> None:
        """next (n): go on until this wave is at another source line."""
        start = self._standing()
        none(words)
        place = self._kernel.lines.at(start.address)
        if not self._kernel.lines:
            raise InvalidCommand("next: the code has no line table; use step")
        stop: Stop | End = start
        for steps in range(1, _MOST_STEPS):
            target = (start.group, start.wave, start.executed + steps)
            stop = self._debugger.go(Plan(wave=target, breakpoints=self._all()))
            if isinstance(stop, End) or stop.reason is not Reason.STEP:
                break
            now = self._kernel.lines.at(stop.address)
            if now and (place is None or now[:2] != place[:2]):
                break
        self._arrived(stop)

    def do_continue(self, words: str) -> None:
        """continue (c): go on to the next breakpoint, finding or fault, or to the end."""
        self._standing()
        none(words)
        self._go(Plan(breakpoints=self._all()))

    def do_until(self, words: str) -> None:
        """until WHERE: go on until this wave is there; WHERE as of break."""
        stop = self._standing()
        here = [
            Breakpoint(address=address, group=stop.group, wave=stop.wave)
            for address in self._places(one(words, "until WHERE"))
        ]
        self._go(Plan(breakpoints=(*here, *self._all())))

    # Backwards: a new run up to the place.

    def do_back(self, words: str) -> None:
        """back [N] (rs): take back N instructions of this wave (1); after the end, return to where
        the launch stood last."""
        back = count(words, 1)
        last = self._last
        if isinstance(last, End):
            raise InvalidCommand("back: the launch stood nowhere")
        if isinstance(self._debugger.at, End):
            return self._run_to(Plan(until=last.step))
        if back > last.executed:
            raise InvalidCommand(
                f"back {back}: the wave has executed {last.executed} instructions; go back by as "
                "many at most"
            )
        self._run_to(Plan(wave=(last.group, last.wave, last.executed - back)))

    def do_reverse(self, words: str) -> None:
        """reverse (rc): go back to the last breakpoint that was met before this place."""
        none(words)
        at = self._debugger.at
        if not self._points:
            raise InvalidCommand("reverse: there is no breakpoint; set one by break")
        until = NEVER if isinstance(at, End) else at.step
        self._debugger.run_to(Plan(until=until, breakpoints=self._all(), armed=NEVER))
        met = self._debugger.last_break()
        if met is None:
            self._arrived(self._debugger.at)
            raise InvalidCommand("reverse: no breakpoint was met before")
        self._run_to(Plan(until=met))

    def do_goto(self, words: str) -> None:
        """goto STEP: go to a step, forwards or backwards; `where` tells its number."""
        step = count(one(words, "goto STEP"), 0)
        at = self._debugger.at
        plan = Plan(until=step, armed=NEVER)
        if isinstance(at, Stop) and at.step <= step:
            self._go(plan)
        else:
            self._run_to(plan)

    def do_restart(self, words: str) -> None:
        """restart: begin anew, with the same breakpoints."""
        none(words)
        self._run_to(Plan(until=0))

    # Breakpoints.

    def do_break(self, words: str) -> None:
        """break [WHERE [group X,Y,Z] [wave N]] (b): stop before an instruction; without a word,
        list the breakpoints.

        WHERE is an address (0x1a40), a symbol (softmax, softmax+0x40), a line of a source
        (softmax.py:17), or a line of the only source (17). A line is stopped at wherever its code
        begins."""
        given = words.split()
        if not given:
            return self._list_points()
        where, *rest = given
        options = dict(zip(rest[::2], rest[1::2], strict=False))
        if len(rest) % 2 or not options.keys() <= {"group", "wave"}:
            raise InvalidCommand(f"break {words}: write break WHERE [group X,Y,Z] [wave N]")
        group = workgroup(options["group"], self._launch.grid) if "group" in options else None
        wave = count(options["wave"], 0) if "wave" in options else None
        name = max(self._points, default=0) + 1
        self._points[name] = tuple(
            Breakpoint(address=address, group=group, wave=wave) for address in self._places(where)
        )
        self._say(self._point_text(name))

    def do_delete(self, words: str) -> None:
        """delete [N]: remove a breakpoint, or all of them."""
        if not words:
            self._points.clear()
            return
        name = count(words, 0)
        if self._points.pop(name, None) is None:
            raise InvalidCommand(f"delete {name}: there is no such breakpoint; break lists them")

    def _list_points(self) -> None:
        if not self._points:
            self._say("no breakpoints")
        for name in self._points:
            self._say(self._point_text(name))

    def _point_text(self, name: int) -> str:
        points = self._points[name]
        point = points[0]
        place = self._kernel.lines.at(point.address)
        parts = [f"breakpoint {name} at {point.address:#x}", place.text if place else ""]
        if len(points) > 1:
            parts.append(f"and at {len(points) - 1} more")
        if point.group is not None:
            parts.append(f"workgroup {place_of(point.group, self._launch.grid)}")
        parts.append("" if point.wave is None else f"wave {point.wave}")
        return ", ".join(filter(None, parts))

    def do_quit(self, words: str) -> bool:
        """quit (q): leave; the arrays stay as they were before."""
        none(words)
        return True

    def do_help(self, arg: str) -> None:
        """help [COMMAND]: what a command does."""
        names = [self.aliases.get(arg, arg)] if arg else [name[3:] for name in self.get_names()]
        for name in names:
            if (method := getattr(self, f"do_{name}", None)) is None:
                if arg:
                    raise InvalidCommand(f"help {arg}: no such command")
                continue
            text = re.sub(r"\n +", "\n", method.__doc__)
            self._say(text if arg else re.sub(r"\s+", " ", text))

    # Helpers.

    def _go(self, plan: Plan) -> None:
        self._arrived(self._debugger.go(plan))

    def _run_to(self, plan: Plan) -> None:
        self._arrived(self._debugger.run_to(replace(plan, armed=NEVER)))

    def _arrived(self, at: Stop | End) -> None:
        if isinstance(at, Stop):
            self._last = at
        self._wave = None
        self._show()

    def _places(self, where: str) -> Sequence[int]:
        code = {line.address for line in self._debugger.code()}
        return addresses(where, self._kernel, code)
