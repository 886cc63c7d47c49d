# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model of a whole `.vmfb`: every launch of its host program, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.binary.code_objects import code_objects
from conv_compiler.binary.module_file import ModuleFile
from conv_compiler.errors import InvalidArtifact
from conv_compiler.model.code_object import KernelCode, kernels
from conv_compiler.model.counts import KernelCounts
from conv_compiler.model.dispatches import Buffer, Dispatch, Fill, disassembly, dispatches
from conv_compiler.model.dynamic import (
    dies_at_once,
    dies_reading,
    with_counters,
    with_rates,
)
from conv_compiler.model.estimate import fill_seconds
from conv_compiler.model.facts import ChipFacts, chip_facts
from conv_compiler.model.kernel_model import KernelModel, modelled
from conv_compiler.model.launch import Launch
from conv_compiler.model.met_pixels import ReadImage, read_image
from conv_compiler.model.static import alone, static_counts
from conv_compiler.model.under_load import under_load
from conv_compiler.targets import Target, find_target
from conv_compiler.vgpu.counters import KernelCounters

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem


@dataclass(frozen=True, kw_only=True)
class ModuleModel:
    """All launches of a module on its chip, in order, and the driver's fills and copies.

    Its time is a range: `seconds` at the boost clock, `sustained_seconds` under load.
    """

    target: Target
    kernels: tuple[KernelModel, ...]
    fills: tuple[Fill, ...]

    @property
    def seconds(self) -> float:
        """Modelled time of the whole module at the boost clock: never a measurement."""
        moved = sum(fill_seconds(fill.bytes, self.target) for fill in self.fills)
        return moved + sum(kernel.estimate.seconds for kernel in self.kernels)

    @property
    def sustained_seconds(self) -> float | None:
        """The same at sustained rates; None for a chip of which none were published."""
        chip = under_load(self.target, "")
        if chip is None:
            return None
        moved = sum(fill_seconds(fill.bytes, chip) for fill in self.fills)
        return moved + sum(one.sustained.seconds for one in self.kernels if one.sustained)

    @property
    def main(self) -> KernelModel:
        """The kernel that takes longest among those with matrix instructions, or of all."""
        matrix = [one for one in self.kernels if one.counts.wave.matrix]
        return max(matrix or self.kernels, key=lambda one: one.estimate.seconds)

    @property
    def matrix_busy(self) -> float:
        """Share of the chip's matrix cycles in use over the whole module."""
        busy = sum(one.estimate.matrix_busy * one.estimate.seconds for one in self.kernels)
        return busy / self.seconds

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "target": self.target.name,
            "seconds": self.seconds,
            "sustained_seconds": self.sustained_seconds,
            "matrix_busy": self.matrix_busy,
            "kernels": [one.to_json() for one in self.kernels],
            "fills": [{"kind": one.kind, "bytes": one.bytes} for one in self.fills],
        }


def launch_of(
    code: KernelCode, dispatch: Dispatch, written_before: set[Buffer], image: ReadImage | None
) -> Launch:
    """The launch of a kernel; its last buffer is the one it writes, as IREE orders them.

    `image` is the operand of which no kernel reads all.
    """
    read, written = dispatch.buffers[:-1], dispatch.buffers[-1:]
    met = {image.bytes: image.met_bytes} if image else {}
    return Launch(
        workgroups=dispatch.workgroups,
        waves=code.waves,
        vgprs=code.vgprs,
        sgprs=code.sgprs,
        lds_bytes=code.lds_bytes,
        read_bytes=sum(met.get(one.bytes, one.bytes) for one in read),
        written_bytes=sum(one.bytes for one in written),
        warm_bytes=sum(one.bytes for one in read if one in written_before),
    )


# Workgroups that are run to see whether all are alike, and so many if they are not.
FEW_WORKGROUPS, MANY_WORKGROUPS = 4, 64
_GOLDEN_RATIO = (5**0.5 - 1) / 2


def sample_workgroups(dispatch: Dispatch, count: int) -> list[tuple[int, int, int]]:
    """Ids (x, y, z) of workgroups spread evenly over the grid, in no step with its sizes."""
    x, y, _ = dispatch.grid
    picked = [int((0.5 + i * _GOLDEN_RATIO) % 1 * dispatch.workgroups) for i in range(count)]
    return [(one % x, one // x % y, one // (x * y)) for one in dict.fromkeys(picked)]


def sampled_counts(code: KernelCode, dispatch: Dispatch) -> KernelCounts:
    """Static counts of a few workgroups, or the mean of many where the few are not alike."""

    def counts(ids: list[tuple[int, int, int]]) -> KernelCounts:
        return static_counts(
            code.code, code.chip, code.lanes, [start_registers(code, one) for one in ids]
        )

    few = [counts([one]) for one in sample_workgroups(dispatch, FEW_WORKGROUPS)]
    if all(one == few[0] for one in few):
        return few[0]
    return counts(sample_workgroups(dispatch, MANY_WORKGROUPS))


def alone_cycles_of(
    code: KernelCode, dispatch: Dispatch, launch: Launch, chips: Sequence[ChipFacts]
) -> list[float]:
    """Cycles of one workgroup, for its chip under each of some conditions: the mean of a few, or of
    many where the few are not alike."""

    def cycles_of(count: int) -> list[tuple[float, ...]]:
        starts = [start_registers(code, one) for one in sample_workgroups(dispatch, count)]
        return alone(code.code, code.chip, code.lanes, starts, launch, chips)

    found = cycles_of(FEW_WORKGROUPS)
    if any(one != found[0] for one in found):
        found = cycles_of(MANY_WORKGROUPS)
    return [sum(cycles) / len(found) for cycles in zip(*found, strict=True)]


def start_registers(code: KernelCode, workgroup: tuple[int, int, int]) -> dict[str, int]:
    """The scalar registers a workgroup starts with, as far as they are known."""
    return {name: value for name, value in zip(code.workgroup_id, workgroup, strict=False) if name}


def _kernel_model(
    code: KernelCode,
    dispatch: Dispatch,
    launch: Launch,
    row: KernelCounters | None,
    first_look: bool,
) -> KernelModel:
    """The model of one dispatch; the counters of `row` take the place of static counts."""
    counts = sampled_counts(code, dispatch)
    if row:
        dies = dies_at_once(row) if first_look else dies_reading(row, launch)
        launch = replace(launch, dies=dies)
        counts = (with_rates if first_look else with_counters)(counts, row)
    stored = int(counts.wave.store_bytes * launch.workgroups * launch.waves)
    launch = replace(launch, written_bytes=min(launch.written_bytes, stored))

    def alone_on(chips: Sequence[ChipFacts]) -> Sequence[float]:
        return alone_cycles_of(code, dispatch, launch, chips)

    return modelled(code, dispatch, launch, counts, alone_on)


def model_module(
    vmfb: Path,
    counters: Sequence[KernelCounters] = (),
    first_look: bool = False,
    problem: ConvProblem | None = None,
) -> ModuleModel:
    """Model a `.vmfb` for AMD GPUs, ours or any that IREE compiled with static shapes.

    `counters` are those of one run of it on the virtual GPU; they take the place of static counts.
    With `first_look` they are of a run that ended at its first barriers: only their rates are used.
    `problem` is what the module computes: of an image that its taps do not meet whole, kernels read
    the lines that they meet. Without one they read whole buffers.
    Raises UnsupportedTarget for chips without facts, InvalidArtifact for files without AMD code,
    and ModelRefused where an iteration count or a grid is not a constant.
    """
    images = list(code_objects(ModuleFile.read(vmfb).data))
    if not images:
        raise InvalidArtifact(
            f"artifact {vmfb.name}: holds no AMD code object; the model reads AMD machine code only"
        )
    codes = {kernel.name: kernel for image in images for kernel in kernels(image)}
    target = find_target(next(iter(codes.values())).chip)
    chip_facts(target)
    counted = {row.kernel: row for row in counters}
    launches = dispatches(disassembly(vmfb))
    image = read_image(problem) if problem else None
    models: list[KernelModel] = []
    written: set[Buffer] = set()
    for dispatch in launches:
        if isinstance(dispatch, Fill):
            continue
        if (code := codes.get(dispatch.kernel)) is None:
            raise InvalidArtifact(
                f"artifact {vmfb.name}: launches {dispatch.kernel or 'a kernel without a name'}, "
                "which it does not hold; compile it again"
            )
        launch = launch_of(code, dispatch, written, image)
        written |= set(dispatch.buffers[-1:])
        models.append(_kernel_model(code, dispatch, launch, counted.get(code.name), first_look))
    if not models:
        raise InvalidArtifact(
            f"artifact {vmfb.name}: its host program launches no kernel; compile it again"
        )
    fills = tuple(one for one in launches if isinstance(one, Fill))
    return ModuleModel(target=target, kernels=tuple(models), fills=fills)
