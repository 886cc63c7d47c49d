# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""After a launch that failed: what is forgotten, and what is said."""

from __future__ import annotations

from collections.abc import Callable

from conv_compiler.runtime.devices import open_device

# What to forget when a launch failed: a device on which one did stays failed, and the next load
# opens a fresh one.
AFTER_FAILURE: list[Callable[[], None]] = []


def drop_devices() -> None:
    """Forget all devices, and what others keep of them."""
    try:
        open_device.cache_clear()
    finally:  # a signal's handler may raise after that call
        for forget in AFTER_FAILURE:
            forget()


def launch_reason(error: Exception) -> str:
    """What stopped a kernel, whole, on one line: a driver's text, or a virtual GPU's finding."""
    text = " ".join(str(error).split(" [ ")[0].split())
    return text.partition("driver error ")[2] or text
