"""The schedule of `implicit_gemm`: the script that tiles it, and the pipeline around the script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.model.facts import rank_facts
from conv_compiler.strategies.gpu.instruction_counts import mma_of
from conv_compiler.strategies.gpu.loop_order import (
    INTERLEAVED_STAGES,
)
from conv_compiler.strategies.gpu.lowering import lowering
from conv_compiler.strategies.gpu.split_k_reduction import roles_of
from conv_compiler.strategies.gpu.tail_masking import unmasked_operand
from conv_compiler.strategies.gpu.tilings import (
    stores_result,
)
from conv_compiler.strategies.own_schedule import loop_check
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import GpuTiling, Strategy

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.sequence_builder import Sequence
    from conv_compiler.targets import Target

# LLVM's scheduler after register allocation moves the waits for the next trip's operands up among
# this trip's matrix instructions, and the software pipeline's loads have no time left to arrive.
PIPELINE_FLAGS = {"rocm": ("--enable-post-misched=0",), "cuda": ()}
# Where trips are ordered, LLVM's vectorizer of straight code would pair the addresses of two trips
# and bring the loads of the first down to those of the second. Bytes it turns well, so trips of
# these are not (`tilings.pipeline_stages`).
ORDERED_FLAGS = ("--vectorize-slp=false",)


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
        roles=roles_of(problem, target, strategy, info),
        library=text,
        replaced=replaced,
        flags=PIPELINE_FLAGS[target.backend] + ORDERED_FLAGS * bool(ordered),
        behind={"contraction": (Interleave(),)} if ordered else {},
    )
