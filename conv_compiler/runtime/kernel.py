# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Load compiled kernels, call them with numpy or device arrays, and time them.

Imports the IREE runtime only. A `.vmfb` is judged by itself: it states the device it was built for
and the shapes of its `@main`, and its archive carries checksums. So a file from plain
`iree-compile` can be loaded too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from conv_compiler.binary.module_file import ModuleFile
from conv_compiler.errors import (
    DeviceUnavailable,
    InvalidArtifact,
)
from conv_compiler.problem.directions import STATED_KEPT
from conv_compiler.runtime import forks
from conv_compiler.runtime.amx_permission import ask_for_tiles
from conv_compiler.runtime.arrays import to_numpy as to_numpy
from conv_compiler.runtime.devices import DEVICES, find_device, open_device, targets_of
from conv_compiler.runtime.failed_launch import AFTER_FAILURE
from conv_compiler.runtime.kept_weight import KeepingKernel
from conv_compiler.runtime.loaded_kernel import Kernel as Kernel
from conv_compiler.targets.cpu_features import TILES, check_needs
from conv_compiler.targets.host import host_architecture, host_flags

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.artifacts.linked_artifact import LinkedArtifact

_LOADED_KERNELS = 64


def _first_to_open(names: list[str], chip: str) -> str:
    """The first of the names whose device can be opened, or the last one."""
    for name in names[:-1]:
        try:
            open_device(name, chip)
        except DeviceUnavailable:
            continue
        return name
    return names[-1]


@lru_cache(maxsize=_LOADED_KERNELS)
def _read(file: str, _stamp: tuple[int, ...]) -> bytes:
    """The bytes of a file, which is not read again while its stamp is the same."""
    return ModuleFile.read(Path(file)).data


@lru_cache(maxsize=_LOADED_KERNELS)
def _load(file: str, data: bytes, device: str | None) -> Kernel:
    path = Path(file)  # made here, for every call of `run` comes this way
    module = ModuleFile.of(path, data)
    built_for, chip = module.built_for, module.chip
    fitting = [row.name for row in DEVICES.values() if row.built_for == built_for]
    name = _first_to_open(fitting or [built_for], chip) if device is None else device
    if find_device(name).built_for != built_for:
        raise InvalidArtifact(
            f"artifact {path.name}: built for {chip}, which device {name} is not; "
            f"use {' or '.join(fitting) or 'another device'}, or compile it for {targets_of(name)}"
        )
    if needs := module.needs:
        check_needs(path.name, needs, host_architecture(), host_flags())
        if TILES in needs.extensions:
            ask_for_tiles(path.name)
    kind = KeepingKernel if STATED_KEPT.encode() in data else Kernel
    return kind(path, module.data, name, chip)


AFTER_FAILURE.append(_load.cache_clear)
forks.forget_in_child(_load.cache_clear)


def load(artifact: Artifact | LinkedArtifact | Path | str, device: str | None = None) -> Kernel:
    """Load the kernel of an artifact or of a `.vmfb`, ready to be called.

    A file that was loaded before and has not changed is not loaded again. The kernel takes its
    operands in the order of `run`, as numpy or device arrays.

    Args:
        artifact: An artifact, or the path of a `.vmfb`, also of one by plain `iree-compile`.
        device: The name of a device, such as `cpu`, `hip`, `hip://1` for the second card, `cuda`,
            `vgpu` or `vgpu-checked`. By default the one the file was built for. For AMD chips that
            is the virtual GPU where no card can be opened.

    Returns:
        The kernel; `kernel(input, d_output)` computes, `kernel.put(array)` makes a device array.

    Raises:
        InvalidArtifact: The file is missing, damaged, built for another chip, or for a CPU with
            extensions that this host lacks.
        DeviceUnavailable: There is no such device, or Linux forbids the AMX tiles of the kernel.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> kernel = cc.load(cc.compile(problem, target="cpu"))
        >>> [operand.name for operand in kernel.operands]
        ['input', 'd_output']
    """
    if not isinstance(artifact, str | os.PathLike):
        if artifact.held:
            return _load(os.fspath(artifact.vmfb), artifact.held, device)
        artifact = artifact.vmfb
    path = os.fspath(artifact)
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        stat = None
    if stat is None or not S_ISREG(stat.st_mode):
        raise InvalidArtifact(f"artifact {path}: no such file; compile it first")
    stamp = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
    return _load(path, _read(path, stamp), device)


def run(
    artifact: Artifact | LinkedArtifact | Path | str,
    first: Any,
    second: Any = None,
    device: str | None = None,
    *,
    scales: Iterable[Any] = (),
    d: Any = None,
) -> Any:
    """Call a kernel once and return its result.

    Args:
        artifact: An artifact, or the path of a `.vmfb`.
        first: The first operand: `input`, for `bwd_data` `d_output`. Its shape and type are those
            that the problem states, such as `problem.input_shape`. Elements of 4 and 6 bits are
            packed in uint8 arrays (`pack`) of the shapes `problem.held_shapes`.
        second: The second operand: `d_output` for `bwd_weight`, else `weight`; none for
            `bwd_bias`.
        device: The name of a device, as in `load`.
        scales: The block scales of both operands, in their order, if the problem has them
            (`problem.scale_shapes`): uint8 codes, or numpy arrays of `ml_dtypes.float8_e8m0fnu`.
        d: The tensor of the problem's elementwise op, if that takes one.

    Returns:
        The result: `d_weight`, `d_input`, `d_bias` or `output`. It is a numpy array, or a device
        array if an operand is one. For arrays of PyTorch, JAX or CuPy, which are not copied, it is
        one of theirs.

    Raises:
        InvalidArray: A shape, a type or a device is not that of the kernel.
        LaunchFailed: The device stopped the kernel.
        InvalidArtifact, DeviceUnavailable: As in `load`.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> image = np.ones(problem.input_shape, np.float16)
        >>> gradient = np.ones(problem.output_shape, np.float16)
        >>> cc.run(cc.compile(problem, target="cpu"), image, gradient).shape
        (1, 16, 3, 3, 8)
    """
    return load(artifact, device)(*(one for one in (first, second, *scales, d) if one is not None))
