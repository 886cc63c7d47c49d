# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A launch that is stopped before any instruction, looked at, and run again to an earlier one.

>>> with Debugger(vgpu.Device("gfx942").load("k.hsaco")["saxpy"].prepared(4, 256, *arrays)) as it:
...     stop = it.go(Plan(breakpoints=(Breakpoint(address=0x1a40),)))
...     it.vector(stop.wave, 3)

Workgroups run one after another, and the waves of one in turns between barriers, so an instruction
has the same number in every run. An earlier one is reached by a new run up to that number.
"""

from __future__ import annotations

import ctypes
import queue
import threading
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import LaunchFailed
from conv_compiler.vgpu.debug_calls import ANY, NEVER, STOPPED, Point, native
from conv_compiler.vgpu.debug_stops import End, Plan, Reason, Stop, WaveState
from conv_compiler.vgpu.interrupts import Interrupts
from conv_compiler.vgpu.listing import Line

if TYPE_CHECKING:
    from types import TracebackType

    import numpy as np

    from conv_compiler.vgpu.launches import Launch

_LANES = 64
_SCALARS = 130
# Rows of a wave's vector registers; accumulation registers follow the others.
ACCUMULATION = 256
VECTORS = 512
# A launch that has not stopped so long after a signal is sent it again.
SIGNAL_AGAIN = 0.5  # seconds


_STATES = ("running", "ended", "at a barrier")


class Debugger:
    """A launch under control; it stands before its first instruction when it is made.

    The launch's own arrays stay as they are. Raises LaunchFailed where it cannot even begin.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._library = native()
        self._stopped = STOPPED(self._on_stop)
        self._debug = ctypes.c_void_p(self._library.vgpu_debug_new(self._stopped))
        self._interrupts = Interrupts()
        self._events: queue.Queue[Stop | End] = queue.Queue()
        self._orders: queue.Queue[int] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._code: tuple[Line, ...] = ()
        self.at: Stop | End = End(error="")
        begun = self.run_to(Plan(until=0))
        if isinstance(begun, End):
            self.close()
            raise LaunchFailed(begun.error or "kernel: has no first instruction")

    def __enter__(self) -> Debugger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the launch where it is."""
        with self._interrupts:
            self._leave()
        self._interrupts.close()
        if self._debug:
            self._library.vgpu_debug_delete(self._debug)
            self._debug = ctypes.c_void_p()

    def go(self, plan: Plan) -> Stop | End:
        """Go on to the next stop of a plan, or to the end. One that has ended stays so."""
        if isinstance(self.at, End):
            return self.at
        with self._interrupts:
            self._set(plan)
            self._orders.put(0)
            return self._wait()

    def run_to(self, plan: Plan) -> Stop | End:
        """Run anew from the beginning, to the first stop of a plan or to the end."""
        with self._interrupts:
            self._leave()
            self._launch.restore()
            self._set(plan)
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
            return self._wait()

    def last_break(self) -> int | None:
        """The last step of the run so far at which a breakpoint was met, before the present one;
        after the end, too."""
        step = self._library.vgpu_debug_last_break(self._debug)
        return None if step == NEVER else step

    # What can be read while the launch stands.

    def code(self) -> tuple[Line, ...]:
        """All instructions of the code object."""
        if not self._code:
            found: list[Line] = []
            address = ctypes.c_uint64()
            while text := self._library.vgpu_debug_code(
                self._debug, len(found), ctypes.byref(address)
            ):
                found.append(Line(address.value, text.decode(errors="replace")))
            # A dual instruction has two entries of one address.
            self._code = tuple({line.address: line for line in found}.values())
        return self._code

    def waves(self) -> tuple[WaveState, ...]:
        """The waves of the workgroup that runs; none after the end."""
        found: list[WaveState] = []
        facts = (ctypes.c_uint64 * 7)()
        while self._stands and self._library.vgpu_debug_wave(self._debug, len(found), facts):
            address, mask, vcc, m0, scc, lanes, state = facts
            found.append(
                WaveState(
                    index=len(found),
                    address=address,
                    exec=mask,
                    vcc=vcc,
                    m0=m0,
                    scc=scc,
                    lanes=lanes,
                    state=_STATES[state],
                )
            )
        return tuple(found)

    def vector(self, wave: int, row: int) -> np.ndarray[Any, Any] | None:
        """A vector register's dwords, one a lane; rows from ACCUMULATION on are accumulation
        registers. None where there is no such wave or register."""
        return self._registers(wave, row, _LANES) if 0 <= row < VECTORS else None

    def scalars(self, wave: int) -> np.ndarray[Any, Any] | None:
        """The scalar registers' dwords, by the codes of operands."""
        return self._registers(wave, -1, _SCALARS)

    def lds(self) -> bytes:
        """The LDS of the workgroup that runs."""
        if not self._stands:
            return b""
        size = ctypes.c_uint32()
        at = self._library.vgpu_debug_lds(self._debug, ctypes.byref(size))
        return ctypes.string_at(at, size.value) if at else b""

    def memory(self, address: int, size: int) -> bytes | None:
        """Bytes at an address as the kernel uses it; None where they are not in one allocation."""
        if not self._stands:
            return None
        at = self._library.vgpu_debug_memory(self._debug, address, size)
        return ctypes.string_at(at, size) if at else None

    @property
    def _stands(self) -> bool:
        return isinstance(self.at, Stop)

    def _registers(self, wave: int, row: int, count: int) -> np.ndarray[Any, Any] | None:
        import numpy as np

        at = self._stands and self._library.vgpu_debug_registers(self._debug, wave, row)
        return np.frombuffer(ctypes.string_at(at, 4 * count), np.uint32) if at else None

    # The thread that launches, and its conversation with this one.

    def _run(self) -> None:
        self._library.vgpu_debug_attach(self._debug)
        try:
            self._launch.run()
            error = ""
        except Exception as failed:  # whatever it is: the other thread waits to be told
            error = str(failed)
        finally:
            self._library.vgpu_debug_attach(None)
        self._events.put(End(error=error))

    def _on_stop(self, event: Any) -> int:
        """Called in that thread while the launch stands; what it returns other than 0 ends it."""
        now = event.contents
        self._events.put(
            Stop(
                step=now.step,
                executed=now.executed,
                last_break=None if now.last_break == NEVER else now.last_break,
                address=now.address,
                group=now.group,
                wave=now.wave,
                reason=Reason(now.reason),
                text=(now.text or b"").decode(errors="replace"),
            )
        )
        return self._orders.get()

    def _wait(self) -> Stop | End:
        while True:
            try:
                self.at = self._events.get(timeout=SIGNAL_AGAIN)
                return self.at
            except queue.Empty:
                self._interrupts.send_again()

    def _leave(self) -> None:
        if self._thread:
            if self._stands:
                self._orders.put(1)
            self._thread.join()
            while not self._events.empty():
                self._events.get_nowait()
            self._thread = None
        self.at = End(error="")

    def _set(self, plan: Plan) -> None:
        points = [
            Point(one.address, *(ANY if part is None else part for part in (one.group, one.wave)))
            for one in plan.breakpoints
        ]
        group, wave, executed = plan.wave or (0, 0, NEVER)
        array = (Point * len(points))(*points)
        self._library.vgpu_debug_plan(
            self._debug, plan.until, group, wave, executed, plan.armed, array, len(points)
        )
