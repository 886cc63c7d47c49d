# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The native library's debugging calls (`native/debug.cpp`), with their types."""

from __future__ import annotations

import ctypes

from conv_compiler.vgpu.library import library

# No step, and every workgroup or wave.
NEVER = 2**64 - 1
ANY = 2**32 - 1


class Event(ctypes.Structure):
    """Twin of `Debug::Event` in `native/debug.h`."""

    _fields_ = (
        ("step", ctypes.c_uint64),
        ("executed", ctypes.c_uint64),
        ("last_break", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("group", ctypes.c_uint32),
        ("wave", ctypes.c_uint32),
        ("reason", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
        ("text", ctypes.c_char_p),
    )


class Point(ctypes.Structure):
    _fields_ = (
        ("address", ctypes.c_uint64),
        ("group", ctypes.c_uint32),
        ("wave", ctypes.c_uint32),
    )


STOPPED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Event))


def native() -> ctypes.CDLL:
    """The library with the types of its debugging calls."""
    loaded = library()
    pointer, u32, u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    for name, result, *arguments in (
        ("new", pointer, STOPPED),
        ("delete", None, pointer),
        ("attach", None, pointer),
        ("plan", None, pointer, u64, u32, u32, u64, u64, pointer, ctypes.c_size_t),
        ("last_break", u64, pointer),
        ("code", ctypes.c_char_p, pointer, u32, pointer),
        ("wave", ctypes.c_int, pointer, u32, pointer),
        ("registers", pointer, pointer, u32, ctypes.c_int),
        ("lds", pointer, pointer, pointer),
        ("memory", pointer, pointer, u64, u64),
    ):
        function = getattr(loaded, f"vgpu_debug_{name}")
        function.argtypes, function.restype = arguments, result
    return loaded
