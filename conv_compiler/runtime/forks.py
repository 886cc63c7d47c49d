# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices and forked processes: a child opens its own, for its parent's would wait for ever.

A device computes with threads, and a child made by fork has none of its parent's. So the child
forgets every device, driver and kernel loaded on one; they are made anew when next used. It never
destroys one of its parent's either: that waits for its threads to end.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from threading import RLock
from typing import Any
from weakref import WeakSet

import iree.runtime as iree
from iree.runtime import _binding, system_setup

from conv_compiler.errors import InvalidArray

_opened: WeakSet[Any] = WeakSet()
_names: set[str] = set()
_lost: set[str] = set()
_forget: list[Callable[[], None]] = []
_generation = 0


def generation() -> int:
    """How many forks with open devices lie between this process and the first one."""
    return _generation


def lost_in_fork(name: str) -> bool:
    """Whether a device of this name was open in a process that this one was forked from."""
    return name in _lost


def opened(config: Any, name: str) -> None:
    """Take note of the configuration of a device that was opened by this name."""
    _opened.add(config)
    _names.add(name)


def forget_in_child(function: Callable[[], None]) -> None:
    """Have a function called in every forked child, to drop what was loaded on devices."""
    _forget.append(function)


def _keep_for_ever(value: object) -> None:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


def _in_child() -> None:
    global _generation
    if not _opened and not system_setup._GLOBAL_DEVICES_BY_URI:
        return
    _generation += 1
    _lost.update(_names)
    _names.clear()
    _binding.disable_leak_checker()  # what is kept below is meant to be
    system_setup._LOCK = RLock()  # another thread of the parent may have held it
    gone = [config.device for config in _opened]
    for uri, device in system_setup._GLOBAL_DEVICES_BY_URI.items():
        gone += [device, _binding.get_cached_hal_driver(uri)]
    for value in (*_opened, *gone):
        _keep_for_ever(value)
    _opened.clear()
    system_setup._GLOBAL_DEVICES_BY_URI.clear()
    _binding.clear_hal_driver_cache()
    for function in _forget:
        function()
    _refuse_transfers(iree.DeviceArray, {id(value) for value in gone})


def _refuse_transfers(array: Any, gone: set[int]) -> None:
    """Have device arrays of devices that are gone refuse to copy their values to the host."""
    transfer = array._transfer_to_host

    def transfer_or_refuse(self: Any, implicit: bool) -> Any:
        if id(self._device) in gone and not self._is_mappable():
            raise InvalidArray(
                "device array: made before this process was forked, and its device is the "
                "parent's; make it in this process, or copy it to the host before"
            )
        return transfer(self, implicit)

    array._transfer_to_host = transfer_or_refuse


os.register_at_fork(after_in_child=_in_child)
