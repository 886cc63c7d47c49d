# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How arrays of callers become a kernel's operands, and its results become arrays of their kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import iree.runtime as iree
import numpy as np

from conv_compiler.errors import InvalidArray
from conv_compiler.runtime.arrays import Tensor, check_device, keeping, place, to_numpy
from conv_compiler.runtime.devices import Device, open_device
from conv_compiler.runtime.dlpack import check_memory, exported, fresh_like, imported, is_foreign
from conv_compiler.runtime.host_memory import as_array, placed, written_in_place


class Exchange:
    """A device that is open, and how a kernel on it takes and gives arrays.

    `device` is its name; `takes_result` says whether the kernel takes memory for its result.
    """

    __slots__ = (
        "_alignment",
        "_config",
        "_number",
        "_on_host",
        "_row",
        "device",
        "takes_result",
    )

    _alignment: int
    _config: Any
    _number: int
    _on_host: bool
    _row: Device
    device: str
    takes_result: bool

    @property
    def virtual(self) -> bool:
        """Whether the device executes the chip's code on the host."""
        return self._row.virtual

    def _taken(self, tensor: Tensor, array: Any) -> Any:
        """An operand of any library as one of numpy or of the device."""
        if not is_foreign(array):
            return array
        array = imported(tensor.name, array, self._config.device, self._row.memory, self._number)
        return array if isinstance(array, np.ndarray) else keeping(array, self._config)

    def _fresh(self, tensor: Tensor, like: Any, images: int | None, on_device: bool) -> Any:
        """Memory for a result of the operands' kind; None where only a device array will do."""
        if like is not None and not self.virtual:
            return fresh_like(like, tensor)
        return tensor.empty(images) if self._on_host and not on_device else None

    def _memory(self, tensor: Tensor, out: Any) -> Any:
        """The array to write into, as an operand; InvalidArray for one that cannot be."""
        own, config = replace(tensor, name="out"), self._config
        if isinstance(out, iree.DeviceArray):
            check_device("out", out, config.device, self.device)
        elif self.virtual:
            raise InvalidArray(
                f"out: device {self.device} has memory of its own; give an array of put"
            )
        check_memory(out, self.takes_result, self._on_host)
        memory = out
        if is_foreign(out):
            memory = imported(
                "out", out, config.device, self._row.memory, self._number, in_place=True
            )
        own.check(memory)
        if isinstance(memory, np.ndarray):
            return written_in_place(own, memory, self._alignment)
        return memory

    def _given(self, tensor: Tensor, view: Any, like: Any, on_device: bool) -> Any:
        """A result, a buffer view, as an array of the operands' kind."""
        if self._on_host and like is None and not on_device:
            return as_array(view, self._config, tensor.shape, tensor.dtype)
        found = self._device_array(tensor, view)
        if like is not None:
            if self.virtual:
                host = open_device("cpu", "host").device
                found = iree.asdevicearray(host, to_numpy(found))
            return exported(found, like, self._row.memory, self._number)
        return found if on_device else to_numpy(found)

    def _device_array(self, tensor: Tensor, view: Any) -> Any:
        """A buffer view as a device array."""
        made = iree.DeviceArray(
            self._config.device, view, implicit_host_transfer=True, override_dtype=tensor.dtype
        )
        return keeping(made, self._config)

    def _view(self, array: Any) -> Any:
        """The buffer view of an operand."""
        if self._on_host and isinstance(array, np.ndarray):
            return placed(array, self._config.device, self._alignment)
        return place(array, self._config, self.device)._buffer_view
