# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IREE 3.13 zeroes its reference types while an instance is made, and calls of other threads fail.

A device opened in one thread made an instance, and a kernel running in another could stop with
"ref type mismatch" (docs/upstream/iree-instances-and-threads.md). Now a process has one instance.
"""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.devices import open_device
from conv_compiler.runtime.kernel import load

CALLS = 5000


@pytest.fixture
def threads_in_short_turns():
    """Threads of Python give way within microseconds, so that calls and openings meet often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("threads_in_short_turns")
def test_devices_are_opened_while_a_kernel_runs():
    problem = ConvProblem(n=1, k=1, c=1, image=(2, 2), filter=(1, 1))
    kernel = load(compile(problem, "cpu"))
    image, gradient = (np.ones(shape, np.float16) for shape in problem.operand_shapes)
    opened, done = 0, False

    def open_devices():
        nonlocal opened
        while not done:
            open_device.__wrapped__("cpu", "host")
            opened += 1

    opener = threading.Thread(target=open_devices)
    opener.start()
    try:
        for _ in range(CALLS):
            assert kernel(image, gradient) == 4
    finally:
        done = True
        opener.join()
    assert opened > CALLS // 10
