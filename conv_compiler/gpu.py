"""GPU strategies: which tiles fit a problem on a chip, best first, and what rides on the ops."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from conv_compiler.gpu_pipeline import lowering, lowering_vector
from conv_compiler.schedule import CompilationInfo, Schedule
from conv_compiler.strategy import GpuTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem import ConvProblem
    from conv_compiler.script import Sequence
    from conv_compiler.targets import Mma, Target

# Workgroup tiles in matrix instructions (m, n) and the subgroups that share them, as large as the
# registers of a subgroup allow and then smaller for small problems.
MMA_TILES = tuple(
    ((m, n), (subgroups_m, subgroups_n))
    for subgroups_m, subgroups_n in (
        (2, 2), (1, 4), (4, 1), (1, 2), (2, 1), (1, 1), (2, 4), (4, 2)
    )
    for m in (1, 2, 4, 8)
    for n in (1, 2, 4, 8)
    if m % subgroups_m == 0 and n % subgroups_n == 0
)
# Accumulators may take this part of a lane's registers; the rest go to operands, addresses and the
# loads in flight.
ACCUMULATOR_SHARE = 8
# Loads of single elements a thread may have in flight for one operand; more of them spill.
MOST_SCALAR_LOADS = 16
# One thread's piece of an operand on its way from memory to LDS: at most, as read, as written.
MOST_COPY_BYTES = 64
MEMORY_BYTES = 16
LDS_BYTES = 8
# Bytes of gemm_k in an LDS row: enough to read whole 16-byte pieces, few enough for two stages.
K_TILE_BYTES = 128
# Vector operations to find, test and load one element of an im2col operand (counted in the
# machine code of gfx942; addresses are shared between neighbours, so it is less when c is large).
COPY_CYCLES_PER_ELEMENT = 10
# Vector kernels: threads of a workgroup, and candidate pieces (m, n) a thread computes.
VECTOR_THREADS = 256
VECTOR_PIECES = ((4, 4), (2, 4), (4, 2), (1, 4), (4, 1), (2, 2), (1, 2), (2, 1), (1, 1))
VECTOR_K_STEP = 4


def _ceil(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def occupancy_slots(target: Target) -> int:
    """Workgroups the chip runs at once when each compute unit holds two, to hide latency."""
    return 2 * target.compute_units


def copy_piece(
    rows: int, depth: int, threads: int, mma_rows: int, mma: Mma, channels: int, item_bytes: int
) -> tuple[int, int] | None:
    """What one thread copies of an operand tile of `rows` (m or n) by `depth` (gemm_k) elements.

    Every thread gets the same number of pieces (or IREE's software pipelining is lost) inside one
    instruction's operand. Preferred are pieces that read MEMORY_BYTES of `channels` side by side,
    then those that write LDS_BYTES of gemm_k side by side. None when no piece divides the work.
    """
    choices = []
    for elements in (16, 8, 4, 2, 1):
        for along_k in (16, 8, 4, 2, 1):
            if mma_rows % elements or mma.k % along_k:
                continue
            if elements * along_k * item_bytes > MOST_COPY_BYTES:
                continue
            if rows * depth % (elements * along_k * threads):
                continue
            vector = elements if channels % elements == 0 else 1
            if rows * depth // (threads * vector) > MOST_SCALAR_LOADS:
                continue
            read = vector * item_bytes
            write = along_k * item_bytes
            choices.append(
                ((min(read, MEMORY_BYTES), -abs(write - LDS_BYTES), elements), (elements, along_k))
            )
    return max(choices)[1] if choices else None


def mma_cost(problem: ConvProblem, target: Target, tiling: GpuTiling, mma: Mma) -> float:
    """Modelled cycles of the whole grid, for ranking tiles: matrix, copy and store work.

    Per main-loop trip a workgroup costs the longer of its matrix instructions (on all SIMDs of a
    compute unit) and its copies to LDS; trips times workgroups are spread over the chip in whole
    waves of workgroups. A ranking, not a prediction.
    """
    m, n, k = tiling.workgroup
    tiles = problem.g * -(-problem.gemm_m // m) * -(-problem.gemm_n // n)
    k_tiles = -(-problem.gemm_k // k)
    units = min(math.prod(tiling.subgroups), target.simds_per_unit)
    matrix = (m // mma.m) * (n // mma.n) * (k // mma.k) * mma.subgroup_cycles / units
    lanes = units * target.subgroup_size / (4 if target.subgroup_size == 64 else 1)
    copies = (m + n) * k * COPY_CYCLES_PER_ELEMENT / lanes
    fill = min(tiles * k_tiles, target.compute_units)
    return tiles * k_tiles * max(matrix, copies) / fill


def mma_tiling(
    problem: ConvProblem,
    target: Target,
    mma: Mma,
    tile: tuple[int, int, int],
    subgroups: tuple[int, int],
) -> GpuTiling | None:
    """A whole tiling for a workgroup tile, or None when registers or copies do not work out."""
    threads = math.prod(subgroups) * target.subgroup_size
    if tile[0] * tile[1] // threads > target.vgprs_per_lane // ACCUMULATOR_SHARE:
        return None
    size = problem.data_type.bytes
    copy_a = copy_piece(tile[0], tile[2], threads, mma.m, mma, problem.k, size)
    copy_b = copy_piece(tile[1], tile[2], threads, mma.n, mma, problem.c, size)
    if copy_a is None or copy_b is None:
        return None
    return GpuTiling(
        workgroup=tile, subgroups=subgroups, mma=mma.name, copy_a=copy_a, copy_b=copy_b
    )


def mma_candidates(problem: ConvProblem, target: Target) -> tuple[Strategy, ...]:
    """Implicit-GEMM tilings for every matrix instruction of the type, lowest cost first."""
    ranked = []
    for mma in target.mma_for(problem.dtype):
        depth = max(1, K_TILE_BYTES // problem.data_type.bytes // mma.k)
        for (tile_m, tile_n), subgroups in MMA_TILES:
            for steps in (depth, depth // 2, depth // 4):
                tile = (tile_m * mma.m, tile_n * mma.n, steps * mma.k)
                tiling = steps and mma_tiling(problem, target, mma, tile, subgroups)
                if tiling:
                    cost = mma_cost(problem, target, tiling, mma)
                    ranked.append((cost, -math.prod(tile), len(ranked), tiling))
    return tuple(Strategy(name="implicit_gemm", tiling=t) for *_, t in sorted(ranked)[:8])


def vector_candidates(problem: ConvProblem, target: Target) -> tuple[Strategy, ...]:
    """The vector tiling with the least padding, then the largest piece a thread."""
    best = min(
        VECTOR_PIECES,
        key=lambda p: (
            _ceil(problem.gemm_m, p[0]) * _ceil(problem.gemm_n, p[1]),
            -p[0] * p[1],
        ),
    )
    # Fill a workgroup from the side of n, then m; what is left over goes to the groups.
    n = min(-(-problem.gemm_n // best[1]), VECTOR_THREADS)
    m = min(-(-problem.gemm_m // best[0]), max(1, VECTOR_THREADS // n))
    tiling = GpuTiling(
        workgroup=(m * best[0], n * best[1], VECTOR_K_STEP), subgroups=(1, 1), piece=best, stages=0
    )
    return (Strategy(name="vector_gemm", tiling=tiling),)


def gemm_tiles(problem: ConvProblem, tiling: GpuTiling) -> tuple[int, int]:
    """(workgroups without split-K, main-loop trips) of a tiling."""
    m, n, k = tiling.workgroup
    tiles = problem.g * -(-problem.gemm_m // m) * -(-problem.gemm_n // n)
    return tiles, -(-problem.gemm_k // k)


def k_multiple(tiling: GpuTiling) -> int:
    """gemm_k of a part is rounded up to this: two main-loop trips, for there must be a loop."""
    return 2 * tiling.workgroup[2]


def passes(problem: ConvProblem, target: Target, strategy: Strategy) -> tuple[Pass, ...]:
    """The payload as a batched GEMM on whole tiles."""
    from conv_compiler.passes.implicit_gemm import ImplicitGemm

    tiling = strategy.tiling
    assert isinstance(tiling, GpuTiling)
    m, n, _ = tiling.workgroup
    return (
        ImplicitGemm(tile_m=m, tile_n=n, tile_k=k_multiple(tiling), split_k=strategy.split_k),
    )


def mma_schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """Script and pipeline of an implicit GEMM on matrix units."""
    from conv_compiler.script import library

    tiling = strategy.tiling
    assert isinstance(tiling, GpuTiling)
    mma = next(row for row in target.mma if row.name == tiling.mma)
    m, n, k = tiling.workgroup
    subgroups_m, subgroups_n = tiling.subgroups

    def workgroup(s: Sequence) -> None:
        s.include("workgroup_tile", m, n)

    def k_loop(s: Sequence) -> None:
        packed = s.op(
            "transform.structured.pack",
            [s.match("linalg.generic")],
            '!transform.op<"linalg.generic">',
            static_packed_sizes=f"array<i64: {mma.m}, {mma.n}, {mma.k}>",
        )
        inner_tiled = s.op(
            "transform.iree.convert_to_multi_mma",
            [packed],
            "!transform.any_op",
            intrinsic_kind=f"#iree_gpu.mma_layout<{mma.name}>",
        )
        s.include("main_loop", inner_tiled, k // mma.k)

    def threads(s: Sequence) -> None:
        share = (m // mma.m // subgroups_m, n // mma.n // subgroups_n)
        s.include("distribute", *tiling.copy_a, *tiling.copy_b, *share)

    entries = {"entry_workgroup": workgroup, "entry_k_loop": k_loop, "entry_threads": threads}
    info = CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=lowering(target.backend, tuple(entries), tiling.stages),
        workgroup_size=(subgroups_m * subgroups_n * target.subgroup_size, 1, 1),
        subgroup_size=target.subgroup_size,
    )
    return Schedule(
        roles={"contraction": info}, library=library(("common", "implicit_gemm"), entries)
    )


def vector_schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """Script and pipeline of a GEMM on vector units."""
    from conv_compiler.script import library

    tiling = strategy.tiling
    assert isinstance(tiling, GpuTiling)
    m, n, k = tiling.workgroup
    piece_m, piece_n = tiling.piece
    threads = (m // piece_m) * (n // piece_n)
    groups = max(1, VECTOR_THREADS // threads)

    def parallel(s: Sequence) -> None:
        s.include("parallel_tile", min(groups, problem.g), m, n, piece_m, piece_n)

    def loop(s: Sequence) -> None:
        s.include("thread_loop", k)

    entries = {"entry_parallel": parallel, "entry_loop": loop}
    info = CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=lowering_vector(target.backend, tuple(entries)),
        workgroup_size=(_ceil(threads * min(groups, problem.g), target.subgroup_size), 1, 1),
        subgroup_size=target.subgroup_size,
    )
    return Schedule(
        roles={"contraction": info}, library=library(("common", "vector_gemm"), entries)
    )
