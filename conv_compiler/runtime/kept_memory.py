# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that the CPU's device keeps between calls.

A result, and what lies between the kernels of a call, is memory that each call allocates. C
libraries give large pieces back to the system when they are freed. The next call then meets each
page for the first time, which can take longer than the kernel. IREE's caching allocator
(`runtime/src/iree/hal/utils/caching_allocator.h`) keeps pieces, and gives one of the same size
again.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import iree.runtime as iree

from conv_compiler.errors import DeviceUnavailable
from conv_compiler.runtime import forks

# How many MiB are kept at most, and in how many pieces.
VARIABLE = "CONV_COMPILER_KEPT_MIB"
KEPT_MIB, PIECES = 512, 32


def kept_mib() -> int:
    """What the environment says, or KEPT_MIB. DeviceUnavailable for what is no number of MiB."""
    text = os.environ.get(VARIABLE, str(KEPT_MIB))
    if not text.isdecimal():
        raise DeviceUnavailable(
            f"{VARIABLE} {text}: not a number of MiB; use 0 to keep none, or unset it"
        )
    return int(text)


@lru_cache
def host_device(driver: str) -> Any:
    """IREE's device of a driver for the CPU, opened once, that keeps memory between calls."""
    mib = kept_mib()
    if not mib:
        return iree.get_device(driver)
    pool = f"caching:device_local={mib}mib;{mib}mib;{PIECES}"
    found = iree.get_driver(driver)
    first, *_ = found.query_available_devices()
    return found.create_device(first, allocators=[pool])


forks.forget_in_child(host_device.cache_clear)
