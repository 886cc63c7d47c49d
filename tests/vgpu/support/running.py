"""Running a compiled module on a device."""

from collections.abc import Callable

import iree.runtime as rt
import numpy as np

from conv_compiler.binary.code_objects import code_objects
from conv_compiler.runtime.vm_instance import configuration
from conv_compiler.targets import TARGETS
from conv_compiler.vgpu.predecode import predecode

MACH = 48  # the low byte of an ELF's e_flags
CHIPS = {row.elf_mach: row.name for row in TARGETS.values() if row.elf_mach}
CompileFor = Callable[..., bytes]  # (mlir, chip, *flags) -> vmfb


def load(device: rt.HalDevice, vmfb: bytes) -> Callable[..., np.ndarray]:
    """Load a module and return its `main`, which takes and gives numpy arrays.

    It is decoded here, as kernels of ours are: the driver would start a Python for each module.
    """
    for elf in code_objects(vmfb):
        if chip := CHIPS.get(elf[MACH]):
            predecode((elf,), chip)
    context = rt.SystemContext(config=configuration(device))
    context.add_vm_module(rt.VmModule.copy_buffer(context.instance, vmfb))
    main = context.modules.module.main
    return lambda *inputs: np.array(main(*inputs).to_host())
