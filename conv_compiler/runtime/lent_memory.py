# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views of a device's memory that another library lends for the time of a call.

A library's allocator gives the same addresses again and again. To exchange an array by DLPack takes
20 us; a view that is kept is found in 1. It owns nothing: whose memory it is keeps it during calls.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, cast

from conv_compiler.errors import InvalidArray
from conv_compiler.runtime.arrays import Tensor
from conv_compiler.runtime.dlpack_capsule import ALIGNMENT, lent

# Views that are kept; the one that was not used for the longest time goes.
MOST = 256


class LentMemory:
    """Views of memory of an IREE device, which is DLPack's device `where`: type and number."""

    def __init__(self, device: Any, where: tuple[int, int]) -> None:
        self._device, self._where = device, where
        # A view goes before the structure that it came from: the last of a tuple goes first.
        self._views: OrderedDict[tuple[int, str], tuple[Any, Any]] = OrderedDict()

    def view(self, tensor: Tensor, address: int) -> Any:
        """The buffer view of a dense array of this name, static shape and type, at an address.

        Raises InvalidArray for an address that is not aligned.
        """
        key = address, tensor.name
        found = self._views.get(key)
        if found is None:
            if address % ALIGNMENT:
                raise InvalidArray(
                    f"{tensor.name} at {address:#x}: not aligned to {ALIGNMENT} bytes; copy it"
                )
            shape = cast("tuple[int, ...]", tensor.shape)
            capsule, structure = lent(address, self._where, shape, tensor.dtype)
            found = structure, self._device.from_dlpack_capsule(capsule)
            self._views[key] = found
            if len(self._views) > MOST:
                self._views.popitem(last=False)
        else:
            self._views.move_to_end(key)
        return found[1]
