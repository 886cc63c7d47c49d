"""GPU strategies: which tiles fit a problem on a chip, best first, and what rides on the ops."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from conv_compiler.model.facts import rank_facts
from conv_compiler.problem.batching import BUFFER_BYTES
from conv_compiler.strategies.f8_emulation import emulation_passes
from conv_compiler.strategies.gpu.cost import predict
from conv_compiler.strategies.gpu.instruction_counts import mma_of
from conv_compiler.strategies.gpu.loop_order import (
    INTERLEAVED_STAGES,
    Form,
    filled_parts,
    k_multiple,
    with_stages,
)
from conv_compiler.strategies.gpu.lowering import lowering, lowering_vector
from conv_compiler.strategies.gpu.search import full_splits, rough_cycles, split_choices
from conv_compiler.strategies.gpu.split_k_reduction import reduction_info, sums_of_tiling
from conv_compiler.strategies.gpu.tail_masking import unmasked_operand
from conv_compiler.strategies.gpu.tilings import (
    mma_tilings,
    other_copies,
    stores_result,
    vector_threads,
    vector_tilings,
)
from conv_compiler.strategies.own_schedule import loop_check
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import GpuTiling, Strategy
from conv_compiler.targets.f8 import operand_bytes

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.sequence_builder import Sequence
    from conv_compiler.targets import Target

# Tilings tried at most for a problem, should the first ones spill, but for the one that a subgroup
# copies least for: where pixels are few and odd, every element has a test, in two scalar registers
# of a wave of 64, and none of the fastest may have enough of those.
MOST_CANDIDATES = 8
# Parts the model may choose: beyond, a part's partial sums cost more than its work saves.
MOST_PARTS = 256
# LLVM's scheduler after register allocation moves the waits for the next trip's operands up among
# this trip's matrix instructions, and the software pipeline's loads have no time left to arrive.
PIPELINE_FLAGS = {"rocm": ("--enable-post-misched=0",)}
# Where trips are ordered, LLVM's vectorizer of straight code would pair the addresses of two trips
# and bring the loads of the first down to those of the second. Bytes it turns well, so trips of
# these are not (`tilings.pipeline_stages`).
ORDERED_FLAGS = ("--vectorize-slp=false",)
# Tiles of which every split is modelled: those with the best times where workgroups fill the chip.
MODELLED = 12


def mma_candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """Implicit-GEMM tilings and splits for every matrix instruction of the type, fastest first.

    `split_k` fixes the number of parts, 0 leaves it to the model; `tile` the workgroup's tile,
    which need not be one of the table. None on AMD chips for operands that buffer instructions do
    not reach.
    """
    if target.backend == "rocm" and _largest_operand(problem, target) >= BUFFER_BYTES:
        return ()
    best: dict[object, tuple[float, GpuTiling, Form]] = {}
    for mma, tiling in mma_tilings(problem, target, tile):
        # The best way to compute a tile by each instruction; of one that is asked for, every way.
        kind = tiling.mma, tiling.subgroups if tile else tiling.workgroup
        for entry in rough_cycles(problem, target, tiling, mma):
            if entry[0] < best.setdefault(kind, entry)[0]:
                best[kind] = entry
    forms = [replace(tiling, outside=form[0], inside=form[1]) for _, tiling, form in best.values()]

    def filled(tiling: GpuTiling) -> float:
        several = full_splits(problem, target, tiling, MOST_PARTS)
        if split_k:
            several = (filled_parts(problem, tiling, split_k),)
        return min(predict(problem, target, tiling, parts) for parts in several)

    forms.sort(key=filled)
    copied = [
        min(other_copies(problem, target, mma_of(target, tiling), tiling), key=filled)
        for tiling in forms[:MODELLED]
    ]
    ranked = _ranked("implicit_gemm", problem, target, copied, split_k)
    lean = _ranked("implicit_gemm", problem, target, sorted(forms, key=_copied)[:1], split_k)
    return tuple(dict.fromkeys((*ranked, *lean)))


def _copied(tiling: GpuTiling) -> float:
    """Elements of both operands that a subgroup brings to LDS a trip."""
    m, n, k = tiling.workgroup
    return (m + n) * k / math.prod(tiling.subgroups)


def _largest_operand(problem: ConvProblem, target: Target) -> int:
    """Bytes of the larger operand."""
    elements = max(math.prod(problem.input_shape), math.prod(problem.output_shape))
    return elements * operand_bytes(problem, target)


def vector_candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """Vector tilings, fastest first; those with the workgroup's `tile`, where one is given."""
    if problem.data_type.cpu_only:
        return ()
    fitting = [tiling for tiling in vector_tilings(problem) if tile in ((), tiling.workgroup)]
    return _ranked("vector_gemm", problem, target, fitting, split_k)[:2]


def _ranked(
    name: str, problem: ConvProblem, target: Target, tilings: list[GpuTiling], split_k: int
) -> tuple[Strategy, ...]:
    """The best form and split of each tile, fastest first; of equals the larger, then wider loads.

    Forms of one tile need about as many registers: where one has too few, so have the others.
    """
    timed: list[tuple[float, int, int, int, int, GpuTiling]] = []
    for tiling in tilings:
        several = splits(problem, target, tiling)
        if split_k:
            several = [filled_parts(problem, tiling, split_k)]
        seconds, parts = min(
            (predict(problem, target, with_stages(problem, tiling, n), n), n) for n in several
        )
        tiling = with_stages(problem, tiling, parts)
        read = tiling.copy_a[0] + tiling.copy_b[0]
        timed.append((seconds, -math.prod(tiling.workgroup), -read, len(timed), parts, tiling))
    best: dict[tuple[object, ...], Strategy] = {}
    for *_, parts, tiling in sorted(timed, key=lambda entry: entry[:4]):
        tile = (tiling.mma, tiling.workgroup, tiling.subgroups, tiling.piece)
        best.setdefault(tile, Strategy(name=name, tiling=tiling, split_k=parts))
    return tuple(best.values())[:MOST_CANDIDATES]


def splits(problem: ConvProblem, target: Target, tiling: GpuTiling) -> list[int]:
    """Numbers of parts worth trying."""
    return split_choices(problem, target, tiling, MOST_PARTS)


def passes(problem: ConvProblem, target: Target, strategy: Strategy) -> tuple[Pass, ...]:
    """The payload as a batched GEMM on whole tiles."""
    from conv_compiler.passes.implicit_gemm import ImplicitGemm

    tiling = strategy.tiling
    assert isinstance(tiling, GpuTiling)
    m, n, k = tiling.workgroup
    return (
        *emulation_passes(problem, target, tiling.mma),
        ImplicitGemm(
            tile_m=m,
            tile_n=n,
            tile_k=k if tiling.outside else k_multiple(k),
            split_k=strategy.split_k,
            outside=tiling.outside,
            inside=tiling.inside,
            taps_outside=tiling.taps_outside,
            taps_in_rows=tiling.taps_in_rows,
            merged_groups=tiling.merged_groups,
            stores_result=stores_result(problem, target, tiling, strategy.split_k),
        ),
    )


def mma_schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """Script and pipeline of an implicit GEMM on matrix units."""
    from conv_compiler.passes.interleave import Interleave
    from conv_compiler.strategies.transform_library import library

    tiling = strategy.tiling
    assert isinstance(tiling, GpuTiling)
    mma = mma_of(target, tiling)
    m, n, k = tiling.workgroup
    subgroups_m, subgroups_n = tiling.subgroups

    stores = stores_result(problem, target, tiling, strategy.split_k)
    plain = unmasked_operand(problem, target, tiling, strategy.split_k)

    def workgroup(s: Sequence) -> None:
        # s, g, m, (t,) n, (q,) r
        tap, pixel = [1] * tiling.taps_outside, [0] * bool(tiling.outside)
        sizes = [1, 1, m, *tap, n]
        first_fastest = rank_facts(target).l2_parts > 1
        if stores:
            contraction, store = s.split(s.match("linalg.generic"), 2)
            grid = s.tile_to_workgroups(store, sizes, first_fastest=first_fastest)
            s.include("contraction_into_grid", contraction, grid)
        else:
            sizes += [*pixel, 0]
            contraction = s.match("linalg.generic")
            grid = s.tile_to_workgroups(contraction, sizes, first_fastest=first_fastest)
        s.include("workgroup_tile", grid)

    def k_loop(s: Sequence) -> None:
        pixel = [0] * bool(tiling.outside)  # q stays as it is

        def pack(op: ir.Value, *sizes: int) -> ir.Value:
            return s.op(
                "transform.structured.pack",
                [op],
                '!transform.op<"linalg.generic">',
                static_packed_sizes=f"array<i64: {', '.join(map(str, sizes))}>",
            )

        contraction, *store = s.split(s.match("linalg.generic"), 1 + stores)
        packed = pack(contraction, mma.m, mma.n, *pixel, mma.k)
        for op in store:  # as the sums are packed, so that it takes them as they are
            pack(op, mma.m, mma.n)
        inner_tiled = s.op(
            "transform.iree.convert_to_multi_mma",
            [packed],
            "!transform.any_op",
            intrinsic_kind=f"#iree_gpu.mma_layout<{mma.name}>",
        )
        s.include("pixel_loop" if tiling.outside else "main_loop", inner_tiled, k // mma.k)

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
        if plain:
            s.include("mark_source", s.operand(plain), may_fail=True)

    def reads(s: Sequence) -> None:
        # Masks that are made otherwise stay: right, if slower.
        s.include("keep_last_pixel", may_fail=True)

    def two_trips(s: Sequence) -> None:
        s.include("unroll_trips")

    check = loop_check(problem, tiling, strategy)
    entries = ("entry_workgroup", "entry_k_loop", *check, "entry_threads")
    late = {"entry_reads": reads} if plain else {}
    ordered = {"entry_trips": two_trips} if tiling.stages == INTERLEAVED_STAGES else {}
    pipeline = lowering(
        target.backend, entries, tiling.stages, reads=tuple(late), pipelined=tuple(ordered)
    )
    info = CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=pipeline,
        workgroup_size=(subgroups_m * subgroups_n * target.subgroup_size, 1, 1),
        subgroup_size=target.subgroup_size,
    )
    written = {"entry_workgroup": workgroup, "entry_k_loop": k_loop, "entry_threads": threads}
    # The check last, so that a schedule given back as it is printed is printed the same.
    text, replaced = library(
        ("common", "implicit_gemm"),
        written | late | ordered | check,
        strategy.script,
        fixed=tuple(check),
    )
    return Schedule(
        roles=_roles(problem, target, strategy, info),
        library=text,
        replaced=replaced,
        flags=PIPELINE_FLAGS.get(target.backend, ()) + ORDERED_FLAGS * bool(ordered),
        behind={"contraction": (Interleave(),)} if ordered else {},
    )


def vector_schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """Script and pipeline of a GEMM on vector units."""
    from conv_compiler.strategies.transform_library import library

    tiling = strategy.tiling
    assert isinstance(tiling, GpuTiling)
    m, n, k = tiling.workgroup
    piece_m, piece_n = tiling.piece
    threads_m, threads_n, groups = vector_threads(problem, tiling.piece)
    waves = -(-threads_m * threads_n * groups // target.subgroup_size)

    def parallel(s: Sequence) -> None:
        s.include("parallel_tile", groups, m, n, piece_m, piece_n)

    def loop(s: Sequence) -> None:
        s.include("thread_loop", k)

    check = loop_check(problem, tiling, strategy)
    entries = {"entry_parallel": parallel, "entry_loop": loop, **check}
    info = CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=lowering_vector(target.backend, tuple(entries)),
        workgroup_size=(waves * target.subgroup_size, 1, 1),
        subgroup_size=target.subgroup_size,
    )
    text, replaced = library(
        ("common", "vector_gemm"), entries, strategy.script, fixed=tuple(check)
    )
    return Schedule(roles=_roles(problem, target, strategy, info), library=text, replaced=replaced)


def _roles(
    problem: ConvProblem, target: Target, strategy: Strategy, main: CompilationInfo
) -> dict[str, CompilationInfo]:
    if target.backend != "rocm" or strategy.split_k == 1:
        return {"contraction": main}
    assert isinstance(strategy.tiling, GpuTiling)
    sums = sums_of_tiling(problem, target, strategy.tiling, strategy.split_k)
    reduction = reduction_info(problem, target, strategy.split_k, sums)
    return {"contraction": main, "reduction": reduction}
