# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""AMD code objects in a file that holds them: as it is, in a bundle, in a program or in a `.vmfb`.

A code object is an ELF file for AMD's processors. Containers hold it in one piece, so it is found
by its header: HIP's offload bundles (`__CLANG_OFFLOAD_BUNDLE__`, alone or in a program's section
`.hip_fatbin`), Triton's cached `.hsaco` files and IREE's modules alike.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_ELF = b"\x7fELF\x02\x01"
_EM_AMDGPU = 224
_HEADER_BYTES = 64
# A bundle that clang has compressed (clang: OffloadBundler.h).
COMPRESSED = b"CCOB"


def code_objects(data: bytes) -> Iterator[bytes]:
    """The AMD code objects in the bytes of a file, in their order."""
    at = data.find(_ELF)
    while 0 <= at <= len(data) - _HEADER_BYTES:
        if struct.unpack_from("<H", data, at + 18)[0] == _EM_AMDGPU:
            (table,) = struct.unpack_from("<Q", data, at + 40)
            size, count = struct.unpack_from("<HH", data, at + 58)
            yield data[at : at + table + size * count]
        at = data.find(_ELF, at + 1)
