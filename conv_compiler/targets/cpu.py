# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPUs: the host, and one row for each CPU of `processors.py`."""

from __future__ import annotations

from conv_compiler.targets.processors import PROCESSORS
from conv_compiler.targets.target import Target

# IREE's worker threads set FTZ and DAZ (`iree_task_worker_main`). What converts f16 ignores both,
# and what multiplies pairs or tiles of bf16 flushes whatever they are.
_FLUSHED = ("f32", "f64", "bf16")

CPUS = (
    Target(name="cpu", backend="llvm-cpu", chip="host", flushed=_FLUSHED),
    *(
        Target(name=f"cpu-{name}", backend="llvm-cpu", chip=name, processor=row, flushed=_FLUSHED)
        for name, row in PROCESSORS.items()
    ),
)
