# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model of one kernel: what it executes, and its time at both ends of its chip's range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from conv_compiler.model.code_object import KernelCode
from conv_compiler.model.counts import KernelCounts
from conv_compiler.model.dispatches import Dispatch
from conv_compiler.model.estimate import Estimate, estimate
from conv_compiler.model.facts import ChipFacts, chip_facts
from conv_compiler.model.launch import Launch
from conv_compiler.model.matrix import is_matrix, operand_type
from conv_compiler.model.under_load import under_load
from conv_compiler.targets import find_target


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


def operands_of(code: KernelCode) -> str:
    """The operand type of most of a kernel's matrix instructions; "" where it has none."""
    types = Counter(operand_type(one.name) for one in code.code if is_matrix(one.name))
    return types.most_common(1)[0][0] if types else ""


def modelled(
    code: KernelCode,
    dispatch: Dispatch,
    launch: Launch,
    counts: KernelCounts,
    alone_on: Callable[[Sequence[ChipFacts]], Sequence[float]],
) -> KernelModel:
    """The model of a launch from counts of its waves.

    `alone_on` gives the cycles of one workgroup for its chip under each of some conditions.
    """
    boost = find_target(code.chip)
    loaded = under_load(boost, operands_of(code))
    conditions = [boost, loaded] if loaded else [boost]
    alone = alone_on([chip_facts(one) for one in conditions])
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
