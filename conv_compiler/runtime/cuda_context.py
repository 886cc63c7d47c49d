# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A CUDA context for the calling thread.

IREE 3.13 loads modules and copies in the context that the thread has, and a thread that no CUDA
call was made in has none: PyTorch's autograd threads, or those of a pool. It uses a device's
primary context, as PyTorch and CuPy do.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

from conv_compiler.errors import DeviceUnavailable


@lru_cache(maxsize=1)
def _driver() -> Any:
    """The driver's library, initialised; None where there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    return driver if driver.cuInit(0) == 0 else None


@lru_cache
def _primary(number: int) -> ctypes.c_void_p:
    """The primary context of a device, held until this process ends."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    failed = _driver().cuDeviceGet(ctypes.byref(device), number)
    failed = failed or _driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    if failed:
        raise DeviceUnavailable(
            f"device cuda://{number}: its context cannot be had (CUDA error {failed}); "
            "see that the card is there and free"
        )
    return context


def enter_context(number: int) -> None:
    """Make the primary context of a device that of the calling thread, where it has none."""
    driver = _driver()
    if driver is None:  # IREE says why the device cannot be opened
        return
    current = ctypes.c_void_p()
    driver.cuCtxGetCurrent(ctypes.byref(current))
    if not current.value:
        driver.cuCtxSetCurrent(_primary(number))
