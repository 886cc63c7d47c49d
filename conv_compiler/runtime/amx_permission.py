# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Leave of Linux to use the tile registers of AMX, which a process must ask for.

Without it the first of their instructions ends the process (SIGILL). Linux's
Documentation/arch/x86/xstate.rst; `man 2 arch_prctl`.
"""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache

from conv_compiler.errors import DeviceUnavailable

SYS_ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA = 158, 0x1023, 18


@lru_cache(maxsize=1)
def refusal() -> str:
    """Ask once, for all threads of this process; the system's reason against it, or nothing."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(SYS_ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0:
        return ""
    return os.strerror(ctypes.get_errno())


def ask_for_tiles(name: str) -> None:
    """Raise DeviceUnavailable where Linux refuses the tile registers that artifact `name` needs."""
    if reason := refusal():
        raise DeviceUnavailable(
            f"device cpu: Linux refuses the tile registers (AMX) that {name} uses ({reason}); "
            "allow arch_prctl in the container or the kernel, or compile with --strategy cpu_dot"
        )
