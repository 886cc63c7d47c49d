# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which tilings are worth modelling: a rough time of every loop order, and split-K factors that
fill the chip."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.model.constants import INTERLEAVED
from conv_compiler.model.estimate import lds_cycles, unit_cycles
from conv_compiler.model.facts import rank_facts
from conv_compiler.model.launch import Launch, resident
from conv_compiler.strategies.gpu.address_costs import Addresses, address_costs
from conv_compiler.strategies.gpu.cost_constants import SPLITS
from conv_compiler.strategies.gpu.grid import tiles
from conv_compiler.strategies.gpu.instruction_counts import mma_vgprs
from conv_compiler.strategies.gpu.lds_copies import tiling_lds_bytes
from conv_compiler.strategies.gpu.loop_order import (
    ReductionLoops,
    along_gemm_k,
    chip_forms,
    chunk_of,
    filled_parts,
    form_iterations,
    gemm_k,
    runs_ahead,
    summed_length,
)
from conv_compiler.strategies.gpu.loop_terms import main_loop
from conv_compiler.strategies.gpu.tilings import item_of

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Mma, Target


class Rough(NamedTuple):
    """A first look at a tiling in one order of its loops; `cycles` come first, to be compared."""

    cycles: float
    tiling: GpuTiling
    loops: ReductionLoops


class _Shared(NamedTuple):
    """Cycles of one iteration that all orders of a tiling's loops have in common.

    `vector` is a unit's vector pipe and `others` its busiest other pipe, with as many workgroups as
    it has SIMDs. `serial` is one workgroup alone, where pipes take turns; `vector_alone` the vector
    instructions of its waves on one SIMD, `matrix_alone` its matrix instructions.
    """

    vector: float
    others: float
    serial: float
    vector_alone: float
    matrix_alone: float
    resident: int


class _Order(NamedTuple):
    """An order of loops: its iterations, and the vector instructions a row beyond the flat one."""

    loops: ReductionLoops
    more: Addresses
    iterations: int


def rough_cycles(
    problem: ConvProblem, target: Target, tiling: GpuTiling, mma: Mma
) -> Iterator[Rough]:
    """A rough time for each order of the loops of a tiling that has all summed loops inside.

    It is about what the matrix kernel takes where its workgroups fill the chip, memory left out:
    enough to tell which order and which subgroups suit a tile. The busiest pipe of a unit works all
    the time; what a workgroup takes besides is shared among the residents:
    cycles = busy + max(0, alone - busy) / residents.
    """
    chip = rank_facts(target)
    interleaved = runs_ahead(tiling)
    shared, waves = _shared(problem, target, tiling, mma), math.prod(tiling.subgroups)
    per_simd = -(-waves // chip.simds)
    rows_a, rows_b = _rows(problem, target, tiling)
    grid = tiles(problem, tiling)
    for loops, more_rows, count in _orders(
        problem, target, tiling.taps_in_rows, tiling.workgroup[2]
    ):
        more = chip.valu_cycles * (more_rows.a * rows_a + more_rows.b * rows_b)
        busy = max(shared.vector + waves * more, shared.others) / chip.simds
        own: float = per_simd * more
        if interleaved:
            vectors = own + shared.vector_alone
            own = max(busy, shared.matrix_alone, vectors) + INTERLEAVED.bare_vector_share * vectors
        alone = max(shared.serial + own, chip.load_cycles)
        steps = grid * count
        cycles = busy + max(0.0, alone - busy) / shared.resident
        yield Rough(steps * cycles / min(chip.units, max(1.0, steps / 2)), tiling, loops)


def _shared(problem: ConvProblem, target: Target, tiling: GpuTiling, mma: Mma) -> _Shared:
    """What one iteration takes in any order of its loops."""
    chip, waves = rank_facts(target), math.prod(tiling.subgroups)
    one = main_loop(problem, target, tiling, mma)
    launch = Launch(
        workgroups=1,
        waves=waves,
        vgprs=mma_vgprs(problem, target, tiling, mma),
        lds_bytes=tiling_lds_bytes(mma, tiling, item_of(problem, target)),
    )
    # As many workgroups as there are SIMDs fill these evenly, however few waves each has.
    pipes = unit_cycles(one.compute, chip.simds, launch, chip)
    pipes["LDS"] += chip.simds * waves * lds_cycles(one.store, chip)
    vector = pipes.pop("VALU")
    per_simd = -(-waves // chip.simds)
    serial = 0.0
    if not runs_ahead(tiling):
        valu = chip.valu_cycles * one.compute.valu_slots
        serial = per_simd * (one.compute.matrix_cycles + valu)
        serial += pipes["LDS"] / chip.simds
    serial += (one.compute.barriers + one.store.barriers) * chip.lds_latency_cycles
    return _Shared(
        vector=vector,
        others=max(pipes.values()),
        serial=serial,
        vector_alone=per_simd * chip.valu_cycles * one.compute.valu_slots,
        matrix_alone=per_simd * one.compute.matrix_cycles,
        resident=resident(launch, chip),
    )


def _rows(problem: ConvProblem, target: Target, tiling: GpuTiling) -> tuple[int, int]:
    """Rows of gemm_k that a thread reads of operands a and b."""
    along_a, along_b = along_gemm_k(problem, target)
    threads = math.prod(tiling.subgroups) * target.subgroup_size
    m, n, k = tiling.workgroup
    return (
        max(1, m * k // threads // tiling.copy_a[along_a > 1]),
        max(1, n * k // threads // tiling.copy_b[along_b > 1]),
    )


@lru_cache(maxsize=64)
def _orders(problem: ConvProblem, target: Target, taps_in_rows: bool, k: int) -> tuple[_Order, ...]:
    """Each order of the loops over tiles of `k`, against all loops inside."""
    flat = address_costs(problem, target, ((), ()), taps_in_rows)
    found = []
    for loops in chip_forms(problem, target, taps_in_rows, k):
        cost = address_costs(problem, target, loops, taps_in_rows)
        more = Addresses(cost.a - flat.a, cost.b - flat.b)
        found.append(_Order(loops, more, form_iterations(problem, loops, k, taps_in_rows, 1)))
    return tuple(found)


def full_splits(
    problem: ConvProblem, target: Target, tiling: GpuTiling, most: int
) -> tuple[int, ...]:
    """The split-K factors worth modelling that come nearest to filling the chip.

    They give a unit as many workgroups as hide one another's waits. An interleaved loop has few
    waits, so there is another factor for it, that gives each unit one.
    """
    choices = split_choices(problem, target, tiling, most)
    one_each = rank_facts(target).units / tiles(problem, tiling)
    interleaved = runs_ahead(tiling)
    wanted = (SPLITS.full_workgroups, 1) if interleaved else (SPLITS.full_workgroups,)
    near = (min(choices, key=lambda split_k: abs(split_k - n * one_each)) for n in wanted)
    return tuple(dict.fromkeys(near))


def split_choices(problem: ConvProblem, target: Target, tiling: GpuTiling, most: int) -> list[int]:
    """Split-K factors worth modelling, up to `most`; always 1.

    They give every unit of the chip one workgroup to nine. For each of these come the largest one
    below that cuts the main loop evenly, and the largest that gives each die as many parts.
    """
    chip = rank_facts(target)
    grid, dies = tiles(problem, tiling), chip.l2_parts
    if tiling.outside:
        chunk = chunk_of((tiling.outside, tiling.inside), tiling.workgroup[2])
        length = summed_length(problem, tiling.outside, tiling.taps_in_rows, chunk)
    else:
        length = -(-gemm_k(problem, tiling.taps_in_rows) // tiling.workgroup[2])
    wanted = {1}
    tried = SPLITS.tried_workgroups
    if runs_ahead(tiling):
        tried += SPLITS.interleaved_tried_workgroups
    for workgroups in tried:
        split_k = max(1, min(most, chip.units * workgroups // grid, length // 2))
        even = range(split_k, split_k * 3 // 4, -1)
        wanted |= {split_k, next((p for p in even if length % p == 0), split_k)}
        wanted.add(max(1, split_k // dies * dies))
    return sorted({filled_parts(problem, tiling, split_k) for split_k in wanted})
