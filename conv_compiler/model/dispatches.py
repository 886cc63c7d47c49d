# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a `.vmfb` launches, in order: read from the disassembly of its host program."""

from __future__ import annotations

import math
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from conv_compiler.errors import InvalidArtifact, ModelRefused

_CONSTANT = re.compile(r"%(i\d+)(?::\d+)? = vm\.const\.i(?:32|64)(?:\.zero| (-?\d+))")
_NAME = re.compile(r"%(r\d+) = vm\.const\.ref\.rodata (\d+)")
_RODATA = re.compile(r"^vm\.rodata\[(\d+)\] = ([0-9A-F]*)$", re.MULTILINE)
_LOOKUP = re.compile(
    r"%(i\d+)(?::\d+)? = vm\.call @hal\.executable\.lookup\.function\(%r\d+, %R?(\w+)"
)
_CALL = re.compile(r"vm\.call(?:\.variadic)? @hal\.(command_buffer\.[\w.]+|device\.queue\.[\w.]+)")
_FUNCTION = re.compile(r"vm\.func @(\w+)")
_INITIALIZER = "__init"  # looks for a device in a loop
_LABEL = re.compile(r"\s*\^(bb\d+)")
_BRANCH = re.compile(r"(?<=\^)bb\d+(?=\()")
_SEGMENTS = re.compile(r"segments\[([^\]]*)\]\(([^)]*)\)|\(([^)]*)\)")
_ONE = 65535  # how a disassembly writes an argument that is no list
_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """A piece of a buffer bound to a kernel; equal ones are the same memory."""

    name: str
    offset: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Dispatch:
    """A kernel's launch: its grid and the buffers bound to it, in order."""

    kernel: str
    grid: tuple[int, int, int]
    buffers: tuple[Buffer, ...]

    @property
    def workgroups(self) -> int:
        """Workgroups of the grid."""
        return math.prod(self.grid)


@dataclass(frozen=True, kw_only=True)
class Fill:
    """A buffer filled with a pattern, or copied, by the driver; `bytes` are those moved."""

    kind: str
    bytes: int


def disassembly(vmfb: Path) -> str:
    """The host program of a `.vmfb` as iree-dump-module prints it."""
    from importlib.util import find_spec

    spec = find_spec("iree._runtime_libs")
    if spec is None or not spec.submodule_search_locations:
        raise InvalidArtifact("iree-base-runtime: not installed; pip install iree-base-runtime")
    tool = Path(spec.submodule_search_locations[0]) / "iree-dump-module"
    command = [str(tool), "--output=disassembly", str(vmfb)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InvalidArtifact(
            f"artifact {vmfb.name}: iree-dump-module is not done after {_SECONDS} s"
        ) from error
    if done.returncode:
        raise InvalidArtifact(f"artifact {vmfb.name}: iree-dump-module cannot read it")
    return done.stdout


def dispatches(text: str) -> tuple[Dispatch | Fill, ...]:
    """The launches of a disassembled host program, in program order.

    Raises InvalidArtifact for a call that cannot be read, and ModelRefused when a grid is not a
    constant, as with dynamic shapes, or a kernel may be launched in a loop.
    """
    rodata = {int(number): bytes.fromhex(data) for number, data in _RODATA.findall(text)}
    values: dict[str, int | None] = {}
    names: dict[str, str] = {}
    functions: dict[str, str] = {}
    found: list[Dispatch | Fill] = []
    _refuse_loops(text)
    for line in text.splitlines():
        if line.startswith("vm.func"):
            values, names, functions = {}, {}, {}
        if match := _CONSTANT.search(line):
            values[match[1]] = int(match[2] or 0)
        elif match := _NAME.search(line):
            names[match[1]] = rodata.get(int(match[2]), b"").decode(errors="replace")
        elif match := _LOOKUP.search(line):
            functions[match[1]] = names.get("r" + match[2].lstrip("rR"), "")
            values[match[1]] = None
        elif match := _CALL.search(line):
            try:
                launch = _launch(match[1], line[match.end() :], values, functions)
            except (ValueError, LookupError) as error:
                raise InvalidArtifact(
                    f"host program: its call of {match[1]} is none that IREE 3.13 writes; "
                    "compile it again"
                ) from error
            if launch:
                found.append(launch)
        elif match := re.match(r"\s*%(i\d+)(?::\d+)? = ", line):
            values[match[1]] = None
    return tuple(found)


def _refuse_loops(text: str) -> None:
    function, labels = "", set[str]()
    for line in text.splitlines():
        if match := _FUNCTION.match(line):
            function, labels = match[1], set()
        elif match := _LABEL.match(line):
            labels.add(match[1])
        elif function != _INITIALIZER and labels & set(_BRANCH.findall(line)):
            raise ModelRefused(
                f"function {function}: has a loop, as of a dynamic batch, whose iterations are not "
                "known before it runs; model a static batch"
            )


def _arguments(text: str) -> tuple[list[str], list[int]]:
    """Register names of a call, and how many entries each list argument at its end has."""
    match = _SEGMENTS.search(text)
    if match is None:
        return [], []
    words = [word.strip().lstrip("%") for word in (match[2] or match[3] or "").split(",")]
    lists = [int(n) for n in (match[1] or "").split(",") if n.strip() and int(n) != _ONE]
    return words, lists


def _launch(
    call: str, text: str, values: dict[str, int | None], functions: dict[str, str]
) -> Dispatch | Fill | None:
    words, lists = _arguments(text)

    def number(word: str) -> int:
        if (value := values.get(word)) is None:
            raise ModelRefused(f"{call}: a size is not a constant; give the shapes when compiling")
        return value

    if call == "command_buffer.dispatch":
        constants, bindings = lists
        grid = (number(words[3]), number(words[4]), number(words[5]))
        first = 7 + constants
        pieces = [words[first + 5 * i : first + 5 * i + 5] for i in range(bindings)]
        buffers = tuple(
            # A binding slot, or a register that names the buffer itself (slot 0 then).
            Buffer(
                name=f"{number(slot)} {register.lower()}",
                offset=number(offset),
                bytes=number(size),
            )
            for _, slot, register, offset, size in pieces
        )
        return Dispatch(kernel=functions[words[2]], grid=grid, buffers=buffers)
    if call == "command_buffer.dispatch.indirect":
        raise ModelRefused(f"{call}: its grid is found by another kernel; it is not modelled")
    if call in _MOVES:
        kind = "copy" if "copy" in call else "fill"
        size = number(words[_MOVES[call]])
        return Fill(kind=kind, bytes=2 * size if kind == "copy" else size)
    return None


# Which argument of a call is its length.
_MOVES = {
    "command_buffer.fill_buffer": 3,
    "command_buffer.copy_buffer": 7,
    "device.queue.fill": 6,
    "device.queue.copy": 8,
}
