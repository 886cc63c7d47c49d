"""`vgpu debug`: what its commands say, and a conversation through a terminal with Ctrl-C in it."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from conv_compiler import vgpu
from conv_compiler.binary.symbols import code_symbols
from conv_compiler.vgpu.debugger import Debugger
from conv_compiler.vgpu_tool.cli import main
from conv_compiler.vgpu_tool.debug_shell import Shell
from tests.vgpu.support.bare_kernels import with_code
from tests.vgpu.support.code_objects import image
from tests.vgpu.support.debug_lines import with_lines
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

CHIP = "gfx90a"
BARE = BY_NAME["matmul_f16"]  # three pointers, LDS, a workgroup of 256
# Of eight bytes: the first two and the v_cmpx are not.
CODE = (
    "v_and_b32_e32 v0, 0x3ff, v0",
    "v_mov_b32_e32 v1, 0",
    "v_mov_b32_e32 v2, 1",
    "v_cmpx_gt_u32_e32 vcc, 64, v0",
    "s_movk_i32 s8, 0x1000",
    "ds_add_u32 v1, v2",
    "s_barrier",
)
OFFSETS = (0, 8, 12, 16, 20, 24, 32)  # of each in bytes
ROWS = [(0, 0, 3, 0), (8, 0, 4, 0), (16, 0, 5, 0), (24, 0, 4, 0)]
SOURCE = "one\ntwo\nx = id & 0x3ff\na, b = 0, 1\nif x < 64:\n"
SECONDS = 60


def code_object(compile_for: CompileFor, *code: str) -> bytes:
    return image(with_code(compile_for(BARE.mlir, CHIP, *BARE.flags), *code))


class Talk:
    """A shell, and what it says to a command."""

    def __init__(self, source: bytes, *, checks: bool = False, grid: int = 2) -> None:
        (self.kernel,) = vgpu.Device(CHIP, checks=checks).load(source).values()
        self.array = np.arange(6, dtype=np.float32)
        self.launch = self.kernel.prepared(grid, 256, self.array, None, None)
        self.debugger = Debugger(self.launch)
        self.out = io.StringIO()
        self.shell = Shell(self.debugger, self.kernel, self.launch, self.out)
        self.first = self.debugger.code()[0].address

    def __call__(self, line: str) -> str:
        before = self.out.tell()
        self.shell.do(line)
        return self.out.getvalue()[before:]

    def close(self) -> None:
        self.debugger.close()
        self.launch.close()


@pytest.fixture
def talk(
    compile_for: CompileFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Talk]:
    (tmp_path / "k.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    plain = code_object(compile_for, *CODE)
    (first,) = code_symbols(plain).values()
    talking = Talk(with_lines(plain, 5, str(tmp_path), ["k.py"], first, ROWS, 40))
    yield talking
    talking.close()


def places(text: str) -> list[tuple[int, int, int]]:
    """(step, workgroup's x, wave) of each place told."""
    found = re.findall(r"^step (\d+), workgroup \((\d+), 0, 0\), wave (\d+)", text, re.MULTILINE)
    return [(int(a), int(b), int(c)) for a, b, c in found]


def test_steps_and_lines(talk: Talk) -> None:
    text = talk("step")
    assert places(text) == [(1, 0, 0)]
    assert "k.py:4: a, b = 0, 1\n" in text
    assert f"=> {talk.first + 8:#x}  v_mov_b32" in text
    assert places(talk("next")) == [(3, 0, 0)]
    assert places(talk("s 2")) == [(5, 0, 0)]
    assert places(talk("back")) == [(4, 0, 0)]
    assert places(talk("rs 4")) == [(0, 0, 0)]
    assert "the wave has executed 0 instructions" in talk("back")
    assert places(talk("goto 3")) == [(3, 0, 0)]
    assert places(talk("goto 1")) == [(1, 0, 0)]
    assert places(talk("restart")) == [(0, 0, 0)]
    # The last of four waves passes the barrier at once and ends, then the first one comes back.
    assert places(talk("step 7")) == [(29, 0, 0)]
    assert "the launch has ended" in talk("goto 1000")
    assert places(talk("back")) == [(29, 0, 0)]


@pytest.mark.parametrize("where", ["k.py:5", "5", "address", "symbol"])
def test_breakpoints_by_every_name(where: str, talk: Talk) -> None:
    name = talk.launch.note.name
    names = {"address": f"{talk.first + 16:#x}", "symbol": f"{name}+0x10"}
    assert "breakpoint 1 at" in talk(f"break {names.get(where, where)} group 1 wave 2")
    assert "workgroup (1, 0, 0), wave 2" in talk("break")
    stopped = talk("continue")
    assert [place[1:] for place in places(stopped)] == [(1, 2)]
    assert "breakpoint" in stopped
    assert f"=> {talk.first + 16:#x}" in stopped
    step = places(stopped)[0][0]
    assert "the launch has ended" in talk("c")
    assert places(talk("reverse")) == [(step, 1, 2)]
    assert "no breakpoint was met before" in talk("rc")
    talk("delete 1")
    assert "no breakpoints" in talk("break")
    assert "the launch has ended" in talk("c")


def test_a_line_stops_wherever_its_code_begins(talk: Talk) -> None:
    assert "and at 1 more" in talk("break k.py:4 wave 0")
    addresses = [re.findall(r"=> (0x[0-9a-f]+)", talk("c"))[0] for _ in range(4)]
    assert addresses == [f"{talk.first + at:#x}" for at in (8, 24, 8, 24)]
    assert places(talk("restart")) == [(0, 0, 0)]
    talk("delete")
    assert places(talk("until k.py:5")) == [(3, 0, 0)]


def test_registers_of_every_form(talk: Talk) -> None:
    talk("step 5")
    assert talk("print v0 i32 lanes 0:3").splitlines()[1].split() == ["lane", "0-3", *"0123"]
    assert talk("p v0 lanes 2").splitlines()[1].split() == ["lane", "2", "0x00000002"]
    assert talk("p v1:2 u64 lanes 0").split()[-1] == str(1 << 32)
    assert talk("p v2 f32 lanes 5").split()[-1] == f"{np.uint32(1).view(np.float32):.6g}"
    assert talk("p v2 u16 lanes 0:1").splitlines()[1].split() == ["lane", "0", "1", "0"]
    assert talk("p s8").strip() == "s8 = 0x00001000"
    assert talk("p exec scc").splitlines() == ["exec = 0xffffffffffffffff", "scc = 0x0"]
    # The third wave has no lane below 64.
    talk("break k.py:5 wave 2")
    talk("c")
    talk("step")
    shown = talk("p v2 i32 lanes 0:1 ")
    assert shown.split()[-2:] == ["(1)", "(1)"]
    listed = talk("wave 1")
    assert listed.count("\n") == 4
    assert "=> wave 2" in listed
    assert " *wave 1  at a barrier" in listed
    assert talk("p v0 i32 lanes 0").split()[-1] == "(64)"


def test_memory_and_lds(talk: Talk) -> None:
    assert talk("lds 0 2").split()[1:] == ["0x00000000"] * 2
    talk("step 6")
    assert talk("lds 0 2 i32").split() == ["0x0", "64", "0"]
    assert talk("arg 0 f32").split()[1:] == ["0", "1", "2", "3", "4", "5"]
    assert talk("arg 0 2 3 f32").split()[1:] == ["2", "3", "4"]
    address = talk("arg 0 f32").split()[0]
    assert talk(f"mem {address} 6 f32").split()[1:] == ["0", "1", "2", "3", "4", "5"]
    assert "6 x f32" not in talk(f"mem {address} 7 f32")
    assert "are not in one allocation" in talk(f"mem {address} 7 f32")


def test_the_list_of_code(talk: Talk) -> None:
    talk("break k.py:5")
    talk("step 2")
    shown = talk("list 7").splitlines()
    assert [line.split("  ")[0].strip() for line in shown if line.startswith("=>")] == [
        f"=> {talk.first + 12:#x}"
    ]
    assert sum("*" in line.split("0x")[0] for line in shown) == 1
    assert "k.py:5: if x < 64:" in shown
    assert len([line for line in shown if re.match(r"(=>|  )[ *]0x", line)]) == 7


def test_every_command_has_a_help(talk: Talk) -> None:
    lines = talk("help").splitlines()
    commands = [name[3:] for name in talk.shell.get_names() if name.startswith("do_")]
    assert sorted(line.split()[0].rstrip(":") for line in lines) == sorted(commands)
    for command in commands:
        assert talk(f"help {command}").startswith(command)
    assert talk("help s") == talk("help step")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("wat", "command wat: not known here"),
        ("step -1", "number -1: is none"),
        ("step two", "number two: is none"),
        ("break 0x3", "no instruction begins at 0x3"),
        ("break nobody", "neither an address, a line nor a symbol"),
        ("break k.py:99", "no code is of that line"),
        ("break 5 group 7", "group 7: not in the grid of 2,1,1"),
        ("break 5 lane 7", "write break WHERE [group X,Y,Z] [wave N]"),
        ("delete 7", "there is no such breakpoint"),
        ("reverse", "there is no breakpoint"),
        ("goto", "write goto STEP"),
        ("wave 9", "the workgroup has 4"),
        ("print", "names no register"),
        ("print v300", "there are v0 to 255"),
        ("print s200", "there are s0 to s105"),
        ("print w1", "register w1: not known"),
        ("print v0 lanes 64", "the wave has 0 to 63"),
        ("print v0 f64", "type f64: has 8 bytes"),
        ("lds 99999999", "the workgroup has"),
        ("lds 0 1 f99", "type f99: not in the table"),
        ("mem", "1 to 2 numbers are taken"),
        ("mem 0", "are not in one allocation"),
        ("arg 1", "is no array with an element 0"),
        ("where now", "the command takes no words"),
        ("help wat", "no such command"),
    ],
)
def test_what_is_refused_is_said_in_one_line(line: str, message: str, talk: Talk) -> None:
    said = talk(line)
    assert said.startswith("error: ")
    assert message in said
    assert said.count("\n") == 1


def test_next_wants_a_line_table(compile_for: CompileFor) -> None:
    talking = Talk(code_object(compile_for, *CODE))
    assert "no line table" in talking("next")
    talking.close()


def test_checks_stop_it_and_a_script_ends_by_1(
    compile_for: CompileFor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = code_object(compile_for, "v_mov_b32_e32 v1, 0", "ds_write_b32 v1, v2")
    (tmp_path / "k.hsaco").write_bytes(code)
    words = ["debug", f"{tmp_path}/k.hsaco", *["--arg", "null"] * 3]
    assert main([*words, "-x", "c"]) == 0
    assert "the launch has ended" in capsys.readouterr().out
    assert main([*words, "--checks", "-x", "c", "-x", "back", "-x", "c"]) == 1
    shown = capsys.readouterr().out
    assert len(re.findall(r"^step \d+.*, finding$", shown, re.MULTILINE)) == 2
    assert "uninitialised" in shown
    assert "ds_write_b32 v1, v2`" in shown
    # `back` goes in front of the instruction, past the finding on the way.
    assert re.search(r"^=> 0x[0-9a-f]+  ds_write_b32", shown, re.MULTILINE)


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, *words: str) -> None:
        self.master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "dumb"}
        self.process = subprocess.Popen(
            words,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
        )
        os.close(slave)
        self.text = ""

    def until(self, wanted: str, count: int, again: str = "") -> None:
        """Read until that text has come so often; `again` is typed meanwhile."""
        end = time.monotonic() + SECONDS
        while self.text.count(wanted) < count:
            assert time.monotonic() < end, self.text
            self.type(again)
            self.settle()

    def settle(self) -> None:
        """Read on until it has said nothing for a while."""
        while select.select([self.master], [], [], 0.3)[0]:
            self.text += os.read(self.master, 4096).decode()

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())


def test_a_conversation_at_a_terminal(compile_for: CompileFor, tmp_path: Path) -> None:
    """An endless kernel stops at Ctrl-C where it is, goes on, and goes back."""
    code = code_object(compile_for, "v_mov_b32_e32 v1, 0", "v_mov_b32_e32 v2, 1", "s_branch back")
    (tmp_path / "k.hsaco").write_bytes(code)
    words = ["-m", "conv_compiler.vgpu_tool.cli", "debug", f"{tmp_path}/k.hsaco"]
    terminal = Terminal(sys.executable, *words, *["--arg", "null"] * 3)
    terminal.until("(vgpu) ", 1)
    terminal.type("step\r")
    terminal.until("(vgpu) ", 2)
    assert "step 1, workgroup (0, 0, 0), wave 0" in terminal.text
    terminal.type("\r")  # again
    terminal.until("step 2, workgroup", 1)
    for times in (1, 2):
        # A Ctrl-C that comes before the command was read takes that away: a busy machine needs longer.
        for attempt in range(1, 20):
            terminal.type("c\r")
            time.sleep(0.1 * attempt)
            terminal.type("\x03")
            terminal.settle()
            if terminal.text.count(", interrupt") >= times:
                break
        assert terminal.text.count(", interrupt") >= times, terminal.text
    interrupted = [int(step) for step in re.findall(r"step (\d+),[^\n]*interrupt", terminal.text)]
    assert 3 < interrupted[0] < interrupted[1]
    # At the prompt it only begins a new line. Python does not see one that comes before it waits.
    terminal.until("(vgpu) ", terminal.text.count("(vgpu) ") + 1, again="\x03")
    terminal.settle()
    terminal.type("back 2\r")
    terminal.until(f"step {interrupted[1] - 2}, workgroup", 1)
    terminal.settle()
    terminal.type("\x04")
    assert terminal.process.wait(SECONDS) == 0
    os.close(terminal.master)
