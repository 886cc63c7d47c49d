# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loaded kernel: what it takes and gives, how it is called, and how it is timed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import iree.runtime as iree
import numpy as np

from conv_compiler.errors import (
    InvalidArray,
    InvalidArtifact,
    LaunchFailed,
)
from conv_compiler.problem.directions import DIRECTIONS, RESULT_MEMORY, STATED_DIRECTION
from conv_compiler.runtime import forks
from conv_compiler.runtime.arrays import Tensor, check_device, keeping, place
from conv_compiler.runtime.arrays import to_numpy as to_numpy
from conv_compiler.runtime.batch_scheduling import batch_wait, may_wait_as_batch
from conv_compiler.runtime.devices import (
    find_device,
    number_of,
    open_device,
    reason,
    targets_of,
)
from conv_compiler.runtime.dlpack import Memory, exported, fresh_like, imported, is_foreign
from conv_compiler.runtime.times import Times

# What IREE's bindings raise for a module they do not take, and what a module without a function of
# ours comes out as.
_REFUSALS = (RuntimeError, ValueError, LookupError, AttributeError, TypeError)
# What to forget when a launch failed: a device on which one did stays failed, and the next load
# opens a fresh one.
AFTER_FAILURE: list[Callable[[], None]] = []


def _drop_devices() -> None:
    """Forget all devices, and what others keep of them."""
    try:
        open_device.cache_clear()
    finally:  # a signal's handler may raise after that call
        for forget in AFTER_FAILURE:
            forget()


def _launch_reason(error: Exception) -> str:
    """What stopped a kernel, whole, on one line: a driver's text, or a virtual GPU's finding."""
    text = " ".join(str(error).split(" [ ")[0].split())
    return text.partition("driver error ")[2] or text


class Kernel:
    """A loaded `.vmfb` on one device: `kernel(input, d_output)` returns d_weight.

    Operands and result are those of the problem's direction (`problem/directions.py`). A kernel
    whose elementwise op takes a tensor d has it as third operand.

    numpy arrays give a numpy array; where an operand is a device array (see `put`), so is the
    result. Arrays of other libraries (PyTorch, JAX, CuPy) are read where they lie, and give an
    array of the first one's library.

    Calls return when the device is done; on the CPU the calling thread waits as a batch thread
    (`batch_scheduling.py`). In a child made by fork the kernel is loaded again at its next use.
    """

    __slots__ = (
        "_batches",
        "_config",
        "_enter",
        "_generation",
        "_invoke",
        "_made_of",
        "_waiting",
        "device",
        "operands",
        "path",
        "result",
        "takes_result",
    )

    def __init__(self, path: Path, data: bytes, device: str, built_for: str) -> None:
        self.path, self.device = path, device
        self._made_of, self._generation = (path, data, device, built_for), forks.generation()
        self._config = config = open_device(device, built_for)
        row = find_device(device)
        self._enter = partial(row.enter, number_of(device))
        self._enter()
        row.prepare(data, built_for)
        try:
            module = iree.VmModule.copy_buffer(config.vm_instance, data)
            context = iree.VmContext(
                instance=config.vm_instance, modules=[*config.default_vm_modules, module]
            )
            function = module.lookup_function("main")
            declaration = function.reflection["iree.abi.declaration"]
            arguments, results = declaration.split("->")
            operands, (result,) = (
                re.findall(r"tensor<([^>]*)>", part) for part in (arguments, results)
            )
            self.takes_result = RESULT_MEMORY in arguments
            if self.takes_result:
                operands = operands[:-1]
            # A module of plain iree-compile states none, and is taken for a weight gradient.
            stated = function.reflection.get(STATED_DIRECTION)
            names, made = DIRECTIONS[stated or "bwd_weight"]
            more = (f"operand {i}" for i in range(3, len(operands)))
            self.operands = tuple(map(Tensor.parse, (*names, "d", *more), operands))
            self.result = Tensor.parse(made, result)
            # Of ours nothing but a batch is dynamic.
            self._batches = [
                (number, tensor.shape.index(None))
                for number, tensor in enumerate(self.operands)
                if stated and None in tensor.shape
            ]
        except _REFUSALS as error:
            raise InvalidArtifact(
                f"artifact {path.name}: built for {built_for}, and device {device} refuses it "
                f"({reason(error)}); compile it for {targets_of(device)}"
            ) from error
        self._invoke = iree.FunctionInvoker(context, config.device, function)
        self._waiting = batch_wait if row.has_workers and may_wait_as_batch() else nullcontext

    @property
    def virtual(self) -> bool:
        """Whether the device executes the chip's code on the host."""
        return find_device(self.device).virtual

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """Run once, into `out` where that is given.

        `out` is for kernels with a result operand (`ConvProblem.result_operand`): an array of a
        library with DLPack, dense and aligned to 64 bytes, in the memory of a device that is not
        virtual. Raises InvalidArray when a shape, type or device is not the kernel's.
        """
        self._ready()
        if len(operands) != len(self.operands):
            names = ", ".join(tensor.name for tensor in self.operands)
            raise InvalidArray(
                f"operands {len(operands)}: the kernel takes {len(self.operands)}; give {names}"
            )
        like = next((array for array in operands if is_foreign(array)), None)
        if like is not None:
            return self._exchanged(like, operands, out)
        if out is not None:
            raise InvalidArray("out: for operands of a library with DLPack; leave it out")
        on_device = self._check(operands)
        images = self._images(operands)
        if self.result.is_empty(images):  # nothing to compute, and no device can hold it
            nothing = self.result.empty(images)
            return self.put(nothing) if on_device else nothing
        if self.takes_result:
            operands = (*operands, self.put(self.result.empty(images)))
        result = self._run(operands)
        return keeping(result, self._config) if on_device else to_numpy(result)

    def _run(self, operands: tuple[Any, ...]) -> Any:
        """Invoke, and wait for the device."""
        try:
            with self._waiting():
                return self._invoke(*operands)
        except RuntimeError as error:
            _drop_devices()
            raise LaunchFailed(f"kernel {self.path.name}: {_launch_reason(error)}") from error
        except BaseException:  # Ctrl-C, say: it has stopped the kernel
            _drop_devices()
            raise

    def _check(self, operands: Sequence[Any]) -> bool:
        """Whether one is a device array; InvalidArray when a shape, type or device is wrong."""
        on_device = False
        for tensor, array in zip(self.operands, operands, strict=True):
            if isinstance(array, iree.DeviceArray):
                on_device = True
                check_device(tensor.name, array, self._config.device, self.device)
            elif not isinstance(array, np.ndarray):
                raise InvalidArray(
                    f"{tensor.name} {type(array).__name__}: not an array of numpy, of a device or "
                    "of a library with DLPack; convert it with numpy.asarray"
                )
            tensor.check(array)
        return on_device

    def _exchanged(self, like: Any, operands: tuple[Any, ...], out: Any) -> Any:
        """Run once with arrays of another library, and give the result as one like `like`."""
        row, number = find_device(self.device), number_of(self.device)
        host = open_device("cpu", "host").device if row.virtual else self._config.device
        taken = []
        for tensor, array in zip(self.operands, operands, strict=True):
            if is_foreign(array):
                array = imported(tensor.name, array, host, row.memory, number)
                if isinstance(array, iree.DeviceArray):
                    array = to_numpy(array) if row.virtual else keeping(array, self._config)
            taken.append(array)
        if out is None and (row.memory is Memory.HOST or not self.takes_result):
            result = self(*taken)
            if isinstance(result, np.ndarray):
                result = iree.asdevicearray(host, result)
            return exported(result, like, row.memory, number)
        if not self.takes_result or row.virtual:
            raise InvalidArray(
                f"out: device {self.device} has memory of its own; leave it out"
                if row.virtual
                else "out: the kernel takes no memory for its result; leave it out, or compile "
                "with result_operand"
            )
        made = fresh_like(like, self.result) if out is None else out
        memory = imported("out", made, host, row.memory, number, in_place=True)
        replace(self.result, name="out").check(memory)
        self._check(taken)
        if not self.result.is_empty(None):
            self._run((*taken, keeping(memory, self._config)))
        return made

    def _images(self, operands: tuple[Any, ...]) -> int | None:
        """The images of operands with a dynamic batch, None without; InvalidArray where they
        differ."""
        images = None
        for number, axis in self._batches:
            name, shape = self.operands[number].name, tuple(operands[number].shape)
            images = shape[axis] if images is None else images
            if images != shape[axis]:
                raise InvalidArray(
                    f"{name} {shape}: a batch of {shape[axis]}; give all operands {images}"
                )
        return images

    def _ready(self) -> None:
        """Ready the calling thread, and load the kernel again where this process was forked from
        the one that loaded it."""
        self._enter()
        if self._generation != forks.generation():
            Kernel.__init__(self, *self._made_of)

    def put(self, array: Any) -> Any:
        """A device array holding a copy of a numpy array, or of an array of another device."""
        self._ready()
        return place(array, self._config, self.device)

    def median_seconds(self, *operands: Any, budget: float = 0.2, least: int = 3) -> float:
        """Median time in seconds of one call, as `times` takes it."""
        return self.times(*operands, budget=budget, least=least).median

    def times(self, *operands: Any, budget: float = 0.2, least: int = 3) -> Times:
        """Times of calls with their operands on the device.

        Calls at least `least` times after a warm-up, and on until `budget` seconds are spent.
        """
        placed = [
            array if isinstance(array, iree.DeviceArray) else self.put(array) for array in operands
        ]
        self(*placed)
        times: list[float] = []
        while len(times) < least or sum(times) < budget:
            start = time.perf_counter()
            self(*placed)
            times.append(time.perf_counter() - start)
        return Times.of(times)
