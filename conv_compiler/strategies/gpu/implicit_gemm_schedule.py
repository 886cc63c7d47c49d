# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The schedule of `implicit_gemm`: its sizes for the steps of `mlir/implicit_gemm.mlir`.

`mlir/gpu_matrix.pipeline` says which of IREE's passes run between the entries.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from conv_compiler.model.facts import rank_facts
from conv_compiler.problem.canonical import data_gradient_of
from conv_compiler.strategies.gpu.instruction_counts import mma_of
from conv_compiler.strategies.gpu.lds_banks import LDS_ROW_PADDING, WHOLE_ROW_PADDING
from conv_compiler.strategies.gpu.lds_copies import transposed_padding
from conv_compiler.strategies.gpu.loop_order import along_gemm_k, is_interleaved
from conv_compiler.strategies.gpu.phase_taps import tap_table
from conv_compiler.strategies.gpu.phases_in_place import stores_phases, zero_offsets
from conv_compiler.strategies.gpu.reversed_taps import reads_reversed
from conv_compiler.strategies.gpu.split_k_reduction import roles_of
from conv_compiler.strategies.gpu.stored_sums import (
    has_lines,
    has_rest,
    has_rows_innermost,
    stores_parts_in_order,
    stores_result,
)
from conv_compiler.strategies.gpu.tail_masking import unmasked_operand, unmasked_rows
from conv_compiler.strategies.gpu.tilings import item_of, transposed_sides
from conv_compiler.strategies.own_schedule import LOOP_CHECK, is_checked
from conv_compiler.strategies.pipeline_file import behind_contraction, read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import GpuTiling, Strategy
from conv_compiler.targets.f8 import operand_bytes

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.sequence_builder import Sequence
    from conv_compiler.targets import Mma, Target

# What sequences return: handles; packed ops are known by name.
ANY_OP = ("!transform.any_op",)
PACKED = ('!transform.op<"linalg.generic">',)
SCRIPTS = ("common", "implicit_gemm", "operand_copies", "matrix_instructions")
# LLVM's scheduler after register allocation moves the waits for the next iteration's operands up
# among this one's matrix instructions. The software pipeline's loads then have no time to arrive.
PIPELINE_FLAGS = {"rocm": ("--enable-post-misched=0",), "cuda": ()}
# Where iterations are ordered, LLVM's vectorizer of straight code would pair the addresses of two
# iterations and bring the loads of the first down to those of the second. It transposes bytes well,
# so iterations of these are not ordered (`tilings.pipeline_stages`).
ORDERED_FLAGS = ("--vectorize-slp=false",)


@dataclass(frozen=True, kw_only=True)
class Entries:
    """The entries of one kernel: which steps of the script run, with which sizes.

    `stores` tells whether an op of its own stores the sums, as the result or in its order.
    `along_k` tells whether threads copy operands a and b along gemm_k, `transposed` whether lanes
    read them from LDS transposed. `unmasked` is the operand, "a" or "b", that needs no zeros behind
    the last pixel, or empty; `unmasked_rows` are those that need none behind the last row. With
    `reverses` the taps of operand a are read in reverse order. With `columns` a lane's sums are
    adjacent columns, not rows. `moves_none` tells that a workgroup stores its sums as they are, so
    that IREE drops the op.
    """

    mma: Mma
    tiling: GpuTiling
    grid: str
    stores: bool
    masks: bool
    along_k: tuple[bool, bool]
    transposed: tuple[bool, bool]
    unmasked: str
    unmasked_rows: str
    reverses: bool
    columns: bool
    moves_none: bool

    def workgroup(self, s: Sequence) -> None:
        """Tile the grid; operands and, under a store, the contraction move into it."""
        m, n, _ = self.tiling.workgroup
        ops = self._ops(s)
        if self.masks:
            ops += s.include("masked_store", results=ANY_OP)
        *inner, last = ops
        (grid,) = s.include(self.grid, last, m, n, results=ANY_OP)
        for op in reversed(inner):
            s.include("contraction_into_grid", op, grid)
        s.include("operands_into_grid", grid)

    def k_loop(self, s: Sequence) -> None:
        """Pack to the instruction's shape, make instructions, and loop over gemm_k."""
        pixel = "q" if self.tiling.outside else ""
        contraction, *store = self._ops(s, in_grid=True)
        (packed,) = s.include(pack_sequence(self.mma, pixel), contraction, results=PACKED)
        if store:
            s.include(store_pack_sequence(self.mma), *store, results=PACKED)
        for side, transposed in zip("ab", self.transposed, strict=True):
            if transposed:
                (packed,) = s.include(f"rows_innermost_{side}", packed, results=PACKED)
        (mma,) = s.include(mma_sequence(self.mma, columns=self.columns), packed, results=ANY_OP)
        k_steps = self.tiling.workgroup[2] // self.mma.k
        s.include("pixel_loop" if pixel else "main_loop", mma, k_steps)

    def threads(self, s: Sequence) -> None:
        """Share copies among threads and instructions among subgroups."""
        pixel, (m, n, _) = bool(self.tiling.outside), self.tiling.workgroup
        subgroups_m, subgroups_n = self.tiling.subgroups
        copies = s.include("operand_copies", results=2 * ANY_OP)
        sides = ((self.mma.m, self.tiling.copy_a), (self.mma.n, self.tiling.copy_b))
        loops: list[ir.Value] = []
        ways = zip(self.along_k, self.transposed, strict=True)
        for copy, (side, piece), (along_k, transposed) in zip(copies, sides, ways, strict=True):
            name = (
                transposed_threads_sequence(with_pixel=pixel)
                if transposed
                else threads_sequence(self.mma, side, with_pixel=pixel, along_k=along_k)
            )
            loops += s.include(name, copy, *piece, results=ANY_OP)
        s.include("read_in_threads", *loops)
        shares = m // self.mma.m // subgroups_m, n // self.mma.n // subgroups_n
        s.include("mma_to_subgroups", *shares)
        if self.unmasked:
            s.include(f"mark_source_{self.unmasked}", may_fail=True)
        for operand in self.unmasked_rows:
            s.include(f"mark_rows_{operand}", may_fail=True)
        if self.reverses:
            s.include("mark_reversed_a")

    def _ops(self, s: Sequence, *, in_grid: bool = False) -> list[ir.Value]:
        """The contraction, and what stores its sums, if the kernel does."""
        if self.stores and not (in_grid and self.moves_none):
            return s.include("contraction_and_store", results=2 * ANY_OP)
        return s.include("contraction", results=ANY_OP)


def mma_schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """Script and pipeline of an implicit GEMM on matrix units."""
    from conv_compiler.strategies.transform_library import library

    tiling = strategy.tiling
    assert isinstance(tiling, GpuTiling)
    direct = stores_result(problem, target, tiling, strategy.split_k)
    places = stores_phases(problem, target, tiling, strategy.split_k)
    masks = places or (direct and has_rest(problem, tiling))
    is_sum = problem.result_type == problem.accumulator_type
    columns = tiling.channels_outside and not has_rows_innermost(problem)
    entries = Entries(
        mma=mma_of(target, tiling),
        tiling=tiling,
        grid=workgroups_sequence(target, tiling),
        masks=masks,
        stores=(direct and not (masks and is_sum))
        or stores_parts_in_order(problem, target, tiling, strategy.split_k),
        along_k=copied_along_k(problem, target, tiling),
        transposed=transposed_sides(problem, target, mma_of(target, tiling), tiling),
        unmasked=unmasked_operand(problem, target, tiling, strategy.split_k),
        unmasked_rows=unmasked_rows(problem, target, tiling, strategy.split_k),
        reverses=not strategy.script and reads_reversed(problem, target, tiling),
        columns=columns and mma_of(target, tiling).has_adjacent_rows,
        moves_none=columns and (not direct or (is_sum and not problem.fused)),
    )
    interleaved, to_lds = is_interleaved(tiling), tiling.loads_to_lds
    padding = 0 if to_lds else LDS_ROW_PADDING
    if all(entries.transposed) and not to_lds:
        padding = transposed_padding(entries.mma.m * operand_bytes(problem, target))
    checked = is_checked(problem, tiling, strategy)
    table = None if strategy.script else tap_table(problem, tiling, strategy.split_k)
    pipeline = read_pipeline(
        "gpu_matrix",
        {
            target.backend: True,
            "lds-rows": padding > 0,
            "own-script": checked,
            "unmasked": bool(entries.unmasked or entries.unmasked_rows),
            "pipelined": tiling.stages > 1,
            "interleaved": interleaved,
            "rows-stored": (entries.stores or masks) and has_lines(problem, tiling),
            "along-k": any(entries.along_k),
            "joined": entries.mma.joined > 1,
            "phases": table is not None,
            "reversed": entries.reverses,
            "lds-loads": to_lds,
            "through-registers": not to_lds,
        },
        stages=tiling.stages,
        lds_padding_bits=8 * padding,
    )
    info = CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=pipeline.steps,
        workgroup_size=(math.prod(tiling.subgroups) * target.subgroup_size, 1, 1),
        subgroup_size=target.subgroup_size,
    )
    text, replaced = library(
        SCRIPTS,
        pipeline.entries,
        {
            "entry_workgroup": entries.workgroup,
            "entry_k_loop": entries.k_loop,
            "entry_threads": entries.threads,
        },
        strategy.script,
        fixed=(LOOP_CHECK,) * checked,
    )
    options: dict[str, dict[str, Any]] = {
        "load-to-lds": {"buffers": tiling.stages, "turned": not all(entries.transposed)},
        "pad-k-steps": {
            "whole_row_padding": WHOLE_ROW_PADDING * item_of(problem, target).whole_rows
        },
    }
    of = data_gradient_of(problem)
    if of and entries.reverses:
        options["read-reversed"] = {"taps": math.prod(of.filter)}
    if of and places:
        options["join-stores"] = {"zeros": zero_offsets(of)}
    options |= {name: asdict(table) for name in ("skip-taps", "shorten-loop") if table}
    return Schedule(
        roles=roles_of(problem, target, strategy, info),
        library=text,
        replaced=replaced,
        flags=PIPELINE_FLAGS[target.backend] + ORDERED_FLAGS * interleaved,
        behind=behind_contraction(pipeline, options),
    )


def workgroups_sequence(target: Target, tiling: GpuTiling) -> str:
    """The sequence that makes the grid: its axes, and parts first where the L2 is divided."""
    axes = "sgmtn" if tiling.taps_outside or tiling.channels_outside else "sgmn"
    return f"workgroups_{axes}" + "_parts_first" * (rank_facts(target).l2_parts > 1)


def pack_sequence(mma: Mma, pixel: str = "") -> str:
    """The sequence that packs the contraction; `pixel` is "q" where that is a loop of its own."""
    return "pack_" + "x".join(str(size) for size in (mma.m, mma.n, pixel, mma.k) if size)


def store_pack_sequence(mma: Mma) -> str:
    """The sequence that packs the op which stores the sums."""
    return f"pack_{mma.m}x{mma.n}"


def mma_sequence(mma: Mma, *, columns: bool = False) -> str:
    """The sequence that makes instructions of the packed contraction; with `columns` a lane has
    adjacent columns of a row."""
    return f"to_{mma.name.lower()}" + "_columns" * columns


def copied_along_k(problem: ConvProblem, target: Target, tiling: GpuTiling) -> tuple[bool, bool]:
    """Whether adjacent threads copy operands a and b along all k steps of a tile.

    They do where the operand is contiguous along gemm_k and there are several k steps, but not
    where loads write to LDS, in its order.
    """
    has_steps = tiling.workgroup[2] > mma_of(target, tiling).k and not tiling.loads_to_lds
    along_a, along_b = along_gemm_k(problem, target)
    return has_steps and along_a > 1, has_steps and along_b > 1


def threads_sequence(mma: Mma, side: int, *, with_pixel: bool, along_k: bool = False) -> str:
    """The sequence that shares a copy among threads, for the operand with this `side` of the
    instruction; an extent of which IREE makes two axes bears a 2."""
    parts = ("2" if mma.unit(extent) < extent else "" for extent in (side, mma.k))
    row, k = parts
    return f"threads_{'along_k_' * along_k}{'q' * with_pixel}ri_row{row}_k{k}"


def transposed_threads_sequence(*, with_pixel: bool) -> str:
    """The sequence that shares a copy among threads, for an operand that is read transposed."""
    return f"threads_{'q' * with_pixel}ri_k_row"
