"""A kernel that does not end: a budget of instructions stops it, and so do Ctrl-C and SIGTERM, within a second."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from conv_compiler import vgpu
from conv_compiler.errors import LaunchFailed
from conv_compiler.runtime.kernel import load as load_kernel
from tests.chips import each
from tests.vgpu.support.compiled import Compiled
from tests.vgpu.support.running import CompileFor, load

# Steps from each value of %a until it meets that of %b: never from an even one to an odd one.
SEARCH = """
#each = affine_map<(i) -> (i)>
func.func @main(%a: tensor<256xi32>, %b: tensor<256xi32>) -> tensor<256xi32> {
  %empty = tensor.empty() : tensor<256xi32>
  %found = linalg.generic {indexing_maps = [#each, #each, #each], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<256xi32>, tensor<256xi32>) outs(%empty : tensor<256xi32>) {
  ^bb0(%start: i32, %goal: i32, %out: i32):
    %end = scf.while (%at = %start) : (i32) -> i32 {
      %go = arith.cmpi ne, %at, %goal : i32
      scf.condition(%go) %at : i32
    } do {
    ^bb0(%at: i32):
      %five = arith.constant 5 : i32
      %two = arith.constant 2 : i32
      %times = arith.muli %at, %five : i32
      %next = arith.addi %times, %two : i32
      scf.yield %next : i32
    }
    linalg.yield %end : i32
  } -> tensor<256xi32>
  return %found : tensor<256xi32>
}"""
EVEN = np.arange(256, dtype=np.int32) * 2
REACHED, NEVER = EVEN * 5 + 2, EVEN + 1
BUDGET = 100_000
PLACE = r"at 0x[0-9a-f]+ `s_[^`]+`, workgroup \(\d+, 0, 0\), wave \d+"
OVER = rf"main_dispatch_0\w*: more than {BUDGET} instructions in one wave.* {PLACE}"
SECONDS = 60  # for a process to start on a busy machine
MOST_SECONDS_TO_END = 1.0


@pytest.mark.parametrize("checks", [False, True], ids=["plain", "checked"])
@pytest.mark.parametrize("chip", each(vgpu.CHIPS))
def test_budget_stops_it_and_a_fresh_device_works(
    chip: str, checks: bool, compile_for: CompileFor
) -> None:
    vmfb = compile_for(SEARCH, chip)
    with vgpu.instruction_budget(BUDGET):
        with pytest.raises(RuntimeError, match=OVER):
            load(vgpu.device(chip, checks=checks), vmfb)(EVEN, NEVER)
        got = load(vgpu.device(chip, checks=checks), vmfb)(EVEN, REACHED)
    np.testing.assert_array_equal(got, REACHED)


def test_budget_is_what_it_was_afterwards(compile_for: CompileFor) -> None:
    vmfb = compile_for(SEARCH, "gfx942")
    with vgpu.instruction_budget(BUDGET):
        with vgpu.instruction_budget(10), pytest.raises(RuntimeError, match="more than 10 "):
            load(vgpu.device("gfx942"), vmfb)(EVEN, NEVER)
        with pytest.raises(RuntimeError, match=OVER):
            load(vgpu.device("gfx942"), vmfb)(EVEN, NEVER)
    np.testing.assert_array_equal(load(vgpu.device("gfx942"), vmfb)(EVEN, REACHED), REACHED)


@pytest.mark.parametrize("instructions", [0, -1, 2**64])
def test_no_budget_is_refused(instructions: int) -> None:
    refused = pytest.raises(vgpu.VirtualDeviceError, match="instruction budget")
    with refused, vgpu.instruction_budget(instructions):
        pass


def test_waves_that_meet_at_a_barrier_for_ever_are_stopped(compiled: Compiled) -> None:
    """A loop around a barrier: each wave's share of it is within the budget of one iteration."""
    from tests.vgpu.support import bare_kernels

    vmfb = bare_kernels.with_code(
        compiled.vmfb(SEARCH, bare_kernels.CHIP), "s_barrier", "s_branch back"
    )
    hip = bare_kernels.Hip(checks=False)
    try:
        over = pytest.raises(bare_kernels.HipError, match=f"more than {BUDGET} instructions")
        with vgpu.instruction_budget(BUDGET), over:
            hip.launch(vmfb, block=(64, 1, 1))
    finally:
        hip.close()


def test_our_runtime_says_it_as_its_own_error(compile_for: CompileFor, tmp_path: Path) -> None:
    """And the next load has a device that works."""
    file = tmp_path / "search.vmfb"
    file.write_bytes(compile_for(SEARCH, "gfx1100"))
    with vgpu.instruction_budget(BUDGET), pytest.raises(LaunchFailed, match=OVER):
        load_kernel(file, "vgpu")(EVEN, NEVER)
    np.testing.assert_array_equal(load_kernel(file, "vgpu")(EVEN, REACHED), REACHED)


# IREE's runtime alone, and ours. A line is printed before the endless call, one after its end.
PLAIN = """
from tests.vgpu.support.running import load
from conv_compiler import vgpu
import time
on_device = load(vgpu.device("gfx942"), file.read_bytes())
def main(*operands):
    try:
        return on_device(*operands)
    except RuntimeError:  # the launch failed; Python calls a signal's handler at the next call
        time.sleep(0)
        raise
"""
OURS = """
from conv_compiler.runtime.kernel import load
main = lambda *operands: load(file, "vgpu")(*operands)
"""
BODY = """
import signal, sys
from pathlib import Path
sys.path.insert(0, {folder!r})
import numpy as np
file = Path(sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)
{setup}
even = np.arange(256, dtype=np.int32) * 2
assert (main(even, even * 5 + 2) == even * 5 + 2).all()
print("runs", flush=True)
try:
    main(even, even + 1)
except {caught}:
    print("ended", flush=True)
"""
GOES_ON = """
from conv_compiler.runtime.kernel import load as reload
assert (reload(file, "vgpu")(even, even * 5 + 2) == even * 5 + 2).all()
print("goes on", flush=True)
"""
HANDLE_TERM = """
def leave(number, frame):
    raise SystemExit(3)
signal.signal(signal.SIGTERM, leave)
"""


def signalled(words: list[str], number: int) -> tuple[subprocess.Popen[str], float]:
    """Start a process, send it the signal once it runs the kernel; how long it took to end it."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        assert process.stdout.readline() == "runs\n"
        time.sleep(0.3)
        sent = time.monotonic()
        process.send_signal(number)
        process.stdout.readline()  # "ended", or the end of the process
        return process, time.monotonic() - sent
    except BaseException:
        process.kill()
        raise


@pytest.fixture
def search(compile_for: CompileFor, tmp_path: Path) -> Path:
    file = tmp_path / "search.vmfb"
    file.write_bytes(compile_for(SEARCH, "gfx942"))
    return file


def script(search: Path, setup: str, caught: str, after: str = "") -> list[str]:
    body = BODY.format(folder=str(Path(__file__).parents[3]), setup=setup, caught=caught)
    return [sys.executable, "-c", body + after, str(search)]


@pytest.mark.timed
@pytest.mark.parametrize("setup", [PLAIN, OURS], ids=["iree", "ours"])
def test_ctrl_c_reaches_python_within_a_second(setup: str, search: Path) -> None:
    """The process goes on with a device that works."""
    words = script(search, setup, "KeyboardInterrupt", GOES_ON)
    process, seconds = signalled(words, signal.SIGINT)
    rest, _ = process.communicate(timeout=SECONDS)
    assert (rest, process.returncode) == ("goes on\n", 0)
    assert seconds < MOST_SECONDS_TO_END


@pytest.mark.timed
@pytest.mark.parametrize("setup", [PLAIN, OURS], ids=["iree", "ours"])
def test_handler_of_sigterm_is_called_within_a_second(setup: str, search: Path) -> None:
    words = script(search, setup + HANDLE_TERM, "SystemExit")
    process, seconds = signalled(words, signal.SIGTERM)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert seconds < MOST_SECONDS_TO_END


@pytest.mark.timed
def test_sigterm_without_a_handler_ends_the_process(search: Path) -> None:
    process, seconds = signalled(script(search, OURS, "KeyboardInterrupt"), signal.SIGTERM)
    process.communicate(timeout=SECONDS)
    assert process.returncode == -signal.SIGTERM
    assert seconds < MOST_SECONDS_TO_END


CLI = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
from conv_compiler import cli
from conv_compiler.runtime import kernel as runtime
invoke = runtime.Kernel.__call__
def told(kernel, *operands):
    print("runs", flush=True)
    return invoke(kernel, *operands)
runtime.Kernel.__call__ = told
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.timed
def test_ctrl_c_ends_the_command_within_a_second(search: Path, tmp_path: Path) -> None:
    """With the exit code that shells give it, nothing written and no traceback."""
    for name, array in (("a", EVEN), ("b", NEVER)):
        np.save(tmp_path / name, array)
    words = [sys.executable, "-c", CLI, "run", str(search), "--device", "vgpu"]
    words += ["--input", str(tmp_path / "a.npy"), "--d-output", str(tmp_path / "b.npy")]
    process, seconds = signalled([*words, "-o", str(tmp_path / "c.npy")], signal.SIGINT)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert seconds < MOST_SECONDS_TO_END
    assert not (tmp_path / "c.npy").exists()
