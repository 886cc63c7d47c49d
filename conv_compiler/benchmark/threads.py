# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The clock of a benchmark, and the threads of both sides on a CPU."""

from __future__ import annotations

import time
from importlib.util import find_spec
from types import MappingProxyType

from conv_compiler.benchmark.turns import Clock
from conv_compiler.errors import DeviceUnavailable
from conv_compiler.targets.host import host_cores

# By processor time a busy machine costs less, but only of one thread is it the time of a call.
CLOCKS: MappingProxyType[str, Clock] = MappingProxyType(
    {"wall": time.perf_counter, "cpu": time.process_time}
)


def clock_of(word: str, threads: int | None, device: str) -> Clock:
    """The clock of a word, with the threads of the CPU set for it: one by `cpu`.

    IREE's workers are made when the CPU's device is first opened, so call this before. Raises
    DeviceUnavailable for threads that there are not, and for settings of a CPU with a card.
    """
    is_cpu = device == "cpu"
    if not is_cpu and (threads is not None or word == "cpu"):
        raise DeviceUnavailable(f"device {device}: computes on no threads of ours; use cpu")
    if threads is not None and not 1 <= threads <= host_cores():
        raise DeviceUnavailable(f"threads {threads}: not here; use 1 to {host_cores()}")
    if word == "cpu" and threads not in (None, 1):
        raise DeviceUnavailable(f"threads {threads}: --clock cpu adds them up; use 1")
    if word == "cpu" or threads is not None:
        _set_threads(threads or 1)
    return CLOCKS[word]


def _set_threads(threads: int) -> None:
    import iree.runtime as iree

    iree.flags.parse_flags(f"--task_topology_max_group_count={threads}")
    if find_spec("torch") is not None:
        import torch

        torch.set_num_threads(threads)
