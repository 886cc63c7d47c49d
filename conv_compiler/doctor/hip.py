# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What HIP's library says of a card, asked by the few calls that every version has."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

LIBRARIES = (
    "libamdhip64.so",
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "/opt/rocm/lib/libamdhip64.so",
)
VERSIONS = {"driver": "hipDriverGetVersion", "runtime": "hipRuntimeGetVersion"}
# Values of hipDeviceAttribute_t in the public HIP 6 headers.
ATTRIBUTES = {"lds_bytes": 74, "subgroup_size": 87, "most_threads": 56}
# No version's hipDeviceProp_t is longer; its layout differs, so that only the chip's name is looked
# for in it.
_PROPERTIES_BYTES = 16384
_PROPERTIES = ("hipGetDevicePropertiesR0600", "hipGetDeviceProperties")
_CHIP = re.compile(rb"gfx[0-9a-f]{3,4}(?=[:\0])")


def hip_facts(number: int, libraries: tuple[str | Path, ...] = LIBRARIES) -> dict[str, Any] | None:
    """The library's versions, the card's name and chip; None where there is no library.

    A value that the library does not give is None. HIP writes a version 6.2.41133 as 60241133.
    """
    library = _loaded(libraries)
    if library is None:
        return None
    facts: dict[str, Any] = {}
    for name, function in VERSIONS.items():
        facts[name] = _number(library, function)
    capacity = 256
    text = ctypes.create_string_buffer(capacity)
    named = _call(library, "hipDeviceGetName", text, capacity, number)
    facts["name"] = text.value.decode(errors="replace") if named else None
    for name, attribute in ATTRIBUTES.items():
        facts[name] = _number(library, "hipDeviceGetAttribute", attribute, number)
    facts["chip"] = None
    buffer = ctypes.create_string_buffer(_PROPERTIES_BYTES)
    for function in _PROPERTIES:
        if _call(library, function, buffer, number) and (found := _CHIP.search(buffer.raw)):
            facts["chip"] = found[0].decode()
            break
    return facts


def _loaded(libraries: tuple[str | Path, ...]) -> ctypes.CDLL | None:
    for path in libraries:
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    return None


def _number(library: ctypes.CDLL, function: str, *arguments: int) -> int | None:
    value = ctypes.c_int()
    return value.value if _call(library, function, ctypes.byref(value), *arguments) else None


def _call(library: ctypes.CDLL, function: str, *arguments: Any) -> bool:
    """Whether there is such a call, and it went well."""
    called = getattr(library, function, None)
    return called is not None and called(*arguments) == 0
