"""The debugger: stops where it is told, shows what is there, and comes back to the same states."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from conv_compiler import vgpu
from conv_compiler.binary.symbols import code_symbols
from conv_compiler.errors import LaunchFailed
from conv_compiler.vgpu.debug_calls import NEVER
from conv_compiler.vgpu.debug_stops import Breakpoint, End, Plan, Reason, Stop
from conv_compiler.vgpu.debugger import Debugger
from tests.vgpu.support.bare_kernels import WAIT, with_code
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

Start = Callable[..., Debugger]
BARE = BY_NAME["matmul_f16"]  # three pointers, LDS, a workgroup of 256


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a debugger on a kernel's launch, and ends it with the test."""
    begun = []

    def begin(kernel: vgpu.Kernel, *launch: object) -> Debugger:
        prepared = kernel.prepared(*launch)  # type: ignore[arg-type]
        begun.append((prepared, Debugger(prepared)))
        return begun[-1][1]

    yield begin
    for prepared, debugger in begun:
        debugger.close()
        prepared.close()


def kernel_of(source: bytes, chip: str, *, checks: bool = False) -> vgpu.Kernel:
    (kernel,) = vgpu.Device(chip, checks=checks).load(source).values()
    return kernel


@pytest.fixture(params=["gfx942", "gfx1201"])
def reduction(request: pytest.FixtureRequest, compile_for: CompileFor, start: Start) -> Debugger:
    """A kernel of several workgroups that waits for LDS at barriers where its chip has them."""
    vmfb = compile_for(BY_NAME["matmul_f16"].mlir, request.param)
    return begin_matmul(kernel_of(vmfb, request.param), start)


def begin_matmul(kernel: vgpu.Kernel, start: Start) -> Debugger:
    a, b, c = matrices()
    block = kernel.note.reqd_workgroup_size
    return start(kernel, 2, block, a, b, c)


def matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = [np.shape(one) for one in BY_NAME["matmul_f16"].inputs(rng)]
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in shapes[:2])
    return a, b, np.zeros((a.shape[0], b.shape[1]), np.float32)


def bare(compile_for: CompileFor, *code: str, checks: bool = False) -> vgpu.Kernel:
    return kernel_of(
        with_code(compile_for(BARE.mlir, "gfx90a", *BARE.flags), *code), "gfx90a", checks=checks
    )


def state(debugger: Debugger, stop: Stop) -> tuple[object, ...]:
    """All that can be read, but addresses in scalars."""
    vectors = [debugger.vector(stop.wave, row) for row in (*range(16), 256)]
    return (debugger.waves(), [one.tobytes() for one in vectors if one is not None], debugger.lds())


def executions(debugger: Debugger) -> dict[int, int]:
    """How often each address is executed, as counters have it."""
    launch = debugger._launch
    debugger.run_to(Plan(until=0))
    assert isinstance(debugger.at, Stop)
    first = debugger.at.address
    debugger.close()
    with vgpu.counting():
        launch.restore()
        launch.run()
    (row,) = vgpu.counters()
    assert sum(row.executions.values()) == row.total_instructions
    return {first + offset: times for offset, times in row.executions.items()}


def test_steps_are_the_instructions_that_are_counted(reduction: Debugger) -> None:
    """Every instruction of every wave is one step, a barrier that is waited at too."""
    seen: Counter[int] = Counter()
    stop = reduction.at
    while isinstance(stop, Stop):
        assert stop.step == sum(seen.values())
        seen[stop.address] += 1
        stop = reduction.go(Plan(until=stop.step + 1))
    assert stop == End(error="")
    assert seen == executions(reduction)


def test_an_earlier_step_is_as_it_was(reduction: Debugger) -> None:
    rng = np.random.default_rng(2)
    marks = sorted(map(int, rng.choice(2000, 12, replace=False)))
    kept = {}
    for step in marks:
        stop = reduction.go(Plan(until=step))
        assert isinstance(stop, Stop)
        kept[step] = (stop, state(reduction, stop))
    for step in reversed(marks):
        again = reduction.run_to(Plan(until=step))
        assert isinstance(again, Stop)
        assert (again, state(reduction, again)) == kept[step]


def test_registers_that_a_kernel_lacks_are_zeros(reduction: Debugger) -> None:
    """They showed what the process had left in that memory, another value in each run."""
    reduction.go(Plan(until=40))
    waves = len(reduction.waves())
    last = [reduction.vector(wave, row) for wave in range(waves) for row in (255, 511)]
    assert not any(one is None or one.any() for one in last)


def test_breakpoints_stop_one_wave_of_one_workgroup(reduction: Debugger) -> None:
    waves = len(reduction.waves())
    address = reduction.code()[-1].address
    steps = []
    stop = reduction.at
    while isinstance(stop, Stop):
        address, stop = stop.address, reduction.go(Plan(until=stop.step + 40))
    wanted = Breakpoint(address=address, group=1, wave=waves - 1)
    stop = reduction.run_to(Plan(breakpoints=[wanted]))
    while isinstance(stop, Stop):
        assert (stop.address, stop.group, stop.wave) == (address, 1, waves - 1)
        assert stop.reason is Reason.BREAKPOINT
        assert stop.last_break == (steps[-1] if steps else None)
        steps.append(stop.step)
        stop = reduction.go(Plan(breakpoints=[wanted]))
    assert steps
    assert reduction.last_break() == steps[-1]
    everywhere = Breakpoint(address=address)
    hits = 0
    stop = reduction.run_to(Plan(breakpoints=[everywhere]))
    while isinstance(stop, Stop):
        hits += 1
        stop = reduction.go(Plan(breakpoints=[everywhere]))
    assert hits == executions(reduction)[address]


def test_the_arrays_stay_and_the_memory_is_read(compile_for: CompileFor, start: Start) -> None:
    program = BY_NAME["multiply_add_f32"]
    kernel = kernel_of(compile_for(program.mlir, "gfx942"), "gfx942")
    a, b = (np.full(1000, value, np.float32) for value in (3, 5))
    c = np.zeros(1000, np.float32)
    debugger = start(kernel, 16, kernel.note.reqd_workgroup_size, a, b, vgpu.Unwritten(c))
    out = debugger._launch.address(2)
    assert debugger.memory(debugger._launch.address(0), 4000) == a.tobytes()
    assert debugger.memory(out, 4000) == b"\xff" * 4000
    assert debugger.memory(out, 4001) is None
    last = debugger.at
    while isinstance(last, Stop):
        before, last = last, debugger.go(Plan(until=last.step + 1))
    debugger.run_to(Plan(until=before.step))
    assert debugger.memory(out, 4000) == (a * b + a).tobytes()
    assert not c.any()
    debugger.run_to(Plan(until=0))
    assert debugger.memory(out, 4000) == b"\xff" * 4000


def test_registers_and_lds_are_those_of_the_code(compile_for: CompileFor, start: Start) -> None:
    """Instructions of which every effect is known, one after another."""
    code = (
        "v_and_b32_e32 v0, 0x3ff, v0",
        "v_mov_b32_e32 v1, 0",
        "v_mov_b32_e32 v2, 1",
        "v_cmpx_gt_u32_e32 vcc, 64, v0",
        "v_lshlrev_b32_e32 v3, 2, v1",
        "s_movk_i32 s8, 0x1000",
        "ds_add_u32 v1, v2",
        "s_barrier",
    )
    debugger = start(bare(compile_for, *code), 1, 256, None, None, None)
    assert isinstance(debugger.at, Stop)
    kernel = debugger._launch.note.name
    first = code_symbols(bare(compile_for, *code).elf)[kernel]
    assert debugger.at.address == first
    stop = debugger.go(Plan(wave=(0, 0, 6)))
    assert isinstance(stop, Stop)
    assert np.array_equal(debugger.vector(0, 0), np.arange(64))
    assert np.array_equal(debugger.vector(0, 2), np.ones(64))
    assert debugger.scalars(0)[8] == 0x1000
    assert debugger.waves()[0].exec == 2**64 - 1
    assert debugger.lds()[:4] == bytes(4)
    # Each of the four waves has added: the first one's 64 lanes, and nobody of the others.
    stop = debugger.go(Plan(wave=(0, 0, 7)))
    assert int.from_bytes(debugger.lds()[:4], "little") == 64
    assert isinstance(stop, Stop)
    # Behind the barrier are all waves; those before it wait, the last one goes on.
    stop = debugger.go(Plan(wave=(0, 3, 8)))
    assert isinstance(stop, Stop)
    assert stop.wave == 3
    assert [one.state for one in debugger.waves()] == ["at a barrier"] * 3 + ["running"]
    assert debugger.waves()[1].exec == 0
    assert debugger.vector(3, 999) is None
    assert debugger.vector(9, 0) is None
    # It ends within two steps; the next instruction of another wave is shown then.
    stop = debugger.go(Plan(wave=(0, 3, 20)))
    assert isinstance(stop, Stop)
    assert (stop.wave, stop.executed) == (0, 8)


def test_a_finding_and_a_fault_stop_it(compile_for: CompileFor, start: Start) -> None:
    code = ("v_mov_b32_e32 v1, 0", "s_mov_b64 s[2:3], 0", "v_add_u32_e32 v3, v3, v4")
    load = "global_load_dword v3, v1, s[2:3] offset:-4"
    store = ("v_lshlrev_b32_e32 v3, 2, v3", "ds_write_b32 v1, v2")
    debugger = start(bare(compile_for, *code, *store, load, checks=True), 1, 256, None, None, None)
    stop = debugger.go(Plan())
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.FINDING
    assert "uninitialised" in stop.text
    assert stop.executed == 5  # behind the instruction: v2 was never written
    stop = debugger.go(Plan(armed=NEVER))
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.FAULT
    assert "load outside every allocation" in stop.text
    texts = {line.address: line.text for line in debugger.code()}
    assert texts[stop.address].startswith("global_load_dword v3")
    ended = debugger.go(Plan())
    assert isinstance(ended, End)
    assert "uninitialised" in ended.error
    again = debugger.run_to(Plan(wave=(0, 0, 2), armed=NEVER))
    assert isinstance(again, Stop)
    assert again.executed == 2


def test_a_launch_that_cannot_begin_is_refused(compile_for: CompileFor) -> None:
    kernel = bare(compile_for, WAIT)
    large = kernel.prepared(1, 2048, None, None, None)
    with large as launch, pytest.raises(LaunchFailed, match="2048"):
        Debugger(launch)
    with kernel.prepared(1, 256, None, None, None) as launch, Debugger(launch) as debugger:
        assert isinstance(debugger.go(Plan()), End)
    # Another launch of the same thread is not under it.
    kernel(1, 256, None, None, None)


ENDLESS = ("v_mov_b32_e32 v1, 0", "s_branch back")


@pytest.fixture
def endless(compile_for: CompileFor) -> Iterator[Debugger]:
    with (
        bare(compile_for, *ENDLESS).prepared(1, 256, None, None, None) as launch,
        Debugger(launch) as debugger,
    ):
        yield debugger


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_a_signal_that_came_too_early_is_sent_again(
    endless: Debugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came before the launch went on, which counts none that came while it stood."""
    put = endless._orders.put

    def put_late(order: int) -> None:
        interrupt()
        time.sleep(0.01)
        put(order)

    monkeypatch.setattr(endless._orders, "put", put_late)
    stop = endless.go(Plan())
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.INTERRUPT


def test_no_signal_loses_a_stop(endless: Debugger, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any time: before the launch goes on, while it runs, and as it tells where it stands."""
    rng, senders, plan = random.Random(5), [], endless._set

    def send(to: Plan) -> None:
        senders.append(threading.Timer(rng.random() * 0.004, interrupt))
        senders[-1].start()
        plan(to)

    with monkeypatch.context() as patched:
        patched.setattr(endless, "_set", send)
        for _ in range(60):
            stop = endless.go(Plan())
            assert isinstance(stop, Stop)
            assert stop.reason is Reason.INTERRUPT
            senders[-1].join()
    again = endless.run_to(Plan(until=3))
    assert isinstance(again, Stop)
    assert again.step == 3


def test_the_signal_is_given_back(endless: Debugger) -> None:
    endless.close()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        interrupt()
