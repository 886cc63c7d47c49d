# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model of one launch of any kernel: from its machine code and the counts of a run of it.

How often a block runs is counted, so a loop whose iterations hang on arguments or on data is
modelled as it ran. Workgroups that differ are modelled as their mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from conv_compiler.errors import ModelRefused
from conv_compiler.model.code_object import KernelCode, kernels
from conv_compiler.model.dispatches import Dispatch
from conv_compiler.model.dynamic import dies_reading, with_counters
from conv_compiler.model.facts import ChipFacts
from conv_compiler.model.kernel_model import KernelModel, modelled
from conv_compiler.model.launch import Launch
from conv_compiler.model.loops import Block, blocks
from conv_compiler.model.met_pixels import LINE_BYTES
from conv_compiler.model.static import alone_of, counts_of, course
from conv_compiler.model.trace import Trace, trace_of
from conv_compiler.vgpu.counters import KernelCounters

# Instructions outside the main loop that are followed one by one; more would take minutes.
MOST_INSTRUCTIONS = 500_000


class ModelledLaunch(NamedTuple):
    """The model of a launch, and the timeline of one of its workgroups."""

    model: KernelModel
    trace: Trace


def model_launch(
    elf: bytes,
    row: KernelCounters,
    grid: tuple[int, int, int],
    work_items: int,
    lds_bytes: int,
    most_written: int,
) -> ModelledLaunch:
    """Model the launches that `row` counted, all of `grid` workgroups of so many work-items.

    `lds_bytes` are those of dynamic LDS; `most_written` is the size of all memory that the kernel
    may write. Raises ModelRefused where the code does not say what its waves ran.
    """
    (code,) = (one for one in kernels(elf) if one.name == row.kernel)
    code = replace(code, workgroup_size=work_items, lds_bytes=code.lds_bytes + lds_bytes)
    parts = blocks(code.code)
    means = counted_runs(code, parts, row)
    runs = [math.floor(mean + 0.5) for mean in means]
    _refuse_long(code, parts, runs)
    dispatch = Dispatch(kernel=code.name, grid=grid, buffers=())
    launch = Launch(
        workgroups=dispatch.workgroups,
        waves=code.waves,
        vgprs=code.vgprs,
        sgprs=code.sgprs,
        lds_bytes=code.lds_bytes,
        read_bytes=row.read_lines * LINE_BYTES // row.launches,
        written_bytes=min(row.global_write_bytes // row.launches, most_written),
    )
    launch = replace(launch, dies=dies_reading(row, launch))
    counts = with_counters(counts_of(parts, means, code.chip, code.lanes), row)

    def alone_on(chips: Sequence[ChipFacts]) -> Sequence[float]:
        return alone_of(parts, runs, code.chip, code.lanes, launch, chips)

    kernel = modelled(code, dispatch, launch, counts, alone_on)
    return ModelledLaunch(kernel, trace_of(kernel, parts, runs, workgroup=None))


def counted_runs(
    code: KernelCode, parts: Sequence[Block], row: KernelCounters
) -> tuple[float, ...]:
    """How often a wave runs each block, on average over all waves that were counted."""
    first = code.code[0].address
    outside = row.executions.keys() - {one.address - first for one in code.code}
    if outside:
        raise ModelRefused(
            f"kernel {code.name}: runs code that is not its own, as of a function that it calls, "
            "which the model does not follow; have the function inlined"
        )
    found = []
    for part in parts:
        counts = {row.executions.get(one.address - first, 0) for one in part.instructions}
        if len(counts) > 1:
            raise ModelRefused(
                f"kernel {code.name}: goes into or out of the block at {part.start:#x} by an "
                "address of a register, which the model does not follow; count it without a model"
            )
        found.append(counts.pop() / row.waves)
    return tuple(found)


def _refuse_long(code: KernelCode, parts: Sequence[Block], runs: Sequence[int]) -> None:
    way = course(parts, runs, code.chip, code.lanes)
    found = sum(len(parts[block].instructions) for block in (*way.before, *way.after))
    if found > MOST_INSTRUCTIONS:
        raise ModelRefused(
            f"kernel {code.name}: {found} instructions of a wave are outside its main loop, of "
            f"which the model follows {MOST_INSTRUCTIONS}; give a smaller launch"
        )
