"""Running a compiled module on a device."""

from collections.abc import Callable

import iree.runtime as rt
import numpy as np

CompileFor = Callable[..., bytes]  # (mlir, chip, *flags) -> vmfb


def load(device: rt.HalDevice, vmfb: bytes) -> Callable[..., np.ndarray]:
    """Load a module and return its `main`, which takes and gives numpy arrays."""
    context = rt.SystemContext(config=rt.Config(device=device))
    context.add_vm_module(rt.VmModule.copy_buffer(context.instance, vmfb))
    main = context.modules.module.main
    return lambda *inputs: np.array(main(*inputs).to_host())
