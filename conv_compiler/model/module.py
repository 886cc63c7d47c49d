# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model of a whole `.vmfb`: every launch of its host program, one after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
from conv_compiler.model.estimate import Estimate, estimate, fill_seconds
from conv_compiler.model.facts import ChipFacts, chip_facts
from conv_compiler.model.launch import Launch
from conv_compiler.model.matrix import is_matrix, operand_type
from conv_compiler.model.static import alone, static_counts
from conv_compiler.model.under_load import under_load
from conv_compiler.targets import Target, find_target
from conv_compiler.vgpu.counters import KernelCounters


@dataclass(frozen=True, kw_only=True)
class KernelModel:
    """One dispatch: the kernel's code and grid, what a wave of it executes, and its time.

    `estimate` is at the boost clock and peak bandwidths; `sustained` at what the chip keeps up, or
    None where nobody published that.
    """

    code: KernelCode
    dispatch: Dispatch
    launch: Launch
    counts: KernelCounts
    estimate: Estimate
    sustained: Estimate | None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        estimate, lie = self.estimate, self.estimate.occupancy
        loop = self.counts.iteration if self.counts.body else self.counts.outside
        return {
            "kernel": self.code.name,
            "counts": self.counts.source,
            "seconds": estimate.seconds,
            "binds": estimate.binds,
            "sustained": self.sustained and _sustained_json(self.sustained),
            "matrix_busy": estimate.matrix_busy,
            "tflops": estimate.tflops,
            "workgroups": self.launch.workgroups,
            "waves": self.launch.waves,
            "vgprs": self.code.vgprs,
            "sgprs": self.code.sgprs,
            "lds_bytes": self.code.lds_bytes,
            "scratch_bytes": self.code.scratch_bytes,
            "spills": self.code.spills,
            "resident": lie.resident,
            "waves_per_simd": lie.waves_per_simd,
            "rounds": lie.rounds,
            "tail": lie.tail,
            "iterations": self.counts.iterations,
            "load_distance": self.counts.load_distance,
            "pipes": _pipes_json(estimate),
            "loop": {name: getattr(loop, name) for name in loop.__dataclass_fields__},
            "wave": {name: getattr(self.counts.wave, name) for name in loop.__dataclass_fields__},
            "per_equivalent": per_equivalent(self.counts),
        }


def _pipes_json(estimate: Estimate) -> dict[str, float]:
    return {
        **estimate.pipes,
        "unit, with latency": estimate.unit_seconds,
        "launch": estimate.launch_seconds,
    }


def _sustained_json(estimate: Estimate) -> dict[str, Any]:
    return {
        "seconds": estimate.seconds,
        "binds": estimate.binds,
        "tflops": estimate.tflops,
        "pipes": _pipes_json(estimate),
    }


def per_equivalent(counts: KernelCounts) -> dict[str, float]:
    """Instructions of the main loop by class, for each 16x16x16 matrix instruction's work.

    Empty for a kernel without matrix instructions.
    """
    iteration = counts.iteration if counts.iteration.matrix else counts.wave
    if not iteration.matrix_flops:
        return {}
    names = ("matrix", "valu", "salu", "lds_reads", "lds_writes", "loads", "barriers", "waits")
    return {name: getattr(iteration, name) / iteration.equivalents for name in names}


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


def launch_of(code: KernelCode, dispatch: Dispatch, written_before: set[Buffer]) -> Launch:
    """The launch of a kernel; its last buffer is the one it writes, as IREE orders them."""
    read, written = dispatch.buffers[:-1], dispatch.buffers[-1:]
    return Launch(
        workgroups=dispatch.workgroups,
        waves=code.waves,
        vgprs=code.vgprs,
        sgprs=code.sgprs,
        lds_bytes=code.lds_bytes,
        read_bytes=sum(one.bytes for one in read),
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


def operands_of(code: KernelCode) -> str:
    """The operand type of most of a kernel's matrix instructions; "" where it has none."""
    types = Counter(operand_type(one.name) for one in code.code if is_matrix(one.name))
    return types.most_common(1)[0][0] if types else ""


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
    boost = find_target(code.chip)
    loaded = under_load(boost, operands_of(code))
    conditions = [boost, loaded] if loaded else [boost]
    alone = alone_cycles_of(code, dispatch, launch, [chip_facts(one) for one in conditions])
    times = [
        estimate(counts, launch, one, alone=cycles)
        for one, cycles in zip(conditions, alone, strict=True)
    ]
    return KernelModel(
        code=code,
        dispatch=dispatch,
        launch=launch,
        counts=counts,
        estimate=times[0],
        sustained=times[1] if loaded else None,
    )


def model_module(
    vmfb: Path, counters: Sequence[KernelCounters] = (), first_look: bool = False
) -> ModuleModel:
    """Model a `.vmfb` for AMD GPUs, ours or any that IREE compiled with static shapes.

    `counters` are those of one run of it on the virtual GPU; they take the place of static counts.
    With `first_look` they are of a run that ended at its first barriers: only their rates are used.
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
        launch = launch_of(code, dispatch, written)
        written |= set(dispatch.buffers[-1:])
        models.append(_kernel_model(code, dispatch, launch, counted.get(code.name), first_look))
    if not models:
        raise InvalidArtifact(
            f"artifact {vmfb.name}: its host program launches no kernel; compile it again"
        )
    fills = tuple(one for one in launches if isinstance(one, Fill))
    return ModuleModel(target=target, kernels=tuple(models), fills=fills)
