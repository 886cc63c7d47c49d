"""GPU strategies: which tiles fit a problem on a chip, best first, and what rides on the ops."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

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
    for subgroups_m, subgroups_n in ((2, 2), (1, 4), (4, 1), (1, 2), (2, 1), (1, 1), (2, 4), (4, 2))
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
# Bytes by which the pipeline lengthens each LDS row against bank conflicts; where the longer rows
# do not fit, the compiler leaves them out without a word.
LDS_ROW_PADDING = 8
# Tilings tried at most for a problem, should the first ones spill.
MOST_CANDIDATES = 8
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
            if mma.unit(mma_rows) % elements or mma.unit(mma.k) % along_k:
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


def _vector_lanes(target: Target) -> int:
    """Lanes a SIMD's vector unit serves in a cycle: 16 of a wave64, all of a wave32."""
    return 16 if target.subgroup_size == 64 else 32


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
    lanes = units * _vector_lanes(target)
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
    row_bytes = mma.unit(mma.k) * size  # of gemm_k side by side
    padded = (row_bytes + LDS_ROW_PADDING) / row_bytes
    if (tile[0] + tile[1]) * tile[2] * size * padded > target.lds_bytes:
        return None
    copy_a = copy_piece(tile[0], tile[2], threads, mma.m, mma, problem.k, size)
    copy_b = copy_piece(tile[1], tile[2], threads, mma.n, mma, problem.c, size)
    if copy_a is None or copy_b is None:
        return None
    return GpuTiling(
        workgroup=tile, subgroups=subgroups, mma=mma.name, copy_a=copy_a, copy_b=copy_b
    )


def mma_candidates(problem: ConvProblem, target: Target) -> tuple[Strategy, ...]:
    """Implicit-GEMM tilings for every matrix instruction of the type, lowest cost first."""
    ranked: list[tuple[float, int, int, GpuTiling]] = []
    for mma in target.mma_for(problem.dtype):
        depth = max(1, K_TILE_BYTES // problem.data_type.bytes // mma.k)
        for (tile_m, tile_n), subgroups in MMA_TILES:
            for steps in (depth, depth // 2, depth // 4):
                tile = (tile_m * mma.m, tile_n * mma.n, steps * mma.k)
                if steps and (tiling := mma_tiling(problem, target, mma, tile, subgroups)):
                    rank = mma_cost(problem, target, tiling, mma)
                    ranked.append((rank, -math.prod(tile), len(ranked), tiling))
    best = sorted(ranked, key=lambda entry: entry[:3])[:MOST_CANDIDATES]
    return tuple(Strategy(name="implicit_gemm", tiling=tiling) for *_, tiling in best)


def vector_threads(problem: ConvProblem, piece: tuple[int, int]) -> tuple[int, int, int]:
    """Threads of a workgroup along (m, n, groups): near square, what is left goes to groups."""
    m_pieces, n_pieces = -(-problem.gemm_m // piece[0]), -(-problem.gemm_n // piece[1])
    side = math.isqrt(VECTOR_THREADS)
    n = min(n_pieces, side)
    m = min(m_pieces, VECTOR_THREADS // n)
    n = min(n_pieces, VECTOR_THREADS // m)
    return m, n, min(problem.g, VECTOR_THREADS // (m * n))


def vector_cost(problem: ConvProblem, target: Target, tiling: GpuTiling) -> float:
    """Modelled cycles of the whole grid, in the unit of `mma_cost`."""
    piece_m, piece_n = tiling.piece
    pieces = problem.g * (-(-problem.gemm_m // piece_m)) * (-(-problem.gemm_n // piece_n))
    per_k = (piece_m + piece_n) * COPY_CYCLES_PER_ELEMENT + piece_m * piece_n
    lanes = _vector_lanes(target) * target.simds_per_unit
    subgroups = -(-pieces * problem.gemm_k // target.subgroup_size)
    return pieces * problem.gemm_k * per_k / lanes / min(subgroups, target.compute_units)


def vector_candidates(problem: ConvProblem, target: Target) -> tuple[Strategy, ...]:
    """Vector tilings, lowest cost first, then the one with the largest piece a thread."""
    ranked = []
    for piece in VECTOR_PIECES:
        m, n, _ = vector_threads(problem, piece)
        tile = (m * piece[0], n * piece[1], VECTOR_K_STEP)
        tiling = GpuTiling(workgroup=tile, subgroups=(1, 1), piece=piece, stages=0)
        ranked.append((vector_cost(problem, target, tiling), -math.prod(piece), tiling))
    ranked.sort(key=lambda entry: entry[:2])
    return tuple(Strategy(name="vector_gemm", tiling=tiling) for *_, tiling in ranked[:2])


def cost(problem: ConvProblem, target: Target, strategy: Strategy) -> float:
    """Modelled cycles of a candidate, to compare matrix code with vector code."""
    tiling = strategy.tiling
    assert isinstance(tiling, GpuTiling)
    if not tiling.mma:
        return vector_cost(problem, target, tiling)
    mma = next(row for row in target.mma if row.name == tiling.mma)
    return mma_cost(problem, target, tiling, mma)


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
    m, n, k = tiling.workgroup
    return (
        ImplicitGemm(
            tile_m=m,
            tile_n=n,
            tile_k=k if tiling.outside else k_multiple(tiling),
            split_k=strategy.split_k,
            outside=tiling.outside,
            inside=tiling.inside,
            taps_outside=tiling.taps_outside,
        ),
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

    def pack(s: Sequence, *sizes: int) -> Any:
        return s.op(
            "transform.structured.pack",
            [s.match("linalg.generic")],
            "!transform.any_op",
            static_packed_sizes=f"array<i64: {', '.join(map(str, sizes))}>",
        )

    def to_mma(s: Sequence, op: Any) -> Any:
        return s.op(
            "transform.iree.convert_to_multi_mma",
            [op],
            "!transform.any_op",
            intrinsic_kind=f"#iree_gpu.mma_layout<{mma.name}>",
        )

    def k_loop(s: Sequence) -> None:
        if tiling.outside:
            s.include("pixel_loop", pack(s, mma.m, mma.n, 0, mma.k), k // mma.k)
            to_mma(s, s.match("linalg.generic"))
        else:
            s.include("main_loop", to_mma(s, pack(s, mma.m, mma.n, mma.k)), k // mma.k)

    def threads(s: Sequence) -> None:
        copies = s.include("operand_copies", results=2)
        outer = [1, 1, 1] if tiling.outside else [1, 1]  # (q,) r and m or n in instructions
        pieces = (
            [*outer, *mma.inner(mma.m, tiling.copy_a[0]), *mma.inner(mma.k, tiling.copy_a[1])],
            [*outer, *mma.inner(mma.n, tiling.copy_b[0]), *mma.inner(mma.k, tiling.copy_b[1])],
        )
        loops = [s.tile_to_threads(*pair) for pair in zip(copies, pieces, strict=True)]
        s.include("read_in_threads", *loops)
        s.include("share_mma", m // mma.m // subgroups_m, n // mma.n // subgroups_n)

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
    threads_m, threads_n, groups = vector_threads(problem, tiling.piece)

    def parallel(s: Sequence) -> None:
        s.include("parallel_tile", groups, m, n, piece_m, piece_n)

    def loop(s: Sequence) -> None:
        s.include("thread_loop", k)

    entries = {"entry_parallel": parallel, "entry_loop": loop}
    info = CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=lowering_vector(target.backend, tuple(entries)),
        workgroup_size=(_ceil(threads_m * threads_n * groups, target.subgroup_size), 1, 1),
        subgroup_size=target.subgroup_size,
    )
    return Schedule(
        roles={"contraction": info}, library=library(("common", "vector_gemm"), entries)
    )
