# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that have imported a module already and fork for each job.

    python -m conv_compiler.compiler.warm_process MODULE

serves jobs at its standard input, a socket, until that closes. A job runs `MODULE.main(words)` in a
child of the warm process: it saves the imports, and a crash ends the child alone. Python's
`multiprocessing.forkserver` would import the user's main module again, and has one setting for
the whole of the user's process.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

# What a job writes to its standard output and error, in its folder.
LOG = "job.log"
# Beyond a job's own limit: the start of a warm process on a busy machine.
_GRACE_SECONDS = 60
# OpenBLAS, which numpy loads, starts threads; a process that forks has one.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}


class _Warm:
    """One warm process and the socket to it; it runs one job at a time."""

    def __init__(self, module: str) -> None:
        # The package is found there as it was here.
        paths = (os.path.abspath(path) for path in sys.path if path)
        environment = os.environ | _ONE_THREAD | {"PYTHONPATH": os.pathsep.join(paths)}
        self.channel, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-Pm", __name__, module],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                # Ctrl-C at a terminal is for the user's process, which ends this one if need be.
                start_new_session=True,
            )

    def run(
        self, words: Sequence[str], folder: Path, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run one job to its end; TimeoutExpired after `seconds`."""
        self.channel.settimeout(seconds + _GRACE_SECONDS)
        job = {"words": list(words), "folder": os.path.abspath(folder), "seconds": seconds}
        try:
            self.channel.sendall(json.dumps(job).encode() + b"\n")
            answer = self.channel.recv(64)
        except TimeoutError as error:
            raise subprocess.TimeoutExpired(list(words), seconds) from error
        except ConnectionError:
            answer = b""
        # No answer: the warm process is gone, which is told as the end of a job is.
        code = int(answer) if answer else self.process.wait(_GRACE_SECONDS)
        if code == -signal.SIGALRM:
            raise subprocess.TimeoutExpired(list(words), seconds)
        log = folder / LOG
        said = log.read_text(errors="replace") if log.exists() else ""
        return subprocess.CompletedProcess(list(words), code, stdout="", stderr=said)

    def end(self) -> None:
        """End the process, and the job it may be at."""
        self.channel.close()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def leave_to_parent(self) -> None:
        """In a forked child: close this end of the socket, and wait for nobody's process."""
        self.channel.close()
        self.process.returncode = 0


class WarmProcesses:
    """Warm processes of one module: one is started when a job finds none that is idle.

    Threads may share it. A forked child starts processes of its own. Nothing outlives the user's
    process by more than the job it was at.
    """

    def __init__(self, module: str) -> None:
        self.module = module
        self._idle: list[_Warm] = []
        self._busy: list[_Warm] = []
        self._lock = threading.Lock()
        atexit.register(self.end)
        os.register_at_fork(after_in_child=self._in_child)

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The processes that run now, idle or not."""
        with self._lock:
            return tuple(one.process.pid for one in (*self._idle, *self._busy))

    def start(self) -> None:
        """Have a process import the module while the caller does something else."""
        with self._lock:
            if not self._idle:
                self._idle.append(_Warm(self.module))

    def run(
        self, words: Sequence[str], folder: Path, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run `main(words)` of the module in a folder, as `subprocess.run` runs a command.

        A signal that ended the job is a negative exit code. Raises `subprocess.TimeoutExpired`
        after so many seconds.
        """
        warm = self._take()
        try:
            done = warm.run(words, folder, seconds)
        except BaseException:
            self._drop(warm)
            raise
        if warm.process.poll() is None:
            with self._lock:
                self._busy.remove(warm)
                self._idle.append(warm)
        else:
            self._drop(warm)
        return done

    def end(self) -> None:
        """End the idle processes; the next job starts another."""
        with self._lock:
            idle, self._idle = self._idle, []
        for one in idle:
            one.end()

    def _take(self) -> _Warm:
        """An idle process, or a new one; one that was killed while idle is forgotten."""
        gone: list[_Warm] = []
        with self._lock:
            while self._idle and self._idle[-1].process.poll() is not None:
                gone.append(self._idle.pop())
            warm = self._idle.pop() if self._idle else _Warm(self.module)
            self._busy.append(warm)
        for one in gone:
            one.end()
        return warm

    def _drop(self, warm: _Warm) -> None:
        with self._lock:
            self._busy.remove(warm)
        warm.end()

    def _in_child(self) -> None:
        self._lock = threading.Lock()  # another thread of the parent may have held it
        for one in (*self._idle, *self._busy):
            one.leave_to_parent()
        self._idle, self._busy = [], []


def _work(module: str, words: list[str], folder: str, seconds: float) -> int:
    """In the child: do a job, with what it says in the log; its exit code."""
    # The default action of SIGALRM ends a process wherever it is, in a compiler's loop too.
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        os.chdir(folder)
        log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(log, stream)
        return int(import_module(module).main(words))
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def serve(module: str) -> None:
    """Do the jobs that arrive at standard input, each in a child, until it closes."""
    channel = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    import_module(module)
    gc.collect()
    gc.freeze()  # children share these objects' memory
    for line in channel.makefile("rb"):
        job = json.loads(line)
        child = os.fork()
        if not child:
            os.close(channel.fileno())  # who waits for an answer sees the warm process end
            os._exit(_work(module, **job))
        _, status = os.waitpid(child, 0)
        channel.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    serve(sys.argv[1])
