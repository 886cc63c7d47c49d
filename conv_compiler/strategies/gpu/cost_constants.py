# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The constants of the GPU cost models: one group for each model, with unit, source and tool.

A value that the ISA or a pass fixes is not here but beside the code that it belongs to. What the
hardware model knows of a chip is in `model/facts.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from conv_compiler.model.provenance import (
    CHOICES,
    DEPTHWISE_TIMES,
    GPU_COUNTS,
    GRADIENT_WINDOW_TIMES,
    WARP_GROUP_TIMES,
    WINDOW_TIMES,
    Kind,
    Source,
)


@dataclass(frozen=True, kw_only=True)
class LoopInstructions:
    """Instructions of a wave in one iteration of the main loop, but for those that follow exactly.

    A row is a row of gemm_k that a thread reads, or one of m or n where it reads along gemm_k. The
    count of vector instructions is linear in these constants (`loop_terms.py`).
    """

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="machine code for gfx942, f16, 128x128x32 with four waves (docs/gpu.md)",
        tool=GPU_COUNTS,
    )

    # To find an address, for each row: of the operand that is one pixel a row (plain), and of the
    # one whose windows move (window). All summed loops inside, with a filter and without.
    flat_plain_row_instructions: float = 5
    flat_window_row_instructions: float = 40
    pointwise_plain_row_instructions: float = 5
    pointwise_window_row_instructions: float = 5
    # Rows of pixels outside; all pixels outside and the batch inside.
    rows_plain_row_instructions: float = 7
    rows_window_row_instructions: float = 12
    batch_plain_row_instructions: float = 2
    batch_window_row_instructions: float = 2
    # For each further element of a row that is loaded by itself: its test and its packing.
    scalar_load_instructions: float = 4
    # On CDNA, for each row where parts have unequal numbers of pixels: without a window, and with
    # one, whose test is there already.
    tail_row_instructions: float = 3
    tail_window_row_instructions: float = 1
    # On CDNA, where the lanes of a tile have different taps: taps in the columns (and one more for
    # each row of the image), and taps in the rows.
    column_taps_instructions: float = 24
    column_taps_row_instructions: float = 1
    row_taps_instructions: float = 14
    # On RDNA, for each row of an image that lies along gemm_k, where its rows have several places.
    # By hand: the code of 3x3 layers, `fwd`, 16 tiles on gfx1100 and gfx1201; the tool fits none.
    place_row_instructions: float = 10
    # The same on CDNA. By hand: the code of 3x3 layers, `bwd_data`, 5 tiles on gfx950, has 5 to 11.
    cdna_place_row_instructions: float = 6
    # Of an iteration besides.
    iteration_valu_instructions: float = 8
    iteration_salu_instructions: float = 30
    # What an interleaved loop saves of these with the batch inside and groups not merged: the loop
    # is unrolled by two.
    interleaved_saved_instructions: float = 6
    interleaved_saved_row_instructions: float = 1


@dataclass(frozen=True, kw_only=True)
class OutsideInstructions:
    """Vector instructions of a wave outside its main loop."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="56 kernels of five layers with windows, gfx942, f16, not interleaved (docs/gpu.md)",
        tool=GPU_COUNTS,
    )

    start_instructions: float = 80
    stored_sum_instructions: float = 3.5
    # For each sum where a kernel is not held to code: interleaved ones, 1x1 layers, RDNA, NVIDIA.
    rough_stored_sum_instructions: float = 2


@dataclass(frozen=True, kw_only=True)
class LoadDistance:
    """How far ahead an interleaved loop loads.

    From the second half of an iteration to the transposition of what was loaded, at the start of
    the next but one.
    """

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="machine code for gfx942, interleaved: 1.2 to 1.4 (docs/gpu.md)",
        tool=GPU_COUNTS,
    )

    interleaved_iterations: float = 1.4


@dataclass(frozen=True, kw_only=True)
class MainLoopRegisters:
    """Registers of a lane of the matrix kernel beyond sums, fragments and loads in flight."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="machine code for gfx942 and gfx950: where 248 were predicted, 264 were used",
        tool=GPU_COUNTS,
    )

    # Addresses and other values that live through the main loop.
    other_registers: int = 40
    # More of them in an interleaved loop that comes this near to half of all registers.
    tight_registers: int = 16
    half_file_registers: int = 256


@dataclass(frozen=True, kw_only=True)
class RankSlack:
    """The share of its units' time that is added to a kernel's rank.

    The model underestimates small tiles that wait for memory by about that much.
    """

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="76 layers of RetinaNet, ResNet-50 and ResNeXt-50, f16, gfx942, modelled from code "
        "(docs/gpu.md)",
        tool=CHOICES,
    )

    serial_share: float = 0.25
    interleaved_share: float = 0.1
    # Time over prediction of kernels that read single elements along gemm_k, with those that put
    # their results in place. A first look gave 1.8 to 6.0 for 9 layers on gfx942, and 0.7 to 0.96
    # for 8 on gfx1100.
    cdna_single_element_reads_share: float = 3.5
    single_element_reads_share: float = 0.75
    # The same of matrix kernels of waves on a chip that has wave groups: 1.4 to 6.1 for 8 kernels
    # on an H200 (docs/model.md).
    beside_wave_groups_share: float = 3.0
    # Of an L2's peak what is measured, where the peak itself is not known (gfx1100). By hand: of
    # ResNet-50's layers 0.65 makes `bwd_data` slower, and 1 makes `fwd` slower.
    measured_l2_share: float = 0.8


@dataclass(frozen=True, kw_only=True)
class TieBreak:
    """When two tilings count as equally fast, and when a tiling has few vector instructions."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="44 layers with windows, and 31 whose loop has no order, f16, gfx90a, gfx942 and "
        "gfx950: predicted against modelled from code (docs/gpu.md, docs/benchmarks.md)",
        tool=CHOICES,
    )

    # Predictions of tilings in as many parts are off by this share against each other.
    alike_share: float = 1 / 16
    # Of tilings in any number of parts: one part more is sure to cost memory traffic.
    equal_share: float = 0.01
    # Of memory's time, that of an L2 that is about as busy (RDNA). By hand: ResNet-50's layer of
    # 128 to 512 channels, whose fastest tile reads 0.8 of the lines of the first.
    busy_l2_share: float = 0.75
    # Vector instructions for each 16x16x16 of matrix work below which the matrix unit, which takes
    # four times as long for it, is sure to bind.
    low_valu_instructions: float = 2.0
    # Iterations below which a loop ends before that matters.
    least_iterations: int = 5


@dataclass(frozen=True, kw_only=True)
class LoadGain:
    """When a kernel that is faster under load is taken before the fastest at the boost clock."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN,
        text="by predicted times of 1790 kernels of 78 layers, f16, gfx942, gfx950 and gfx1100, "
        "against those modelled from code with a first look (docs/benchmarks.md)",
    )

    # By how much longer it may take at the boost clock, and by how much longer the other one must
    # take under load.
    slower_share: float = 0.04
    faster_share: float = 0.3


@dataclass(frozen=True, kw_only=True)
class SplitSearch:
    """Which split-K factors are modelled."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN,
        text="the first look loses 0.3 % on 76 layers, f16, gfx942, against all forms with all "
        "splits (docs/gpu.md)",
    )

    # Workgroups for each unit that hide one another's waits.
    full_workgroups: int = 3
    # Workgroups for each unit that are tried; and those that are tried of interleaved loops too:
    # three share a unit as a rule, and full rounds of three are best.
    tried_workgroups: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    interleaved_tried_workgroups: tuple[int, ...] = (9,)
    # The largest split-K factor the model may choose: beyond, the partial sums of a part cost more
    # than its work saves.
    most_parts: int = 256


@dataclass(frozen=True, kw_only=True)
class TilingSearch:
    """How many tilings are looked at."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN, text="the time of a choice: 0.02 to 0.1 s a problem"
    )

    # Tiles of which every split is modelled: those with the best rough times.
    modelled_tilings: int = 12
    # Tilings tried at most, should the first ones spill, but for the one that a subgroup copies
    # least for: with few and odd pixels every element has a test, in two scalar registers of a wave
    # of 64, and none of the fastest may have enough of those.
    most_tilings: int = 8


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Which workgroup tiles there are, beside those of `targets/limits.py`."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN,
        text="as large as the registers of a subgroup allow, then smaller for small problems",
    )

    # Channels up to which groups are merged: the smallest side of a matrix instruction, and what
    # fills half a cache line of 2-byte elements or a whole one.
    merged_channels: tuple[int, ...] = (16, 32, 64)
    # Vector kernels: threads of a workgroup, sums (m, n) of a thread, gemm_k of an iteration.
    vector_threads: int = 256
    vector_sums: tuple[tuple[int, int], ...] = (
        *((4, 4), (2, 4), (4, 2), (1, 4), (4, 1)),
        *((2, 2), (1, 2), (2, 1), (1, 1)),
    )
    vector_gemm_k_products: int = 4


@dataclass(frozen=True, kw_only=True)
class LdsCopies:
    """Which pieces of an operand a thread may copy from memory to LDS."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN, text="the widest loads and writes of gfx9; loads that spilled beyond 16"
    )

    # Loads of single elements that a thread may have in flight for one operand.
    most_scalar_loads: int = 16
    # One thread's piece: at most, as read from memory, as written to LDS.
    most_piece_bytes: int = 64
    read_bytes: int = 16
    write_bytes: int = 8
    # What a load of one element brings from memory: a part of a cache line that its neighbours may
    # not use.
    least_load_bytes: int = 16


@dataclass(frozen=True, kw_only=True)
class LdsLoads:
    """Main loops whose loads write to LDS."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN,
        text="machine code for gfx950, f16, 128x128x32 with four waves: two to four buffers",
    )

    # Tiles of each operand in LDS, a buffer each.
    buffered_tiles: tuple[int, ...] = (4, 3, 2)
    # A load is waited for so many iterations less behind it than there are buffers.
    early_wait_iterations: float = 1.5
    # Vector instructions of a load that may bring no pixel, in place of zeros in registers.
    tested_load_instructions: float = 2


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """How the kernel that adds partial sums is cut."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="code of the reduction for gfx942, its time modelled: 14 parts of 294912 weights take "
        "7.3 us uneven and 3.3 us even; 112 parts in two rounds 8.0 us, 24 at a time 4.0 us",
        tool=CHOICES,
    )

    # Partial sums that a lane has in flight. They lie a weight tensor apart, so only their number
    # hides the latency of memory; more of them cost registers.
    in_flight_sums: int = 24
    # The same where they are extracted (merged groups, taps in rows) and divide all parts evenly:
    # LLVM waits for each of uneven ones.
    extracted_in_flight_sums: int = 32
    # The same where a SIMD has few waves, so that registers are not missed: all parts of a sum,
    # or as many in a loop. Of 76 the compiler copies some, of 101 it spills them.
    few_waves: int = 2
    few_weights_in_flight_sums: int = 128
    few_weights_loop_sums: int = 40
    # Registers of a lane beyond the sums in flight.
    other_registers: int = 24
    # Adjacent weights that a lane may take, where the waves left give every unit so many.
    adjacent_weights: tuple[int, ...] = (4, 2)
    least_waves: int = 4


@dataclass(frozen=True, kw_only=True)
class OperandCopies:
    """How a kernel that copies an operand channels last is cut."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="code of the copies of 7 layers for gfx942 and gfx1100, modelled with a first look",
        tool=CHOICES,
    )

    # Of one load or store, and of a line of channels that lanes have side by side.
    vector_bytes: int = 16
    line_bytes: int = 128
    workgroup_threads: int = 256
    # Fewer channels than these are copied to a whole number of the least vector.
    few_channels: int = 8
    least_channels: int = 4
    # Registers of a lane: what it loads, what it stores, addresses.
    piece_registers: int = 96


@dataclass(frozen=True, kw_only=True)
class DepthwiseInstructions:
    """Vector instructions of the depthwise kernel beyond its products."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="machine code of depthwise kernels for gfx942",
        tool=f"{GPU_COUNTS} --part depthwise",
    )

    # To find a strip, to address a row, to mask a load at an edge.
    strip_instructions: float = 40
    row_instructions: float = 6
    mask_instructions: float = 2
    # Registers beyond sums, window and gradients.
    other_registers: int = 16


@dataclass(frozen=True, kw_only=True)
class DepthwisePowers:
    """Powers whose product orders depthwise kernels on NVIDIA chips (`depthwise_rank.py`)."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="1736 kernels of 37 layers, f16, on an H200 "
        "(`tools/fit/depthwise_gradient_times.csv`)",
        tool=DEPTHWISE_TIMES,
    )

    loads_power: float = 0.278
    iterations_power: float = 0.142
    sums_power: float = 0.356
    rows_power: float = 0.02
    channels_power: float = 0.101
    rounds_power: float = 0.183
    idle_power: float = 0.14
    # Threads of a unit that hide the latency of its loads.
    unit_threads: int = 430
    # Of an element of the kernels that were timed.
    element_bytes: int = 2


@dataclass(frozen=True, kw_only=True)
class DepthwiseSearch:
    """Which depthwise tilings there are."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN, text="what registers hold; the time of a choice"
    )

    # Adjacent groups that a thread has, and the most sums that it keeps of all their taps.
    thread_channels: tuple[int, ...] = (8, 4, 2, 1)
    most_sums: int = 128
    # Output columns of a strip at most, and where no such number divides them.
    most_columns: int = 8
    uneven_columns: int = 4
    # Rows of an iteration at most: they are written out one after another.
    most_unrolled_rows: int = 8
    workgroup_threads: tuple[int, ...] = (128, 256, 512)
    # Adjacent groups that neighbouring threads read at least, where there are so many.
    least_line_bytes: int = 64
    # Workgroups for each unit in all, of which the model chooses; those of the first look.
    tried_workgroups: tuple[int, ...] = (1, 2, 4, 8)
    first_workgroups: tuple[int, ...] = (2,)
    # On NVIDIA chips, whose rows of facts know no latencies: the most rows of a strip, and the
    # workgroups for each unit once the tilings are in order. Both were fastest in the mean of
    # some layers on an H200 (docs/benchmarks.md). The last ones are tried by fitted powers.
    nvidia_rows: int = 8
    nvidia_workgroups: tuple[int, ...] = (6,)
    timed_workgroups: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    most_parts: int = 1024
    # Tilings of which all splits are modelled, and those tried at most, should the first ones
    # spill.
    modelled_tilings: int = 32
    most_tilings: int = 8


@dataclass(frozen=True, kw_only=True)
class PixelInstructions:
    """Instructions and registers of the kernel `depthwise_pixels` beyond its products."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN,
        text="beside the machine code of ten kernels for gfx942 (docs/benchmarks.md)",
    )

    # Of a thread's start; to address a row, a load and a store.
    start_instructions: float = 80
    row_instructions: float = 6
    load_instructions: float = 2
    store_instructions: float = 1
    # Bytes of a cache line, and of a load of the filter.
    line_bytes: int = 128
    filter_load_bytes: int = 16
    # Registers beyond filter, sums and source row.
    other_registers: int = 24


@dataclass(frozen=True, kw_only=True)
class PixelWaits:
    """What a thread of the kernel `depthwise_pixels` waits for on AMD chips."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN,
        text="beside the machine code of 144 kernels of twelve problems for gfx942: of their times "
        "the predictions are off by 0.36 of a natural logarithm (rms)",
    )

    # Loads that a thread waits for, in whole latencies: at its start; of each source row where rows
    # are loaded ahead; where none is, its columns wait one behind another.
    start_waited_loads: float = 5
    step_latency_share: float = 0.4
    late_step_waited_loads: float = 2
    # Registers up to which the compiler loads rows of code without a loop ahead.
    ahead_registers: int = 192


@dataclass(frozen=True, kw_only=True)
class CudaPixelWaits(PixelWaits):
    """The same on NVIDIA chips, whose code was not looked at."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN, text="those by which the kernels of docs/benchmarks.md were chosen"
    )

    start_waited_loads: float = 2
    step_latency_share: float = 0.25
    ahead_registers: int = 256


@dataclass(frozen=True, kw_only=True)
class PixelSlack:
    """The share of its units' time that is added to the rank of a kernel `depthwise_pixels`."""

    source: ClassVar[Source] = Source(kind=Kind.CHOSEN, text="as for other kernels")

    serial_share: float = 0.1


@dataclass(frozen=True, kw_only=True)
class PixelSearch:
    """Which tilings of `depthwise_pixels` there are."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN, text="what registers hold; the time of a choice and of a compilation"
    )

    # Result channels that a thread has; channels of a group at most, by vector code and by matrix
    # instructions.
    thread_channels: tuple[int, ...] = (8, 4, 2, 1)
    most_group_channels: int = 16
    most_matrix_group_channels: int = 32
    # Units of a strip: columns, rows, result pixels, and products of a strip without a loop.
    most_columns: int = 8
    most_rows: int = 64
    most_pixels: int = 512
    most_products: int = 1024
    # Taps of a filter, result pixels of a unit of a data gradient: code for each.
    most_taps: int = 200
    most_unit_pixels: int = 16
    # Threads of a workgroup at most, and the layouts of them that are modelled.
    most_threads: int = 256
    most_layout_tilings: int = 4
    # Adjacent bytes that neighbouring threads read at least, where there are so many.
    least_line_bytes: int = 128
    # Tilings of which all layouts are modelled.
    modelled_tilings: int = 16
    # Tilings tried at most, should the first ones spill.
    most_tilings: int = 8


@dataclass(frozen=True, kw_only=True)
class PhaseTables:
    """For which strided data gradients the main loop skips taps (`phase_taps.py`)."""

    source: ClassVar[Source] = Source(
        kind=Kind.CHOSEN, text="scalar instructions that a table takes of a kernel"
    )

    # Places of a window, and phases of the result's pixels, that are told apart.
    most_window_pixels: int = 64
    most_phase_pixels: int = 64


@dataclass(frozen=True, kw_only=True)
class WarpGroups:
    """Tiles of wave groups, and how long their kernels take."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="193 kernels of 24 layers, f16, on an H200 (`tools/fit/warp_group_times.csv`); of "
        "118 kernels of twelve other layers the time is off by 9 % (rms)",
        tool=WARP_GROUP_TIMES,
    )

    by_wave_groups: ClassVar[bool] = True
    # (m, n, gemm_k), the wave groups along m and n, and the stages of LDS.
    tried_tiles: tuple[tuple[tuple[int, int, int], tuple[int, int], int], ...] = (
        ((128, 256, 64), (2, 1), 4),
        ((256, 128, 64), (2, 1), 4),
        ((128, 192, 64), (2, 1), 5),
        ((128, 128, 64), (2, 1), 6),
        ((128, 128, 32), (2, 1), 6),
        ((64, 256, 64), (1, 2), 4),
        ((256, 64, 64), (2, 1), 4),
        ((64, 128, 64), (1, 1), 4),
        ((128, 64, 64), (2, 1), 4),
        ((64, 64, 64), (1, 1), 4),
    )
    # The most columns that a tile of 192 may add, over those that there are.
    most_added_share: float = 0.15
    # Channels of a group below which other strategies are better, and below which none are merged:
    # fewer were not measured.
    least_channels: int = 3
    least_merged_channels: int = 4
    # Rounds of workgroups that parts may make, and the fewest iterations of a part.
    tried_rounds_times: tuple[float, ...] = (0.5, 1, 2, 3)
    least_iterations: int = 4
    most_tilings: int = 4
    # Threads of a unit below which the parts are cut into slices, and the most of these.
    sum_unit_threads: int = 768
    most_sum_slices: int = 16
    # Registers of a thread beside its sums, and LDS that the driver keeps of each workgroup.
    other_registers: int = 40
    reserved_lds_bytes: int = 1024
    # Cycles are those of the published peak. Start of a kernel; its first copies, and what else is
    # not of an iteration or of the stores.
    launch_cycles: float = 2530
    other_cycles: float = 130
    # The least time of an iteration, without windows and with them; how much longer windows take.
    plain_iteration_cycles: float = 500
    window_iteration_cycles: float = 520
    window_times: float = 1.373
    lds_cycle_bytes: float = 136.6
    cycle_products: float = 2216
    store_cycle_bytes: float = 13.05
    # Operands beyond this share of the last cache come from memory, at this share of its rate.
    # A tile is asked for when as many others but two stages are on their way.
    cached_share: float = 0.68
    memory_share: float = 0.83
    memory_latency_cycles: float = 2173
    stages_behind_tiles: int = 2
    # Of the kernel that adds parts: its start, and bytes that the chip moves in a cycle.
    sum_launch_cycles: float = 2476
    sum_cycle_bytes: float = 4347
    # How much longer it takes where threads have a tap each: columns of joined taps.
    joined_times: float = 1.125
    # Of a kernel that rounds channels up.
    copy_launch_cycles: float = 2000
    copy_cycle_bytes: float = 2300


@dataclass(frozen=True, kw_only=True)
class PixelWarpGroups:
    """Tiles of wave groups for forward passes and data gradients, and how long kernels take."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="456 kernels of 31 layers, f16, on an H200 (`tools/fit/warp_group_times.csv`); of "
        "287 kernels of 15 other layers, and 24 with tails of these, the time is off by 10 % (rms)",
        tool=WARP_GROUP_TIMES,
    )

    by_wave_groups: ClassVar[bool] = True
    # (pixels, channels, gemm_k), the wave groups along both, and the stages of LDS.
    tried_tiles: tuple[tuple[tuple[int, int, int], tuple[int, int], int], ...] = (
        ((128, 256, 64), (2, 1), 4),
        ((256, 128, 64), (2, 1), 4),
        ((128, 128, 64), (2, 1), 3),
        ((128, 128, 64), (2, 1), 5),
        ((64, 256, 64), (1, 2), 4),
        ((256, 64, 64), (2, 1), 4),
        ((64, 128, 64), (1, 1), 3),
        ((64, 128, 64), (1, 1), 4),
        ((128, 64, 64), (2, 1), 4),
        ((64, 64, 64), (1, 1), 4),
    )
    # (pixels, channels) of tiles of a tail, and the wave groups along both. Stages are as many as
    # LDS holds.
    tail_tiles: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = (
        ((64, 256), (1, 2)),
        ((128, 128), (2, 1)),
        ((64, 128), (1, 2)),
        ((128, 64), (2, 1)),
    )
    # Split-K factors, which are tried where one part has fewer than so many workgroups a unit.
    tried_parts: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    few_workgroups: int = 2
    # Cycles as in `WarpGroups`.
    launch_cycles: float = 366
    other_cycles: float = 879
    plain_iteration_cycles: float = 439
    window_iteration_cycles: float = 4
    window_times: float = 1.142
    lds_cycle_bytes: float = 131.6
    cycle_products: float = 2216
    store_cycle_bytes: float = 16.5
    # How much longer an iteration takes where threads have a tap each.
    flat_times: float = 1.559
    # A tile is asked for when as many others but two stages are on their way.
    copy_latency_cycles: float = 992
    stages_behind_tiles: int = 2
    # Bytes of all tensors come at this share of the memory's rate, beyond 1 as some are cached. Of
    # the shorter one of work and this traffic what a workgroup that is alone does not overlap.
    memory_share: float = 1.237
    apart_share: float = 0.332
    sum_launch_cycles: float = 2195
    sum_cycle_bytes: float = 4508


@dataclass(frozen=True, kw_only=True)
class StationaryWarpGroups:
    """Tiles of wave groups whose workgroups keep the weight in LDS, and how long kernels take."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="84 kernels of 14 layers, f16, on an H200 (`tools/fit/warp_group_times.csv`); of 42 "
        "kernels of eight other layers the time is off by 11 % (rms)",
        tool=WARP_GROUP_TIMES,
    )

    # (pixels, channels, gemm_k), and the wave groups along both. Stages are as many as LDS holds.
    tried_tiles: tuple[tuple[tuple[int, int, int], tuple[int, int]], ...] = (
        ((128, 128, 64), (1, 2)),
        ((64, 256, 64), (1, 2)),
        ((128, 256, 64), (1, 2)),
        ((64, 128, 64), (1, 1)),
        ((64, 64, 64), (1, 1)),
    )
    # The most workgroups of a unit, and the fewest stages of each of several. One alone has more
    # copies on their way than two with fewer stages.
    most_unit_workgroups: int = 2
    least_stages: int = 5
    most_stages: int = 8
    # Cycles as in `WarpGroups`: of a kernel without its tiles; bytes of the weight that a unit
    # copies in one, and that the chip's last cache delivers.
    start_cycles: float = 3641
    weight_cycle_bytes: float = 666
    last_level_cycle_bytes: float = 10470
    plain_iteration_cycles: float = 217
    copy_latency_cycles: float = 660
    stages_behind_tiles: int = 2
    lds_cycle_bytes: float = 155.6
    store_cycle_bytes: float = 20.8
    memory_share: float = 1.284
    apart_share: float = 0.166


LOOP = LoopInstructions()
OUTSIDE = OutsideInstructions()
LOAD_DISTANCE = LoadDistance()
REGISTERS = MainLoopRegisters()
SLACK = RankSlack()
TIE_BREAK = TieBreak()
LOAD_GAIN = LoadGain()
SPLITS = SplitSearch()
SEARCH = TilingSearch()
TILES = Tiles()
COPIES = LdsCopies()
LDS_LOADS = LdsLoads()
REDUCTION = Reduction()
OPERAND_COPIES = OperandCopies()
DEPTHWISE = DepthwiseInstructions()
DEPTHWISE_POWERS = DepthwisePowers()
DEPTHWISE_SEARCH = DepthwiseSearch()
PIXELS = PixelInstructions()
PIXEL_WAITS = PixelWaits()
CUDA_PIXEL_WAITS = CudaPixelWaits()
PIXELS_SLACK = PixelSlack()
PIXELS_SEARCH = PixelSearch()


@dataclass(frozen=True, kw_only=True)
class Waves(WarpGroups):
    """Tiles of waves, and how long their kernels take."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="318 kernels of 24 layers, f16, on an H100 (`tools/fit/wave_times.csv`); of 189 "
        "kernels of twelve other layers the time is off by 11 % (rms)",
        tool=WARP_GROUP_TIMES,
    )

    by_wave_groups: ClassVar[bool] = False
    # The waves along m and n stand in the second place.
    tried_tiles: tuple[tuple[tuple[int, int, int], tuple[int, int], int], ...] = (
        ((128, 128, 32), (2, 2), 4),
        ((128, 128, 64), (2, 4), 3),
        ((128, 256, 32), (2, 4), 3),
        ((256, 128, 32), (4, 2), 3),
        ((128, 64, 32), (2, 2), 4),
        ((64, 128, 32), (2, 2), 4),
        ((64, 256, 32), (2, 4), 4),
        ((256, 64, 32), (4, 1), 4),
        ((128, 64, 64), (2, 2), 3),
        ((64, 128, 64), (2, 2), 3),
        ((64, 64, 64), (2, 2), 3),
    )
    other_registers: int = 80
    launch_cycles: float = 5573
    other_cycles: float = 0
    plain_iteration_cycles: float = 694
    window_iteration_cycles: float = 737
    window_times: float = 1.139
    lds_cycle_bytes: float = 131.1
    store_cycle_bytes: float = 15.8
    memory_latency_cycles: float = 2646
    cycle_products: float = 1016
    stages_behind_tiles: int = 1
    memory_share: float = 0.657
    joined_times: float = 1


@dataclass(frozen=True, kw_only=True)
class PixelWaves(PixelWarpGroups):
    """Tiles of waves for forward passes and data gradients, and how long kernels take."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="438 kernels of 24 layers, f16, on an H100 (`tools/fit/wave_times.csv`); of 250 "
        "kernels of twelve other layers the time is off by 11 % (rms)",
        tool=WARP_GROUP_TIMES,
    )

    by_wave_groups: ClassVar[bool] = False
    tried_tiles: tuple[tuple[tuple[int, int, int], tuple[int, int], int], ...] = (
        ((128, 128, 64), (2, 2), 2),
        ((128, 128, 64), (2, 2), 3),
        ((128, 128, 64), (2, 4), 3),
        ((128, 256, 64), (2, 4), 2),
        ((256, 128, 64), (4, 2), 2),
        ((128, 64, 64), (2, 2), 3),
        ((64, 128, 64), (2, 2), 3),
        ((256, 64, 64), (4, 1), 3),
        ((64, 256, 64), (2, 4), 3),
        ((64, 64, 64), (2, 2), 3),
    )
    tail_tiles: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()
    launch_cycles: float = 1031
    other_cycles: float = 2169
    plain_iteration_cycles: float = 525
    window_times: float = 1.171
    lds_cycle_bytes: float = 150.6
    store_cycle_bytes: float = 34.1
    copy_latency_cycles: float = 1574
    memory_share: float = 0.98
    apart_share: float = 0.2575
    cycle_products: float = 960
    stages_behind_tiles: int = 1
    window_iteration_cycles: float = 987
    flat_times: float = 1.172


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Tiles of windows that are kept in LDS, and how long their kernels take."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="114 kernels of eight layers, f16, on an H100 (`tools/fit/window_times.csv`); of 34 "
        "kernels of three other layers the time is off by 23 % (rms). `launch_cycles` and "
        "`store_cycle_bytes` are set by hand: the fit found no sensible value",
        tool=WINDOW_TIMES,
    )

    # Images, rows and columns of units, rows of a patch, and wave groups.
    tried_tiles: tuple[tuple[int, int, int, int, int], ...] = (
        (1, 8, 8, 8, 1),
        (1, 8, 16, 8, 1),
        (1, 8, 16, 8, 2),
        (1, 16, 16, 8, 2),
        (1, 16, 16, 8, 4),
        (1, 32, 8, 8, 4),
        (2, 8, 8, 8, 1),
        (4, 8, 8, 8, 2),
        (4, 8, 8, 8, 4),
        (1, 1, 64, 1, 1),
        (1, 1, 128, 1, 2),
        (1, 1, 256, 1, 4),
    )
    tried_groups: tuple[int, ...] = (1, 2, 4, 8)
    # Channels of a workgroup, which are 32 bytes of a pixel: a sector of memory.
    least_channels: int = 16
    # Source channels of a group beyond which `wgmma_pixels` was faster on a card.
    most_channels: int = 32
    most_tilings: int = 4
    # Registers of a thread beside its sums.
    other_registers: int = 40
    # Cycles as in `WarpGroups`. Of a workgroup beside its tiles; the least time of a tile, and how
    # much longer each instruction makes it.
    launch_cycles: float = 3000
    other_cycles: float = 1397
    tile_cycles: float = 2100
    instruction_cycles: float = 53.76
    copy_cycle_bytes: float = 38.23
    lds_cycle_bytes: float = 97.46
    cycle_products: float = 2048
    store_cycle_bytes: float = 35
    # Share of the memory's rate that all tensors reach, and how many times that from a cache. Of
    # the shorter one of work and this traffic what is not hidden.
    memory_share: float = 0.6519
    cached_times: float = 1.239
    apart_share: float = 0.3815


@dataclass(frozen=True, kw_only=True)
class GradientWindows:
    """Tiles of weight gradients whose windows are kept in LDS, and how long their kernels take."""

    source: ClassVar[Source] = Source(
        kind=Kind.FITTED,
        text="239 kernels of nine layers, f16, on an H100 (`tools/fit/gradient_window_times.csv`); "
        "of 100 kernels of four other layers the time is off by 18 % (rms). `launch_cycles` is "
        "that of `Windows`, and the tiles tried are those of the same layers",
        tool=GRADIENT_WINDOW_TIMES,
    )

    # Of a tile: output pixels along rows, the most along columns (which share the image's evenly),
    # images, and pixels in all.
    tried_rows: tuple[int, ...] = (1, 2, 4, 7, 8, 14, 16)
    most_columns: int = 64
    tried_images: tuple[int, ...] = (1, 2, 4)
    least_pixels: int = 48
    most_pixels: int = 512
    # Channels of a workgroup, of which the least are 32 bytes of a pixel: a sector of memory.
    least_channels: int = 16
    most_channels: int = 128
    tried_wave_pieces: tuple[int, ...] = (1, 2, 4)
    most_waves: int = 16
    # Groups that are joined at most, and channels of a group: others were not measured.
    most_joined_groups: int = 4
    most_group_channels: int = 64
    # Rounds of workgroups that parts may make.
    tried_rounds_times: tuple[int, ...] = (1, 2)
    most_tilings: int = 4
    # Registers of a thread beside its sums.
    other_registers: int = 60
    # Cycles as in `WarpGroups`. Of a workgroup beside its tiles; the least time of a tile, for each
    # pair of rows and step.
    launch_cycles: float = 3000
    other_cycles: float = 7359
    step_cycles: float = 23.7
    lds_cycle_bytes: float = 84.8
    cycle_products: float = 393.5
    # Share of the memory's rate that operands reach, and how many times that from a cache. What
    # windows have in common counts as so much of its bytes. Of the shorter one of work and this
    # traffic what is not hidden.
    memory_share: float = 0.4631
    common_share: float = 0.2325
    cached_times: float = 0.994
    apart_share: float = 0.166


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """Of `scaled_gemm`: the tiles that are tried, and what a wave executes beside its products.

    No card was measured. Instructions are counted in compiled kernels; `waited_loads` is 1 because
    the loop has no software pipeline: each iteration waits for its own loads.
    """

    row_tiles: tuple[int, ...] = (1, 2, 4)
    column_tiles: tuple[int, ...] = (1, 2, 4)
    waves: tuple[int, ...] = (1, 2, 4)
    # Addresses, tests and zeros of a fragment and of its scale.
    fragment_instructions: float = 24
    start_instructions: float = 200
    registers: int = 40
    waited_loads: float = 1


SCALED = Scaled()
PHASE_TABLES = PhaseTables()
GRADIENT_WINDOWS = GradientWindows()
WINDOWS = Windows()
WARP_GROUPS = WarpGroups()
PIXEL_WARP_GROUPS = PixelWarpGroups()
STATIONARY = StationaryWarpGroups()
WAVES = Waves()
PIXEL_WAVES = PixelWaves()

GROUPS = (
    LOOP,
    OUTSIDE,
    LOAD_DISTANCE,
    REGISTERS,
    SLACK,
    TIE_BREAK,
    LOAD_GAIN,
    SPLITS,
    SEARCH,
    TILES,
    COPIES,
    LDS_LOADS,
    REDUCTION,
    OPERAND_COPIES,
    DEPTHWISE,
    DEPTHWISE_POWERS,
    DEPTHWISE_SEARCH,
    PIXELS,
    PIXEL_WAITS,
    CUDA_PIXEL_WAITS,
    PIXELS_SLACK,
    PIXELS_SEARCH,
    PHASE_TABLES,
    WARP_GROUPS,
    PIXEL_WARP_GROUPS,
    STATIONARY,
    WAVES,
    PIXEL_WAVES,
    WINDOWS,
    GRADIENT_WINDOWS,
)
