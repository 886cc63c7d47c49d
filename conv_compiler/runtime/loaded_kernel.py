# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loaded kernel: what it takes and gives, how it is called, and how it is timed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import iree.runtime as iree
import numpy as np

from conv_compiler.errors import InvalidArray, InvalidArtifact, LaunchFailed
from conv_compiler.runtime import forks
from conv_compiler.runtime.arrays import Tensor, as_codes, check_operands, place
from conv_compiler.runtime.arrays import to_numpy as to_numpy
from conv_compiler.runtime.batch_scheduling import LONG_SECONDS, batch_wait, may_wait_as_batch
from conv_compiler.runtime.devices import find_device, number_of, open_device, reason, targets_of
from conv_compiler.runtime.dlpack import (
    Memory,
    is_foreign,
)
from conv_compiler.runtime.exchange import Exchange
from conv_compiler.runtime.failed_launch import drop_devices, launch_reason
from conv_compiler.runtime.host_memory import in_larger
from conv_compiler.runtime.invocation import invocation
from conv_compiler.runtime.lent_memory import LentMemory
from conv_compiler.runtime.signature import Signature, one_for_each, size_of_call, sizes_of
from conv_compiler.runtime.times import Times

# What IREE's bindings raise for a module they do not take, and what a module without a function of
# ours comes out as.
REFUSALS = (RuntimeError, ValueError, LookupError, AttributeError, TypeError)

K = TypeVar("K", bound="Kernel")


class Kernel(Exchange):
    """A loaded `.vmfb` on one device: `kernel(input, d_output)` returns d_weight.

    Operands and result are those of the problem's direction (`problem/directions.py`). A kernel
    whose operands have block scales takes these behind them, as uint8 codes or, of numpy, as
    `ml_dtypes.float8_e8m0fnu`. One whose elementwise op takes a tensor d has it as last operand.
    That of a layer takes the operands of `Layer.operand_names`, and returns a tuple of its results.
    That of several sizes takes the operands of any of them, and refuses others.

    numpy arrays give a numpy array; where an operand is a device array (see `put`), so is the
    result. Arrays of other libraries (PyTorch, JAX, CuPy) are read where they lie, and give an
    array of the first one's library. On the CPU numpy arrays too are read where they lie, and no
    result is copied (`host_memory.py`).

    Calls return when the device is done. On the CPU the calling thread waits for long kernels as a
    batch thread (`batch_scheduling.py`). In a child made by fork the kernel is loaded again at its
    next use.
    """

    __slots__ = (
        "_enter",
        "_generation",
        "_invoke",
        "_lent",
        "_loaded",
        "_made_of",
        "_only",
        "_seconds",
        "_sizes",
        "_takes_number",
        "_takes_scales",
        "_waiting",
        "operands",
        "path",
        "results",
    )

    def __init__(
        self, path: Path, data: bytes, device: str, built_for: str, name: str = "main"
    ) -> None:
        self.path, self.device = path, device
        self._made_of, self._generation = (path, data, device, built_for, name), forks.generation()
        self._config = config = open_device(device, built_for)
        self._row = row = find_device(device)
        self._on_host = row.memory is Memory.HOST and not row.virtual
        self._number = number_of(device)
        self._enter = partial(row.enter, self._number)
        self._enter()
        row.prepare(data, built_for)
        try:
            module = iree.VmModule.copy_buffer(config.vm_instance, data)
            context = iree.VmContext(
                instance=config.vm_instance, modules=[*config.default_vm_modules, module]
            )
            self._loaded = module, context
            self._use(name)
        except REFUSALS as error:
            raise InvalidArtifact(
                f"artifact {path.name}: built for {built_for}, and device {device} refuses it "
                f"({reason(error)}); compile it for {targets_of(device)}"
            ) from error
        self._lent = LentMemory(config.device, (int(row.memory), self._number))
        self._waiting = batch_wait if row.has_workers and may_wait_as_batch() else nullcontext

    def _use(self, name: str) -> None:
        """Be the kernel of a function of the loaded module; raises what the bindings raise."""
        module, context = self._loaded
        function = module.lookup_function(name)
        stated, self._sizes = Signature.of(function), sizes_of(module, function)
        self._only = None if self._sizes[1:] else self._sizes[0]
        self.operands, self.results = stated.operands, stated.results
        self.takes_result, self._alignment = stated.takes_result, stated.alignment
        self._takes_number = any(not tensor.shape for tensor in self.operands)
        self._takes_scales = any(tensor.is_scales for tensor in self.operands)
        self._invoke, self._seconds = invocation(context, function, len(self.results)), 0.0

    def _sibling(self, name: str) -> Kernel:
        """The kernel of another function of the same loaded module."""
        made = self._copy(Kernel)
        made._made_of = (*self._made_of[:-1], name)
        made._use(name)
        return made

    def _copy(self, kind: type[K]) -> K:
        """The same loaded kernel as one of a class, whose own slots are empty."""
        made = object.__new__(kind)
        for slot in (*Exchange.__slots__, *Kernel.__slots__):
            setattr(made, slot, getattr(self, slot))
        return made

    @property
    def result(self) -> Tensor:
        """The first result, which is the only one but of a layer."""
        return self.results[0]

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """Run once, into `out` where that is given; of a layer a tuple of arrays, as its results.

        `out` is for kernels with a result operand (`ConvProblem.result_operand`). It is an array of
        `put`, or a dense one of a library with DLPack, on the CPU also of numpy. On a card it is
        aligned to 64 bytes; a virtual device takes those of `put` alone. For a result that is a
        slice it is that slice, on the CPU, or the larger array; left out, the result is in a larger
        array of zeros. Raises InvalidArray when a shape, type or device is not the kernel's.
        """
        self._ready()
        if len(operands) != len(self.operands):
            raise self._miscounted(operands)
        return self._call(operands, out, operands)

    def _miscounted(self, operands: Sequence[Any]) -> InvalidArray:
        names = ", ".join(tensor.name for tensor in self.operands)
        return InvalidArray(
            f"operands {len(operands)}: the kernel takes {len(self.operands)}; give {names}"
        )

    def _call(self, operands: Sequence[Any], out: Any, like_these: Sequence[Any]) -> Any:
        """The same of as many operands. Results are of the kind of `like_these`: what the caller
        gave, where operands are among them that he did not."""
        called = operands
        if self._takes_number:
            operands = tuple(np.asarray(x) if isinstance(x, np.generic) else x for x in operands)
        if self._takes_scales:
            operands = tuple(map(as_codes, self.operands, operands))
        foreign = [array for array in like_these if is_foreign(array)]
        like = foreign[0] if foreign else None
        taken = operands if like is None else [*map(self._taken, self.operands, operands)]
        size = self._only or size_of_call(self._sizes, taken)
        on_device = check_operands(size.operands, taken, self._config.device, self.device)
        if like_these is not called:
            on_device = any(isinstance(array, iree.DeviceArray) for array in like_these)
        if size.has_slices:
            alignment = self._alignment if self._on_host else None
            taken = [*map(partial(in_larger, alignment), size.operands, taken)]
        images, results = size.images(taken) if size.batches else None, size.results
        outs = one_for_each(self.results, out)
        memory = []
        if self.takes_result or out is not None:
            for number, tensor in enumerate(results):
                if outs[number] is None:
                    outs[number] = self._fresh(tensor, like, images, on_device)
                one = outs[number]
                memory.append(
                    self.put(tensor.empty(images))
                    if one is None
                    else self._memory(tensor.of(images), one)
                )
        if all(tensor.is_empty(images) for tensor in results):  # nothing to compute
            views = [self.put(tensor.empty(images))._buffer_view for tensor in results]
        else:
            views = self._run([*taken, *memory])
        given = tuple(
            self._given(tensor, view, like, on_device) if one is None else one
            for tensor, view, one in zip(results, views, outs, strict=True)
        )
        return given if len(given) > 1 else given[0]

    def keep(self, weight: Any) -> Kernel:
        """The kernel of the other operands, with a weight that is rearranged now and not in calls.

        Of problems with `kept_weight`; InvalidArray for others.
        """
        raise InvalidArray(
            f"kernel {self.path.name}: takes no weight to keep; compile it with kept_weight, and "
            "keep by the kernel that takes the weight"
        )

    def run_at(self, *addresses: int) -> None:
        """Run once on dense arrays of this device that begin at these addresses: the operands, then
        the results, of the kernel's shapes and types. No work on them is under way.

        For kernels on a card, with result operands, of one size and without slices. InvalidArray
        for others, another number of addresses, and arrays that are not aligned to 64 bytes.
        """
        self._ready()
        size, tensors = self._only, [*self.operands, *self.results]
        is_fixed = size is not None and not size.batches and not size.has_slices
        if self._on_host or self.virtual or not self.takes_result or not is_fixed:
            raise InvalidArray(
                f"kernel {self.path.name}: takes no addresses; call it with arrays, or compile it "
                "for a card with result_operand and static sizes"
            )
        if len(addresses) != len(tensors):
            names = ", ".join(tensor.name for tensor in tensors)
            raise InvalidArray(f"addresses {len(addresses)}: one an array is wanted; give {names}")
        self._invoked([*map(self._lent.view, tensors, addresses)])

    def _run(self, operands: Sequence[Any]) -> list[Any]:
        """Invoke with operands that were checked, wait, and give the results' buffer views."""
        return self._invoked([self._view(array) for array in operands])

    def _invoked(self, views: Sequence[Any]) -> list[Any]:
        """The same with buffer views of the operands."""
        started = time.perf_counter()
        try:
            try:
                if self._seconds < LONG_SECONDS:
                    made = self._invoke(*views)
                else:
                    with self._waiting():
                        made = self._invoke(*views)
            except RuntimeError as error:
                # A signal that stopped the kernel is raised in this call, and ends below.
                why = launch_reason(error)
                raise LaunchFailed(f"kernel {self.path.name}: {why}") from error
        except BaseException:
            drop_devices()
            raise
        self._seconds = time.perf_counter() - started
        return made

    def _ready(self) -> None:
        """Ready the calling thread, and load the kernel again where this process was forked from
        the one that loaded it."""
        self._enter()
        if self._generation != forks.generation():
            type(self).__init__(self, *self._made_of)

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
        Memory for results is the same in all.
        """
        placed = [
            array if isinstance(array, iree.DeviceArray) else self.put(array) for array in operands
        ]
        fixed = self.takes_result and not any(None in one.shape for one in self.results)
        outs = [self.put(one.empty(None)) for one in self.results] if fixed else []
        out = outs[0] if len(outs) == 1 else outs or None
        return Times.of_calls(lambda: self(*placed, out=out), budget, least)
