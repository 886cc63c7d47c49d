# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The constants of the CPU cost models, with unit, source and tool.

A cycle is the time in which a core multiplies and adds one vector, so a machine's clock is not
needed. What the ISA fixes is in `targets/host.py`, and what a pass and a cost model share in
`targets/limits.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from conv_compiler.errors import TuningStoreRefused
from conv_compiler.model.provenance import CHOICES, CPU_COSTS, Kind, Source
from conv_compiler.storage.fitted_costs import NOT_FITTED, FittedCosts
from conv_compiler.targets.host import TILE_INSTRUCTIONS


@dataclass(frozen=True, kw_only=True)
class KernelCosts:
    """What the parts of a kernel take that copies its operands (`work_distribution.py`).

    Cycles are those of one core.
    """

    source: Source
    # What a kernel's copies may take of a thread's stack.
    stack_bytes: int
    # To multiply and add a vector, or as many products of an AMX tile.
    multiply_cycles: float
    # To copy a row that lies in one piece: to find it and to wait for it. For each vector of the
    # row. Both count for each image of which an element holds data.
    row_cycles: float
    vector_cycles: float
    # For each vector of the copy, to read its data from beyond the caches.
    line_cycles: float
    # Once a chunk: to load and store a vector of sums, from the second cache, and from beyond it.
    sums_cycles: float
    far_sums_cycles: float
    # Once a chunk: to start a register tile. Once an innermost loop of it.
    tile_cycles: float
    loop_cycles: float
    # For each vector of operands that are packed first: to write it, and to read it for a workgroup
    # from beyond the second cache. Both chunks of a workgroup take a share of that cache.
    write_cycles: float
    read_cycles: float

    def with_cycles(self, cycles: Mapping[str, float]) -> KernelCosts:
        """The same with other cycles, by the name of the constant.

        Raises TuningStoreRefused for a name that is no constant.
        """
        if unknown := set(cycles) - {one.name for one in fields(self)}:
            raise TuningStoreRefused(
                f"fitted costs {', '.join(sorted(unknown))}: no constants of KernelCosts; fit them "
                "again by conv-compiler tune --fit-cpu"
            )
        return replace(self, **cycles)  # type: ignore[arg-type]


VECTOR_KERNELS = KernelCosts(
    source=Source(
        kind=Kind.FITTED,
        text="kernels of ResNet-50, ResNeXt-50 and RetinaNet on one core of Zen 4, bf16 and f32 "
        "(docs/cpu.md, docs/design.md)",
        tool=CPU_COSTS,
    ),
    stack_bytes=96 * 2**10,
    multiply_cycles=1,
    row_cycles=8,
    vector_cycles=4,
    line_cycles=0,
    sums_cycles=4,
    far_sums_cycles=8,
    tile_cycles=20,
    loop_cycles=5,
    write_cycles=12,
    read_cycles=1.5,
)
AMX_KERNELS = KernelCosts(
    source=Source(
        kind=Kind.FITTED,
        text="kernels of the same problems on Emerald Rapids, 2.96 GHz (docs/design.md)",
        tool=f"{CPU_COSTS} --amx",
    ),
    stack_bytes=96 * 2**10,
    multiply_cycles=1 / 16,
    row_cycles=4,
    vector_cycles=3,
    line_cycles=9,
    sums_cycles=4,
    far_sums_cycles=8,
    tile_cycles=40,
    loop_cycles=0,
    write_cycles=12,
    read_cycles=8,
)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What memory beyond a core's caches costs."""

    source: ClassVar[Source] = Source(
        kind=Kind.MEASURED,
        text="cores of Zen 4: 16 and 64 MiB in pieces at 15 and 10 GB/s, one line after another at "
        "36 and 25; r56 (13 MB, f32) on Emerald Rapids took 9 % longer by pieces of 64 bytes. "
        "kept_bytes: glibc, malloc/malloc.c, DEFAULT_MMAP_THRESHOLD_MAX",
    )

    # To move a vector of partial sums, and where all of them are more than caches hold.
    move_cycles: float = 8
    far_move_cycles: float = 20
    near_partials_bytes: int = 4 * 2**20
    # What a chunk's copies that were packed first may take of the second cache.
    packed_bytes: int = 512 * 2**10
    # To start a kernel that packs.
    start_cycles: float = 15_000
    page_bytes: int = 4096
    # More sums of a workgroup are far, in vectors. With the copies they leave a second cache of
    # 512 KiB, and the 72 pages that a core of Zen 4 finds at once.
    near_sums_bytes: int = 256 * 2**10
    # More memory in one piece is given back after each call; each page must then be found again.
    kept_bytes: int = 32 * 2**20
    fault_cycles: float = 2000
    # For each vector of an operand that is read where it lies, instead of copied.
    direct_cycles: float = 2
    # (operands of more bytes than, cycles more a line) for what is read in pieces of less than a
    # page, because other workgroups read what is between.
    far_line_cycles: tuple[tuple[int, float], ...] = ((16 * 2**20, 10), (2 * 2**20, 5), (0, 0))


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """What it costs and saves that neighbouring workgroups go to several cores.

    They read the same operands. Handed out one by one, multiplying takes `apart_share` longer, but
    each byte of the operands saves `once_cycles`, for it then comes from memory once. Kernels that
    multiply more than twice a byte gain by runs.
    """

    source: ClassVar[Source] = Source(kind=Kind.MEASURED, text="two cores of Zen 4 (docs/cpu.md)")

    apart_share: float = 0.017
    once_cycles: float = 0.036
    # From so many a worker on, IREE's task system hands workgroups out by so many
    # (runtime/src/iree/task/tuning.h), and one by one before.
    run_workgroups: int = 8


@dataclass(frozen=True, kw_only=True)
class RegisterTiles:
    """What a core does in a cycle, and which register tiles there are."""

    source: ClassVar[Source] = Source(
        kind=Kind.DOCUMENT,
        text="vendors' optimization guides for Zen 4 and Intel's server cores; some broadcasts "
        "come as shuffles, hence one a cycle",
    )

    # Started in a cycle: multiply-adds, loads, broadcasts of one element to all lanes.
    started_fma_instructions: float = 2
    started_load_instructions: float = 2
    started_broadcast_instructions: float = 1
    # Until a sum can be added to again.
    fma_latency_cycles: float = 4
    # For a line from the second cache, where a step finds new pixels.
    line_cycles: float = 2
    # Rows of a register tile that are tried; the longest filter that is a tile's.
    tried_rows: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24)
    most_taps: int = 8
    # Both operands of one iteration of the cache loop stay in a core's second cache. With fewer
    # pixels than the least, sums are loaded and stored too often.
    cache_bytes: int = 256 * 1024
    least_pixels: int = 64


@dataclass(frozen=True, kw_only=True)
class Copying:
    """How operands are made ready that do not lie as a register tile needs them.

    Cycles are those of an element, beyond what another element takes.
    """

    source: Source
    # Elements in the lanes that a tile may have.
    lane_elements: tuple[int, ...]
    # Where a tile does not divide the operand's axes; where its lanes are not adjacent in memory;
    # where they are not, and what lies between them fills no vectors.
    padded_cycles: float
    transposed_cycles: float
    short_cycles: float


# Before the kernel; 48 lanes are single elements to IREE's vectorizer.
IN_MEMORY = Copying(
    source=Source(
        kind=Kind.FITTED, text="the order of tiles of ResNet-50's layers on Zen 4", tool=CHOICES
    ),
    lane_elements=(1, 2, 4, 8, 16, 32, 64),
    padded_cycles=2,
    transposed_cycles=2,
    short_cycles=2,
)
# By workgroups of a kernel of ours, which has 48 lanes in three registers.
BY_WORKGROUPS = Copying(
    source=Source(
        kind=Kind.FITTED, text="the order of tiles of ResNet-50's layers on Zen 4", tool=CHOICES
    ),
    lane_elements=(4, 8, 16, 32, 48, 64),
    padded_cycles=1,
    transposed_cycles=0.125,
    short_cycles=2,
)


@dataclass(frozen=True, kw_only=True)
class Moves:
    """What the kernels of `cpu_lin` and `cpu_grouped` move, in elements moved once."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED, text="layers of ResNet-50 on two cores of Zen 4", tool=CHOICES
    )

    # A piece of a row counts 1 + short_row_bytes / its length.
    short_row_bytes: int = 64
    # A partial sum is moved so often.
    partial_times: float = 3


@dataclass(frozen=True, kw_only=True)
class DistributionSearch:
    """Which distributions of work are looked at."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN,
        text="the time of a choice; layers of ResNet-50 have up to 320 distributions, and sizes of "
        "very many divisors would take minutes",
    )

    # Workgroups wanted for each core, at least.
    core_workgroups: int = 4
    # How many times more than wanted are looked at; and again as many times more where the copies
    # of none fit.
    finer_times: int = 16
    most_distributions: int = 512
    # Into how many parts the innermost summed loop may be cut, and for how many of the best
    # distributions that is tried.
    recut_parts: tuple[int, ...] = (2, 4, 8)
    most_recut_distributions: int = 12


@dataclass(frozen=True, kw_only=True)
class Lanes:
    """Which loops fill the lanes of vectors or AMX tiles."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="grouped layers on Zen 4 and Emerald Rapids (docs/cpu.md)",
        tool=CHOICES,
    )

    # Channels of one group from which they fill vectors, and AMX tiles, well enough.
    least_vector_channels: int = 4
    least_amx_channels: int = 8
    # Output channels are the lanes of AMX tiles where so many times fewer elements are transposed.
    amx_transposed_times: float = 2


@dataclass(frozen=True, kw_only=True)
class AmxInstructions:
    """Cycles of a core's clock of AMX instructions."""

    source: ClassVar[Source] = Source(
        kind=Kind.DOCUMENT, text="Intel Optimization Reference Manual, chapter 20"
    )

    # Between two products, between two loads, and until a sum can be added to again.
    product_cycles: float = 16
    load_cycles: float = 8
    sum_latency_cycles: float = 52
    # To write a row of a tile of sums: it goes by way of the stack.
    kept_row_cycles: float = 4
    # Result channels that one register tile holds, whose last lanes may be empty.
    most_tail_channels: int = 96
    # Rows of a tile of weights that are worth an instruction.
    least_depth_rows: int = 8


@dataclass(frozen=True, kw_only=True)
class SplitSearch:
    """Which split-K factors are tried for split_k="auto"."""

    source: ClassVar[Source] = Source(kind=Kind.CHOSEN, text="the time of a choice")

    tried_parts: tuple[int, ...] = (2, 4, 8, 16)
    # Products that a part should have.
    least_products: int = 256
    # Images or rows are gathered for an AMX tile where it is so many times fuller.
    gathered_times: float = 1.25


MEMORY = Memory()
NEIGHBOURS = Neighbours()
REGISTER_TILES = RegisterTiles()
MOVES = Moves()
DISTRIBUTIONS = DistributionSearch()
LANES = Lanes()


@dataclass(frozen=True, kw_only=True)
class DirectKernels:
    """When a direct kernel (`passes/direct_kernel.py`) is offered, and what its work costs.

    Cycles are those of one core.
    """

    source: ClassVar[Source] = Source(
        kind=Kind.MEASURED,
        text="forward passes and data gradients of ResNet-50, MobileNetV2 and EfficientNet-B0 "
        "beside other kernels, two cores of Zen 3; lost lines, products in a row and lines of wide "
        "registers on Zen 4 (docs/cpu.md)",
    )

    # Result channels of a group that fill lanes well enough. Of fewer than so many the source
    # channels may fill them.
    least_lane_channels: int = 4
    most_summed_channels: int = 7
    # Taps of a filter, and those along a row, each of which is code of its own; phases of a data
    # gradient's stride, whose taps are too.
    most_taps: int = 1024
    most_row_taps: int = 32
    most_phase_pixels: int = 64
    # Products for each element of source and result that is moved where channels lie first, of
    # those that are multiplied in pairs, and where these are pairs of a row of taps. Of several
    # groups: other kernels move none of these.
    least_moved_products: int = 64
    least_moved_pair_products: int = 16
    least_moved_window_products: int = 8
    least_moved_group_products: int = 256
    # Pixels of a row that are of no image, and lengths of such rows that are tried of vectors.
    most_row_pixels: int = 256
    tried_row_sizes: int = 3
    # Vectors of a register tile whose last one is not full.
    most_tail_registers: int = 5
    # Images, the rows of its register tiles, from which `cpu_packed` fills these.
    least_tile_rows: int = 4
    # Registers that sums may have where products of several taps stand in a row: LLVM shares the
    # source elements of adjacent taps, and keeps these in registers too.
    written_out_share: float = 0.75
    # Registers beside sums and shared elements where these are pairs of a row of taps. Products of
    # pairs, and loads, that a cycle starts there.
    window_registers: int = 2
    started_window_instructions: float = 1
    # What a line costs that the first cache has lost.
    missed_line_cycles: float = 1
    # What a workgroup may have of the second cache. More source leaves it before the next block of
    # channels reads it again, line by line. Weights stay there from register tile to register tile.
    second_cache_share: float = 0.5
    again_line_cycles: float = 3
    # To begin a register tile, a row of its taps, and a vector of those.
    tile_cycles: float = 12
    row_cycles: float = 6
    vector_cycles: float = 2
    # What is not hidden behind the slowest of products, loads and lines of weights from the second
    # cache, as a share of the others.
    shown_share: float = 0.1
    # For a line of packed weights that a workgroup meets first, and for one of source and result.
    # Where these are more than so many bytes: for lines of single pixels, which are read one after
    # another, and for lines of several pixels at a time.
    weight_line_cycles: float = 4
    near_line_cycles: float = 8
    near_data_bytes: int = 16 * 2**20
    far_line_cycles: float = 12
    apart_line_cycles: float = 32
    # The last one of CPUs with registers of 64 bytes: there several pixels are no slower.
    wide_apart_line_cycles: float = 12
    # Workgroups a core beyond which more of them even nothing out.
    most_core_workgroups: int = 4096
    # Distributions that are compared.
    tried_distributions: int = 256
    # To hand out a workgroup. How much longer a distribution may take that has more pieces.
    workgroup_cycles: float = 500
    pieces_share: float = 0.02


@dataclass(frozen=True, kw_only=True)
class PointwiseKernels:
    """What the work of 1x1 convolutions with pixels in the lanes costs, in cycles of one core."""

    source: ClassVar[Source] = Source(
        kind=Kind.MEASURED,
        text="1x1 layers of ResNet-50, MobileNetV2 and EfficientNet-B0, one core of Zen 4 "
        "(docs/cpu.md)",
    )

    # Vectors of pixels of a register tile, and the share of their lanes that have a pixel of their
    # own where other kernels are no faster.
    most_tile_registers: int = 6
    least_full_share: float = 0.85
    # Of numbers of channels so many of the largest are tried, and as many distributions.
    tried_sizes: int = 3
    tried_distributions: int = 48
    # To write a vector to the stack, and to store one of sums.
    copy_cycles: float = 1
    store_cycles: float = 2
    # For a line of the source that is read again for a block of result channels.
    again_line_cycles: float = 0.25


@dataclass(frozen=True, kw_only=True)
class PlaneKernels:
    """What the work of convolutions with the pixels of a row in the lanes costs, in cycles of one
    core."""

    source: ClassVar[Source] = Source(
        kind=Kind.MEASURED,
        text="depthwise layers of MobileNet and EfficientNet-B0, groups of ResNeXt-50 and of "
        "up to 64 channels, one core of Zen 4 (docs/cpu.md)",
    )

    # Taps, each of which is code of its own.
    most_taps: int = 49
    # The shortest vector, of rows that fill no register.
    least_lane_pixels: int = 4
    # Rows of a register tile, and vectors beside one another.
    tried_rows: tuple[int, ...] = (1, 2, 4, 8)
    tried_tile_registers: tuple[int, ...] = (1, 2, 4)
    # Rows of a tile of several result channels, and how many of the largest blocks of these.
    tried_block_rows: tuple[int, ...] = (1, 2, 3, 4, 5, 7)
    tried_sizes: int = 3
    # Phases of a stride along the columns: each pixel of a copied row is shuffled so often.
    most_stride_pixels: int = 8
    # Source channels of a group, and the share of the lanes that have a pixel of their own, where
    # other kernels are no faster. Of few source channels fewer lanes do.
    most_source_channels: int = 32
    least_full_share: float = 0.85
    few_source_channels: int = 16
    least_few_full_share: float = 0.75
    # Products for each element of source and result, from which on it is faster to move odd
    # channels and multiply pairs of a row of taps.
    least_moved_products: int = 32
    # To copy a vector of the source to the stack, to begin a plane, and to begin to write a row of
    # a channel of a tile of several channels.
    copy_cycles: float = 1.5
    plane_cycles: float = 60
    written_row_cycles: float = 3


AMX = AmxInstructions()
PLANES = PlaneKernels()
POINTWISE = PointwiseKernels()
DIRECT = DirectKernels()
SPLITS = SplitSearch()

GROUPS = (
    VECTOR_KERNELS,
    AMX_KERNELS,
    POINTWISE,
    PLANES,
    MEMORY,
    NEIGHBOURS,
    REGISTER_TILES,
    IN_MEMORY,
    BY_WORKGROUPS,
    MOVES,
    DISTRIBUTIONS,
    LANES,
    AMX,
    SPLITS,
    DIRECT,
)


def costs_of(instruction: str, fitted: FittedCosts = NOT_FITTED) -> KernelCosts:
    """The costs of a kernel that multiplies by an instruction, of AMX tiles or of vectors, with
    what was fitted on the host."""
    if instruction in TILE_INSTRUCTIONS:
        return AMX_KERNELS.with_cycles(dict(fitted.tiles))
    return VECTOR_KERNELS.with_cycles(dict(fitted.vectors))
