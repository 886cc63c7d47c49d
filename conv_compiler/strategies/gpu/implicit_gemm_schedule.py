"""The schedule of `implicit_gemm`: its sizes for the steps of `mlir/implicit_gemm.mlir`.

`mlir/gpu_matrix.pipeline` says which of IREE's passes run between the entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.model.facts import rank_facts
from conv_compiler.strategies.gpu.instruction_counts import mma_of
from conv_compiler.strategies.gpu.loop_order import INTERLEAVED_STAGES
from conv_compiler.strategies.gpu.split_k_reduction import roles_of
from conv_compiler.strategies.gpu.tail_masking import unmasked_operand
from conv_compiler.strategies.gpu.tilings import stores_result
from conv_compiler.strategies.own_schedule import LOOP_CHECK, is_checked
from conv_compiler.strategies.pipeline_file import read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import GpuTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.sequence_builder import Sequence
    from conv_compiler.targets import Mma, Target

SCRIPTS = ("common", "implicit_gemm", "matrix_instructions")
# LLVM's scheduler after register allocation moves the waits for the next iteration's operands up
# among this one's matrix instructions. The software pipeline's loads then have no time to arrive.
PIPELINE_FLAGS = {"rocm": ("--enable-post-misched=0",)}
# Where iterations are ordered, LLVM's vectorizer of straight code would pair the addresses of two
# iterations and bring the loads of the first down to those of the second. It transposes bytes well,
# so iterations of these are not ordered (`tilings.pipeline_stages`).
ORDERED_FLAGS = ("--vectorize-slp=false",)


def mma_schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """Script and pipeline of an implicit GEMM on matrix units."""
    from conv_compiler.passes import find_pass
    from conv_compiler.strategies.sequence_builder import ANY_OP, PACKED
    from conv_compiler.strategies.transform_library import library

    tiling = strategy.tiling
    assert isinstance(tiling, GpuTiling)
    mma = mma_of(target, tiling)
    m, n, k = tiling.workgroup
    subgroups_m, subgroups_n = tiling.subgroups
    stores = stores_result(problem, target, tiling, strategy.split_k)
    plain = unmasked_operand(problem, target, tiling, strategy.split_k)
    interleaved = tiling.stages == INTERLEAVED_STAGES

    def workgroup(s: Sequence) -> None:
        grid = workgroups_sequence(target, tiling)
        if stores:
            contraction, store = s.include("contraction_and_store", results=2 * ANY_OP)
            (loop,) = s.include(grid, store, m, n, results=ANY_OP)
            s.include("contraction_into_grid", contraction, loop)
        else:
            (contraction,) = s.include("contraction", results=ANY_OP)
            (loop,) = s.include(grid, contraction, m, n, results=ANY_OP)
        s.include("operands_into_grid", loop)

    def k_loop(s: Sequence) -> None:
        if stores:
            contraction, store = s.include("contraction_and_store", results=2 * ANY_OP)
        else:
            (contraction,) = s.include("contraction", results=ANY_OP)
        pixel = "q" if tiling.outside else ""
        (packed,) = s.include(pack_sequence(mma, pixel), contraction, results=PACKED)
        if stores:
            s.include(store_pack_sequence(mma), store, results=PACKED)
        (inner_tiled,) = s.include(mma_sequence(mma), packed, results=ANY_OP)
        s.include("pixel_loop" if tiling.outside else "main_loop", inner_tiled, k // mma.k)

    def threads(s: Sequence) -> None:
        copies = s.include("operand_copies", results=2 * ANY_OP)
        sides = ((mma.m, tiling.copy_a), (mma.n, tiling.copy_b))
        loops = [
            s.include(
                threads_sequence(mma, side, with_pixel=bool(tiling.outside)),
                copy,
                *piece,
                results=ANY_OP,
            )[0]
            for copy, (side, piece) in zip(copies, sides, strict=True)
        ]
        s.include("read_in_threads", *loops)
        s.include("mma_to_subgroups", m // mma.m // subgroups_m, n // mma.n // subgroups_n)
        if plain:
            s.include(f"mark_source_{plain}", may_fail=True)

    checked = is_checked(problem, tiling, strategy)
    pipeline = read_pipeline(
        "gpu_matrix",
        {
            target.backend: True,
            "lds-rows": True,
            "own-script": checked,
            "unmasked": bool(plain),
            "pipelined": tiling.stages > 1,
            "interleaved": interleaved,
        },
        stages=tiling.stages,
    )
    info = CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=pipeline.steps,
        workgroup_size=(subgroups_m * subgroups_n * target.subgroup_size, 1, 1),
        subgroup_size=target.subgroup_size,
    )
    text, replaced = library(
        SCRIPTS,
        pipeline.entries,
        {"entry_workgroup": workgroup, "entry_k_loop": k_loop, "entry_threads": threads},
        strategy.script,
        fixed=(LOOP_CHECK,) * checked,
    )
    behind = tuple(find_pass(name)() for name in pipeline.behind)
    return Schedule(
        roles=roles_of(problem, target, strategy, info),
        library=text,
        replaced=replaced,
        flags=PIPELINE_FLAGS.get(target.backend, ()) + ORDERED_FLAGS * interleaved,
        behind={"contraction": behind} if behind else {},
    )


def workgroups_sequence(target: Target, tiling: GpuTiling) -> str:
    """The sequence that makes the grid: its axes, and parts first where the L2 is divided."""
    axes = "sgmtn" if tiling.taps_outside else "sgmn"
    return f"workgroups_{axes}" + "_parts_first" * (rank_facts(target).l2_parts > 1)


def pack_sequence(mma: Mma, pixel: str = "") -> str:
    """The sequence that packs the contraction; `pixel` is "q" where that is a loop of its own."""
    return "pack_" + "x".join(str(size) for size in (mma.m, mma.n, pixel, mma.k) if size)


def store_pack_sequence(mma: Mma) -> str:
    """The sequence that packs the op which stores the sums."""
    return f"pack_{mma.m}x{mma.n}"


def mma_sequence(mma: Mma) -> str:
    """The sequence that makes instructions of the packed contraction."""
    return f"to_{mma.name.lower()}"


def threads_sequence(mma: Mma, side: int, *, with_pixel: bool) -> str:
    """The sequence that shares a copy among threads, for the operand with this `side` of the
    instruction; an extent of which IREE makes two axes bears a 2."""
    parts = ("2" if mma.unit(extent) < extent else "" for extent in (side, mma.k))
    row, k = parts
    return f"threads_{'q' * with_pixel}ri_row{row}_k{k}"
