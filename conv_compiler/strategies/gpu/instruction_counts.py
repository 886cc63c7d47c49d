# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a wave of a tiling's kernel would execute in all, and the registers that it would need.

`loop_terms.py` has the main loop of the matrix kernel; the constants are in `cost_constants.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from conv_compiler.model.counts import Counts, KernelCounts, counted, total
from conv_compiler.model.facts import rank_facts
from conv_compiler.strategies.gpu.address_costs import address_costs
from conv_compiler.strategies.gpu.cost_constants import (
    LDS_LOADS,
    LOAD_DISTANCE,
    LOOP,
    OUTSIDE,
    REGISTERS,
)
from conv_compiler.strategies.gpu.lds_banks import DWORD
from conv_compiler.strategies.gpu.loop_order import (
    INTERLEAVED_STAGES,
    is_interleaved,
    iterations,
    runs_ahead,
)
from conv_compiler.strategies.gpu.loop_terms import Iteration, main_loop
from conv_compiler.strategies.gpu.phase_taps import mean_iterations
from conv_compiler.strategies.gpu.stored_sums import stores_result
from conv_compiler.strategies.gpu.tail_masking import has_rest_inside, is_cdna, tail_of
from conv_compiler.strategies.gpu.tilings import transposed_sides
from conv_compiler.targets.f8 import operand_bytes

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Mma, Target


def mma_counts(
    problem: ConvProblem, target: Target, tiling: GpuTiling, mma: Mma, split_k: int
) -> KernelCounts:
    """What a wave of the matrix kernel executes."""
    loop = main_loop(problem, target, tiling, mma, tail_of(problem, target, tiling, split_k))
    interleaved = runs_ahead(tiling)
    direct = saves_a_kernel(problem, target, tiling, split_k)
    stored_bytes = problem.result_type.bytes if direct else DWORD
    return KernelCounts(
        body=(loop.compute, loop.store),
        iterations=mean_iterations(problem, tiling, split_k),
        outside=_outside(problem, target, tiling, loop, stored_bytes),
        load_distance=_distance(problem, target, tiling, loop),
        interleaved=interleaved,
        # Transposed ones are twice as many, and some of them come late (430 cycles, not 370).
        reads_ahead=tiling.loads_to_lds and not all(transposed_sides(problem, target, mma, tiling)),
        source="predicted",
    )


def _outside(
    problem: ConvProblem, target: Target, tiling: GpuTiling, loop: Iteration, stored_bytes: int
) -> Counts:
    """What a wave executes outside its main loop.

    Vector instructions: those for each sum that it stores x its sums, and those at its start.
    """
    lanes = target.subgroup_size
    sums = math.prod(tiling.workgroup[:2]) / (math.prod(tiling.subgroups) * lanes)
    valu = OUTSIDE.rough_stored_sum_instructions * sums
    if _is_held_to_code(problem, target):
        valu = OUTSIDE.stored_sum_instructions * sums + OUTSIDE.start_instructions
    # An interleaved loop loads one tile past its last.
    interleaved = is_interleaved(tiling)
    past_end = total((loop.compute, loop.store)).line_bytes if interleaved else 0.0
    return counted(
        valu=valu,
        valu_slots=valu,
        stores=sums,
        store_dwords=sums,
        loads=loop.loads,
        line_bytes=sums * stored_bytes * lanes + past_end,
    )


def _distance(problem: ConvProblem, target: Target, tiling: GpuTiling, loop: Iteration) -> float:
    """Iterations between a load and the wait for it."""
    if tiling.loads_to_lds:
        return tiling.stages - LDS_LOADS.early_wait_iterations
    if tiling.stages >= INTERLEAVED_STAGES:
        return LOAD_DISTANCE.interleaved_iterations
    if _is_held_to_code(problem, target):
        return load_distance((loop.compute, loop.store), tiling.stages)
    return float(max(tiling.stages - 1, 0))


def _is_held_to_code(problem: ConvProblem, target: Target) -> bool:
    """Whether a kernel's prediction outside its main loop was fitted to compiled code.

    That is so for windows on CDNA, where loops are not interleaved. 1x1 layers, which memory binds,
    and other chips are ranked by rougher numbers, which served them as well.
    """
    plain = target.pipeline_stages < INTERLEAVED_STAGES
    return plain and is_cdna(target) and not problem.is_pointwise


def load_distance(body: tuple[Counts, ...], stages: int) -> float:
    """Iterations between a load and the wait for it, measured as in code (`model/static.py`).

    The loads of an iteration come after about half of its scalar instructions. After the wait for
    them come the vector instructions and the LDS writes. So the distance is
    stages - 1 - (valu + salu / 2 + lds_writes) / (matrix cycles + other instructions).
    """
    if stages < 2:
        return 0.0
    one = total(body)
    other = one.valu + one.salu + one.lds_reads + one.lds_writes + one.loads
    behind = one.valu + one.salu / 2 + one.lds_writes
    return stages - 1 - behind / (one.matrix_cycles + other)


def mma_vgprs(problem: ConvProblem, target: Target, tiling: GpuTiling, mma: Mma) -> int:
    """Registers of a lane: sums, fragments of one step or two, loads in flight, and others.

    An interleaved loop holds all fragments of an iteration, and the loads of two iterations. On
    CDNA those that are masked are held twice.
    """
    (m, n, k), (subgroups_m, subgroups_n) = tiling.workgroup, tiling.subgroups
    lanes, size = target.subgroup_size, operand_bytes(problem, target)
    threads = subgroups_m * subgroups_n * lanes
    fragments = (m // subgroups_m + n // subgroups_n) * mma.k * size / lanes / DWORD
    loads = (m + n) * k * size / threads / DWORD
    interleaved = runs_ahead(tiling)
    steps, held = (k // mma.k, 2) if interleaved else (2, 1)
    if is_cdna(target) and has_rest_inside(problem, target, tiling):
        held *= 2
    if tiling.loads_to_lds:  # fragments of two iterations, and no loads
        steps, held = 2 * steps, 0
    sums = m * n / threads
    if rank_facts(target).accumulators_apart:
        others = math.ceil(steps * fragments + held * loads) + REGISTERS.other_registers
        return max(math.ceil(sums), others)
    vgprs = math.ceil(sums + steps * fragments + held * loads) + REGISTERS.other_registers
    is_tight = vgprs > REGISTERS.half_file_registers - REGISTERS.tight_registers
    return vgprs + REGISTERS.tight_registers * (interleaved and is_tight)


def vector_counts(
    problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int
) -> KernelCounts:
    """What a wave of the vector kernel executes.

    For each of gemm_k: addresses of m and n elements, m x n multiply-adds, m + n conversions.
    """
    m, n = tiling.piece
    k = tiling.workgroup[2]
    address = address_costs(problem, target, ((), ()), False)
    loads = (m + n) * k
    valu = k * (m * address.a + n * address.b + m * n + m + n)
    moved_bytes = loads * operand_bytes(problem, target) * target.subgroup_size
    iteration = counted(
        valu=valu,
        valu_slots=valu,
        vector_flops=2 * m * n * k * target.subgroup_size,
        salu=LOOP.iteration_salu_instructions,
        loads=loads,
        load_dwords=loads,
        load_bytes=moved_bytes,
        line_bytes=moved_bytes,
    )
    return KernelCounts(
        body=(iteration,),
        iterations=iterations(problem, tiling, split_k),
        outside=counted(valu=m * n, valu_slots=m * n, stores=m * n, store_dwords=m * n),
        source="predicted",
    )


def mma_of(target: Target, tiling: GpuTiling) -> Mma:
    """The matrix instruction of a tiling."""
    return next(row for row in target.mma if row.name == tiling.mma)


def saves_a_kernel(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> bool:
    """Whether a ranking counts on the result being stored by the matrix kernel itself.

    On NVIDIA it does not: the model knows too little of the main loop there. Choices of one part
    that it would make took 1.2 to 2.9 times as long as these on an H100.
    """
    return target.backend == "rocm" and stores_result(problem, target, tiling, split_k)
