# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The virtual AMD GPU: devices for IREE's `hip` driver that run gfx machine code on the host.

>>> import iree.runtime as rt
>>> from conv_compiler import vgpu
>>> config = rt.Config(device=vgpu.device("gfx942"))

The library behind it can also be named to any IREE tool:
`iree-run-module --hip_dylib_path=<folder of library_path()> --device=hip://2`.
docs/vgpu.md says what a run on it proves and what it does not.
"""

from conv_compiler.vgpu.arguments import Unwritten
from conv_compiler.vgpu.budget import instruction_budget
from conv_compiler.vgpu.counters import KernelCounters, counters, counting, memory_totals
from conv_compiler.vgpu.device import CHIPS, device, device_uri
from conv_compiler.vgpu.findings import Finding, findings
from conv_compiler.vgpu.kernels import Device, Kernel, Module
from conv_compiler.vgpu.library import VirtualDeviceError, library_path

__all__ = [
    "CHIPS",
    "Device",
    "Finding",
    "Kernel",
    "KernelCounters",
    "Module",
    "Unwritten",
    "VirtualDeviceError",
    "counters",
    "counting",
    "device",
    "device_uri",
    "findings",
    "instruction_budget",
    "library_path",
    "memory_totals",
]
