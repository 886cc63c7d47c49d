"""Which tilings are worth modelling: a rough time of every form, and splits that fill the chip."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.model.estimate import BARE_VECTOR, lds_cycles, unit_cycles
from conv_compiler.model.facts import rank_facts
from conv_compiler.model.launch import Launch, resident
from conv_compiler.strategies.gpu.instruction_counts import address_costs, mma_body, mma_vgprs
from conv_compiler.strategies.gpu.lds_copies import lds_bytes
from conv_compiler.strategies.gpu.loop_order import (
    INTERLEAVED_STAGES,
    Form,
    along_gemm_k,
    chip_forms,
    chunk_of,
    filled_parts,
    form_trips,
    gemm_k,
    summed_length,
)
from conv_compiler.strategies.gpu.tilings import tiles
from conv_compiler.targets.f8 import operand_bytes

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Mma, Target

# Workgroups for each unit of the chip that hide one another's waits, and numbers of them that are
# tried; where trips are ordered three share a unit as a rule, and full rounds of three are best.
FULL, FILLED, FULL_ROUNDS = 3, (1, 2, 3, 4, 6, 8), (9,)


def rough_cycles(
    problem: ConvProblem, target: Target, tiling: GpuTiling, mma: Mma
) -> Iterator[tuple[float, GpuTiling, Form]]:
    """(cycles, tiling, form) for each form of a tiling that has all summed loops inside.

    What the matrix kernel about takes where its workgroups fill the chip, memory left out: enough
    to tell which form and which subgroups suit a tile. A unit's busiest pipe works all the time,
    and what a workgroup does besides is shared among those beside it.
    """
    chip = rank_facts(target)
    waves, k = math.prod(tiling.subgroups), tiling.workgroup[2]
    (trip, store), _ = mma_body(problem, target, tiling, mma)
    launch = Launch(
        workgroups=1,
        waves=waves,
        vgprs=mma_vgprs(problem, target, tiling, mma),
        lds_bytes=lds_bytes(mma, tiling.workgroup, operand_bytes(problem, target)),
    )
    beside = resident(launch, chip)
    # As many workgroups as there are SIMDs fill these evenly, however few waves each has.
    pipes = unit_cycles(trip, chip.simds, launch, chip)
    pipes["LDS"] += chip.simds * waves * lds_cycles(store, chip)
    vector = pipes.pop("VALU")
    per_simd = -(-waves // chip.simds)
    serial = per_simd * (trip.matrix_cycles + chip.valu_cycles * trip.valu_slots)
    serial += pipes["LDS"] / chip.simds
    mixed = tiling.stages >= INTERLEAVED_STAGES
    if mixed:  # pipes work at the same time
        serial = 0.0
    serial += (trip.barriers + store.barriers) * chip.lds_latency_cycles
    along_a, along_b = along_gemm_k(problem, target)
    rows_a, rows_b = (
        max(1, tiling.workgroup[side] * k // (waves * target.subgroup_size) // piece[along > 1])
        for side, piece, along in ((0, tiling.copy_a, along_a), (1, tiling.copy_b, along_b))
    )
    others = max(pipes.values())
    grid = tiles(problem, tiling)
    for form, (more_a, more_b), trips in _forms(problem, target, tiling.taps_in_rows, k):
        more = chip.valu_cycles * (more_a * rows_a + more_b * rows_b)
        busy = max(vector + waves * more, others) / chip.simds
        own: float = per_simd * more
        if mixed:
            vectors = own + per_simd * chip.valu_cycles * trip.valu_slots
            own = max(busy, per_simd * trip.matrix_cycles, vectors) + BARE_VECTOR * vectors
        alone = max(serial + own, chip.load_cycles)
        steps = grid * trips
        cycles = busy + max(0.0, alone - busy) / beside
        yield steps * cycles / min(chip.units, max(1.0, steps / 2)), tiling, form


@lru_cache(maxsize=64)
def _forms(
    problem: ConvProblem, target: Target, taps_in_rows: bool, k: int
) -> tuple[tuple[Form, tuple[int, int], int], ...]:
    """Each form with its trips over tiles of `k`, and what it costs a row of gemm_k (operands a and
    b) more than all loops inside."""
    plain_a, plain_b = address_costs(problem, ((), ()), taps_in_rows)
    found = []
    for form in chip_forms(problem, target, taps_in_rows, k):
        cost_a, cost_b = address_costs(problem, form, taps_in_rows)
        trips = form_trips(problem, form, k, taps_in_rows, 1)
        found.append((form, (cost_a - plain_a, cost_b - plain_b), trips))
    return tuple(found)


def full_splits(
    problem: ConvProblem, target: Target, tiling: GpuTiling, most: int
) -> tuple[int, ...]:
    """The numbers of parts worth modelling that come nearest to filling the chip: with as many
    workgroups a unit as hide one another's waits, and where trips are ordered, which have few, with
    one."""
    choices = split_choices(problem, target, tiling, most)
    whole = rank_facts(target).units / tiles(problem, tiling)
    full = (FULL, 1) if tiling.stages >= INTERLEAVED_STAGES else (FULL,)
    near = (min(choices, key=lambda parts: abs(parts - n * whole)) for n in full)
    return tuple(dict.fromkeys(near))


def split_choices(problem: ConvProblem, target: Target, tiling: GpuTiling, most: int) -> list[int]:
    """Numbers of parts worth modelling: those that give every unit of the chip one workgroup to
    nine, and the largest ones below that cut the main loop evenly or give each die as many; always
    1."""
    chip = rank_facts(target)
    grid, units, dies = tiles(problem, tiling), chip.units, chip.l2_parts
    if tiling.outside:
        chunk = chunk_of((tiling.outside, tiling.inside), tiling.workgroup[2])
        length = summed_length(problem, tiling.outside, tiling.taps_in_rows, chunk)
    else:
        length = -(-gemm_k(problem, tiling.taps_in_rows) // tiling.workgroup[2])
    wanted = {1}
    ordered = tiling.stages >= INTERLEAVED_STAGES
    for filled in FILLED + FULL_ROUNDS * ordered:
        parts = max(1, min(most, units * filled // grid, length // 2))
        even = range(parts, parts * 3 // 4, -1)
        wanted |= {parts, next((p for p in even if length % p == 0), parts)}
        wanted.add(max(1, parts // dies * dies))
    return sorted({filled_parts(problem, tiling, parts) for parts in wanted})
