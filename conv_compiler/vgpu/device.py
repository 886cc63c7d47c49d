# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Virtual devices through IREE's own hip driver."""

import functools
import os
import sys
from threading import Lock
from typing import TYPE_CHECKING

from conv_compiler.errors import UnsupportedTarget
from conv_compiler.targets import VIRTUAL, canonical_name, executed_isa
from conv_compiler.vgpu.identity import decoder_identity
from conv_compiler.vgpu.library import VirtualDeviceError, library, library_path, read_json

if TYPE_CHECKING:
    import iree.runtime as rt

CHIPS = VIRTUAL

# Environment variable that tells the library which Python has the instruction decoder.
PYTHON_VARIABLE = "CONV_COMPILER_PYTHON"

_driver_lock = Lock()


def device_uri(chip: str, *, checks: bool = False) -> str:
    """Return the device's name for IREE's tools, as in `iree-run-module --device=hip://2`."""
    chip = canonical_name(chip)
    try:
        executed_isa(chip)
    except UnsupportedTarget as error:
        raise VirtualDeviceError(str(error)) from None
    for ordinal, row in enumerate(read_json("vgpu_devices")):
        if (row["chip"], row["checked"]) == (chip, checks):
            return f"hip://{ordinal}"
    raise VirtualDeviceError(
        f"chip {chip}: the native library was built without it; build it again"
    )


def device(chip: str, *, checks: bool = False) -> "rt.HalDevice":
    """Create a new device that runs code objects of `chip`, with every check on when `checks`.

    A device on which a launch failed stays failed, as with a real one: call again for a fresh
    one. Raises VirtualDeviceError when this process's hip driver already uses another library, and
    where IREE's runtime is not installed.
    """
    try:
        import iree.runtime as rt
    except ModuleNotFoundError as error:
        raise VirtualDeviceError(
            f"iree-base-runtime: not installed ({error}); pip install iree-base-runtime, or launch "
            "kernels by vgpu.Device, which needs no IREE"
        ) from None

    uri = device_uri(chip, checks=checks)
    with _driver_lock:
        ready_decoder()
        _require_our_driver()
        return rt.get_device(uri, cache=False)


@functools.cache
def ready_decoder() -> None:
    """Tell the library which Python decodes, and spare it from asking for the decoder's name."""
    os.environ.setdefault(PYTHON_VARIABLE, sys.executable)
    library().vgpu_set_decoder(sys.executable.encode(), decoder_identity().encode())


def _require_our_driver() -> None:
    """Make the process's one hip driver ours, or find that it is somebody else's."""
    import iree.runtime as rt

    # Read by the driver when it is created, which happens once a process. Without caching each
    # transient buffer is an allocation of its own, so its bounds and unwritten bytes are known.
    rt.flags.parse_flags(f"--hip_dylib_path=file:{library_path()}", "--hip_async_caching=false")
    names = [row["name"] for row in rt.get_driver("hip").query_available_devices()]
    if not all(name.startswith("virtual ") for name in names):
        raise VirtualDeviceError(
            f"hip driver with {', '.join(names)}: a process has one driver and it uses another "
            "library; make the virtual device first, or in a process of its own"
        )
