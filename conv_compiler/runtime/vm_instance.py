# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one virtual machine of IREE in this process, and configurations that share it.

A new instance sets IREE's reference types to zero for a moment, for the whole process
(`iree_vm_instance_register_type` in `runtime/src/iree/vm/instance.c`). A call of another thread
fails in this moment with "ref type mismatch". `iree.runtime.Config` makes an instance each time.
"""

from __future__ import annotations

from typing import Any

import iree.runtime as iree

VM_INSTANCE = iree.VmInstance()


def configuration(device: Any) -> iree.Config:
    """The configuration of an IREE device: `iree.runtime.Config` with the shared instance."""
    config = iree.Config.__new__(iree.Config)
    config.device, config.vm_instance = device, VM_INSTANCE
    config.default_vm_modules = (iree.create_hal_module(VM_INSTANCE, device),)
    return config
