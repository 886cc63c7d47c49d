# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the native library is, and how Python calls the few functions it has besides HIP's."""

import ctypes
import functools
import json
from importlib import resources
from pathlib import Path
from typing import Any

from conv_compiler.errors import VirtualDeviceError as VirtualDeviceError

LIBRARY_NAME = "libamdhip64.so"  # the name IREE's hip driver looks for


def library_path() -> Path:
    """Return the native library's path; raise VirtualDeviceError when it has not been built.

    Its folder holds nothing else and can be given to IREE's `--hip_dylib_path`.
    """
    path = Path(str(resources.files("conv_compiler.vgpu").joinpath("lib", LIBRARY_NAME)))
    if not path.is_file():
        raise VirtualDeviceError(
            f"library {path}: does not exist; install the package, or in a checkout run cmake as "
            "conv_compiler/vgpu/native/CMakeLists.txt says"
        )
    return path


@functools.cache
def library() -> ctypes.CDLL:
    """Load the library; IREE's driver shares this copy because it is given the same path."""
    loaded = ctypes.CDLL(str(library_path()))
    for name in ("vgpu_counters", "vgpu_memory", "vgpu_devices"):
        function = getattr(loaded, name)
        function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        function.restype = ctypes.c_size_t
    loaded.vgpu_set_instruction_budget.argtypes = [ctypes.c_uint64]
    loaded.vgpu_set_instruction_budget.restype = ctypes.c_uint64
    loaded.vgpu_set_counting.argtypes = [ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32]
    loaded.vgpu_set_counting.restype = None
    loaded.vgpu_set_decoder.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    loaded.vgpu_set_decoder.restype = None
    loaded.vgpu_reset_counters.argtypes = []
    loaded.vgpu_reset_counters.restype = None
    return loaded


def read_json(function_name: str) -> Any:
    """Call a library function that writes JSON text as snprintf does, and parse what it wrote."""
    function = getattr(library(), function_name)
    capacity = 1 << 16
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        length = function(buffer, capacity)
        if length < capacity:
            return json.loads(buffer.value)
        capacity = 2 * length
