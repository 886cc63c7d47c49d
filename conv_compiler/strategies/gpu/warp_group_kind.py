# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What strategies with copies to LDS share: their order, whole parts, and the schedule of kernels
that a pass has written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.strategies.gpu.cost_constants import WARP_GROUPS
from conv_compiler.strategies.gpu.wgmma_gemm_cost import STEP_BYTES, SUM_THREADS, lds_bytes
from conv_compiler.strategies.pipeline_file import read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.strategies.warp_group_tiling import WarpGroupTiling

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

# Operands and parts are counted in 32 bits, workgroups along y and z in 16.
MOST_ELEMENTS, MOST_WORKGROUPS = 2**31, 2**16 - 1
# Registers of sums that a thread has, of 255.
MOST_SUMS = 128
# Bytes of a 16-bit type, and threads that copy a line of LDS.
HALF, LINE_THREADS = 2, 8
# The instruction of waves for a type.
_WAVE_MMA = MappingProxyType({"f16": "16x8x16_F16", "bf16": "16x8x16_BF16", "xf32": "16x8x8_TF32"})
# Sums and operands of an 8-bit instruction, by the end of its name.
_NARROW_TYPES = MappingProxyType(
    {"I8": "s32.s8.s8", "F8E4M3FN": "f32.e4m3.e4m3", "F8E5M2": "f32.e5m2.e5m2"}
)
# A tile (m, n, gemm_k), the wave groups or waves along m and n, and the stages of LDS.
Tried = tuple[tuple[int, int, int], tuple[int, int], int]
# Of the kernel that rounds channels up to whole pieces (`passes/wgmma_parts/padded_channels.py`).
PADDED_ROLE = "padded-channels"
PAD_THREADS = 256


# The instruction that the code must show, by its name in `passes/wgmma_parts/instructions.py`.
PROMISED: Mapping[str, str] = MappingProxyType(
    {
        "wgmma": "wgmma.mma_async",
        "wgmma.s8": "wgmma.mma_async",
        "wgmma.f8": "wgmma.mma_async",
        "mma.sync": "mma.sync.aligned.m16n8k16",
        "mma.sync.tf32": "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32",
    }
)


def convolution_of(wgrad: ConvProblem) -> ConvProblem:
    """The forward pass or data gradient that a weight gradient stands for."""
    assert isinstance(wgrad, EquivalentWgrad)
    return wgrad.of


def instruction_of(tiling: WarpGroupTiling) -> str:
    """The name of a tiling's instruction."""
    if tiling.by_wave_groups:
        narrow = "wgmma.f8" if tiling.adds_tiles else "wgmma.s8"
        return "wgmma" if tiling.element_bytes == HALF else narrow
    return "mma.sync" if tiling.element_bytes == HALF else "mma.sync.tf32"


def promised(tiling: WarpGroupTiling, results: int) -> str:
    """How the instruction that the code must show starts, where a group has so many results: of
    8-bit types with its columns, which merged groups have of their own, and its types."""
    start = PROMISED[instruction_of(tiling)]
    if tiling.element_bytes != 1:
        return start
    columns = tiling.workgroup[1] // tiling.warp_groups[1] if tiling.merged_groups == 1 else results
    types = _NARROW_TYPES[tiling.mma.rpartition("_")[2]]
    return f"{start}.sync.aligned.m64n{columns}k{STEP_BYTES}.{types}"


def tiling_for(
    by_wave_groups: bool, dtype: str, tried: Tried, merged_groups: int
) -> WarpGroupTiling:
    """A row of a table of tiles, for a type: its gemm_k is that of 16-bit types.

    `mma` is named as IREE names others.
    """
    (m, n, k), executors, stages = tried
    if by_wave_groups:
        row = DTYPES[dtype]
        depth, sums = STEP_BYTES // row.bytes, row.accumulator.upper()
        mma = f"WGMMA_{sums}_64x{n // executors[1]}x{depth}_{dtype.upper()}"
    else:
        mma = f"NV_MMA_SYNC_F32_{_WAVE_MMA[dtype]}"
    tiling = WarpGroupTiling(
        workgroup=(m, n, k),
        warp_groups=executors,
        stages=stages,
        mma=mma,
        merged_groups=merged_groups,
    )
    return replace(tiling, workgroup=(m, n, k * HALF // tiling.element_bytes))


def has_kernel(target: Target, tiling: WarpGroupTiling) -> bool:
    """Whether LDS holds a tiling's stages, registers its sums, and threads copy whole tiles."""
    lines = tiling.threads // LINE_THREADS
    return (
        lds_bytes(tiling) <= target.lds_bytes
        and tiling.thread_sums <= MOST_SUMS
        and tiling.workgroup[2] % lines == 0
    )


def multiply_its_types(target: Target, by_wave_groups: bool) -> tuple[str, set[str]]:
    """The rule about a problem's types, and those that a chip multiplies."""
    if by_wave_groups:
        return "wave groups of its chip multiply its types", set(target.wgmma)
    return "waves of its chip multiply its types", set(target.mma_sync)


def few_channels() -> str:
    """The rule for groups of few channels."""
    return f"its groups have {WARP_GROUPS.least_channels} channels or more"


def few_elements() -> str:
    """The rule for large tensors."""
    return f"its tensors, channels in whole pieces, have fewer than {MOST_ELEMENTS} elements"


def tiling_of(one: Strategy) -> WarpGroupTiling:
    """The numbers of a strategy."""
    assert isinstance(one.tiling, WarpGroupTiling)
    return one.tiling


def whole_parts(tiles: int, split_k: int) -> int:
    """The parts, of so many, that have products where each is whole `tiles` of gemm_k."""
    return -(-tiles // -(-tiles // split_k))


def ranked(name: str, found: Iterable[tuple[float, int, WarpGroupTiling]]) -> tuple[Strategy, ...]:
    """Each tiling with its best split-K factor, fastest first, of (seconds, parts, tiling). Where
    tails alone differ, the fastest, and the one without a tail."""
    best: dict[tuple[WarpGroupTiling, bool], Strategy] = {}
    for _, parts, tiling in sorted(found, key=lambda entry: entry[0]):
        key = tiling.kinds[0], tiling.tail is None
        best.setdefault(key, Strategy(name=name, tiling=tiling, split_k=parts))
    return tuple(best.values())[: WARP_GROUPS.most_tilings]


def schedule(target: Target, one: Strategy, *, pads: bool) -> Schedule:
    """The pipeline of the written kernels; with `pads` there are some that round channels up."""
    roles = {"contraction": written(target, tiling_of(one).threads)}
    if one.split_k > 1:
        roles["reduction"] = written(target, SUM_THREADS)
    if pads:
        roles[PADDED_ROLE] = written(target, PAD_THREADS)
    return Schedule(roles=roles)


def written(target: Target, threads: int) -> CompilationInfo:
    """The configuration of a kernel that a pass has written, of so many threads a workgroup."""
    return CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=read_pipeline("gpu_written").steps,
        workgroup_size=(threads, 1, 1),
        subgroup_size=target.subgroup_size,
    )
