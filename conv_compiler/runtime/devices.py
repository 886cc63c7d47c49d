# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a kernel can be run: the device names users write, and how each is opened."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import iree.runtime as iree

from conv_compiler.errors import DeviceUnavailable, did_you_mean
from conv_compiler.runtime import forks
from conv_compiler.runtime.cuda_context import enter_context
from conv_compiler.runtime.dlpack import Memory
from conv_compiler.runtime.kept_memory import host_device
from conv_compiler.runtime.vm_instance import configuration

if TYPE_CHECKING:
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class Device:
    """One device name users write (`hip`, or `hip://1` where `numbered`).

    `built_for` is the device target a `.vmfb` names; the first row of a device target that can be
    opened is its default. `open` makes the device from the name as written and the chip a kernel
    was built for. A time taken on a `virtual` device says nothing about a chip. Where a device
    `has_workers`, threads of this process compute while the calling one waits. One that
    `survives_fork` can be opened again in a child of a process that had opened it. `prepare` is
    given the bytes of a module and its chip before the device loads it. Arrays of other libraries
    are taken and given in `memory`; a `virtual` device copies them. `enter` readies the calling
    thread for a device by its number.
    """

    name: str
    built_for: str
    open: Callable[[str, str], Any]
    numbered: bool = True
    virtual: bool = False
    has_workers: bool = False
    survives_fork: bool = False
    memory: Memory = Memory.HOST
    enter: Callable[[int], None] = lambda _: None
    prepare: Callable[[bytes, str], None] = lambda *_: None


def _open_cpu(name: str, chip: str) -> Any:
    return host_device("local-task")


def _open_cuda(name: str, chip: str) -> Any:
    return iree.get_device(name)


def _open_hip(name: str, chip: str) -> Any:
    device = iree.get_device(name)
    found = [row["name"] for row in iree.get_driver("hip").query_available_devices()]
    if any(text.startswith("virtual ") for text in found):
        raise RuntimeError("this process's hip driver is the virtual one, name it vgpu")
    return device


def _open_virtual(name: str, chip: str) -> Any:
    from conv_compiler import vgpu
    from conv_compiler.targets import executed_isa

    executed_isa(chip)  # refuses a chip that is compiled for only, and says why
    return vgpu.device(chip, checks=name == "vgpu-checked")


def _decode(module: bytes, chip: str) -> None:
    from conv_compiler.binary.code_objects import code_objects
    from conv_compiler.vgpu.predecode import predecode

    predecode(tuple(code_objects(module)), chip)


DEVICES = MappingProxyType(
    {
        row.name: row
        for row in (
            Device(
                name="cpu",
                built_for="local",
                open=_open_cpu,
                numbered=False,
                has_workers=True,
                survives_fork=True,
            ),
            Device(name="hip", built_for="hip", open=_open_hip, memory=Memory.ROCM),
            *(
                Device(
                    name=name,
                    built_for="hip",
                    open=_open_virtual,
                    numbered=False,
                    virtual=True,
                    survives_fork=True,
                    prepare=_decode,
                )
                for name in ("vgpu", "vgpu-checked")
            ),
            Device(
                name="cuda",
                built_for="cuda",
                open=_open_cuda,
                memory=Memory.CUDA,
                enter=enter_context,
            ),
        )
    }
)


def find_device(name: str) -> Device:
    """The row of a device name, or DeviceUnavailable naming those there are."""
    base, slashes, number = name.partition("://")
    row = DEVICES.get(base)
    if row is None:
        near = did_you_mean(base, DEVICES)
        raise DeviceUnavailable(
            f"device {name}: not in the table; {near}known: {', '.join(DEVICES)}"
        )
    if slashes and not (row.numbered and number.isdecimal()):
        form = f"{base} or {base}://0" if row.numbered else base
        raise DeviceUnavailable(f"device {name}: no such number; write {form}")
    return row


def own_device(target: Target) -> str:
    """The name of a target's own device, the one that is not virtual."""
    from conv_compiler.targets import BACKENDS

    flags = BACKENDS[target.backend].flags
    fitting = (
        row.name
        for row in DEVICES.values()
        if f"--iree-hal-target-device={row.built_for}" in flags and not row.virtual
    )
    return next(fitting)


def device_text(name: str) -> str:
    """What a device is, for a person: its card's name, or the processor's and the cores."""
    from conv_compiler.targets.host import host_cores, processor_name

    row = find_device(name)
    if row.built_for == "local":
        return f"{processor_name()}, {host_cores()} cores"
    cards = iree.get_driver(row.built_for).query_available_devices()
    return str(cards[number_of(name)]["name"])


def number_of(name: str) -> int:
    """The number in a device's name, 0 where it has none."""
    return int(name.partition("://")[2] or 0)


def reason(error: Exception) -> str:
    """The part of an IREE error a person can use, on one line."""
    lines = str(error).splitlines() or [type(error).__name__]
    found = re.search(r"[A-Z_]+; (.*)", lines[0])
    text = found[1] if found else lines[0]
    return text.split(" #hal.", 1)[0].rstrip("; :")[:160]


@lru_cache
def open_device(name: str, chip: str) -> Any:
    """The IREE runtime's configuration of a device, made once; DeviceUnavailable if it cannot."""
    row = find_device(name)
    if not row.survives_fork and forks.lost_in_fork(row.name):
        raise DeviceUnavailable(
            f"device {name}: was open in the process that this one was forked from, and a driver "
            "serves but one; start processes by spawn, or before the first kernel is loaded"
        )
    try:
        config = configuration(row.open(name, chip))
    except (RuntimeError, ValueError) as error:
        raise DeviceUnavailable(
            f"device {name}: cannot be opened ({reason(error)}); "
            "see that its driver is installed, or use cpu"
        ) from error
    forks.opened(config, row.name)
    return config


def targets_of(name: str) -> str:
    """The targets whose code a device runs, as words; CPUs by name are left out."""
    from conv_compiler import vgpu
    from conv_compiler.targets import BACKENDS, TARGETS

    device = find_device(name)
    flag = f"--iree-hal-target-device={device.built_for}"
    found = [
        row.name
        for row in TARGETS.values()
        if flag in BACKENDS[row.backend].flags
        and row.processor is None
        and (row.name in vgpu.CHIPS or not device.virtual)
    ]
    return " or ".join(filter(None, (", ".join(found[:-1]), found[-1])))


forks.forget_in_child(open_device.cache_clear)
