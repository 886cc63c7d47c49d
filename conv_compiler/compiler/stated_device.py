# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The device that a module states, for chips that the compiler's own tables lack."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iree.compiler import ir

# The compiler's attribute of a module; it counts before what flags tell.
DEVICES = "hal.device.targets"


def state_device(module: ir.Module, device: str) -> None:
    """Have a module state for which device it is, by the attribute in a target's row; nothing is
    stated where that is empty and flags tell."""
    from iree.compiler import ir

    if device:
        with module.context:
            module.operation.attributes[DEVICES] = ir.Attribute.parse(f"[{device}]")
