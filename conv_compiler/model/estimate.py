# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a kernel takes by the model: the busiest pipe, and what latency it does not hide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from conv_compiler.model.constants import BOUND, INTERLEAVED
from conv_compiler.model.counts import Counts, KernelCounts
from conv_compiler.model.facts import ChipFacts, chip_facts
from conv_compiler.model.launch import Launch, Occupancy, occupancy
from conv_compiler.targets import Target
from conv_compiler.targets.limits import MOST_FRAGMENTS


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The modelled time of one dispatch. A model's answer, not a measurement.

    `pipes` are the seconds each pipe is busy on the busiest unit (of the chip, for caches and
    memory); `unit_seconds` is what the busiest unit takes for its workgroups with the latency that
    they do not hide from one another, and `launch_seconds` the cost of the dispatch. `seconds` is
    the longest of these plus the launch. `binds` is the busiest pipe, or "latency" where that pipe
    is idle for more than a quarter of the time, or "launch" where that takes longest. `matrix_busy`
    is the share of the chip's matrix cycles in use.
    """

    seconds: float
    launch_seconds: float
    unit_seconds: float
    pipes: Mapping[str, float]
    binds: str
    matrix_busy: float
    tflops: float
    occupancy: Occupancy

    @property
    def bound_seconds(self) -> float:
        """The busiest pipe alone."""
        return max(self.pipes.values())


def lds_cycles(counts: Counts, chip: ChipFacts) -> float:
    """Cycles a unit's LDS serves a wave."""
    read, write = chip.lds_read_cycles, chip.lds_write_cycles
    return (
        counts.lds_reads_4 * read.bytes_4
        + counts.lds_reads_8 * read.bytes_8
        + counts.lds_reads_16 * read.bytes_16
        + counts.lds_writes_4 * write.bytes_4
        + counts.lds_writes_8 * write.bytes_8
        + counts.lds_writes_16 * write.bytes_16
        + counts.lds_conflict_cycles
    )


def unit_cycles(
    counts: Counts, workgroups: int, launch: Launch, chip: ChipFacts
) -> dict[str, float]:
    """Cycles each pipe of a unit is busy with some workgroups whose waves execute `counts`."""
    waves = workgroups * launch.waves
    per_simd = -(-waves // chip.simds)
    vector = chip.valu_cycles * counts.valu_slots
    # A matrix instruction takes an issue slot of the vector unit; on RDNA, the whole of its time.
    shared = chip.valu_cycles * counts.matrix if chip.matrix_beside_valu else counts.matrix_cycles
    lanes_cycles = 4.0 * chip_lanes(chip) / chip.memory_bytes_per_cycle  # of a dword a lane
    issue = lanes_cycles * (counts.load_dwords + counts.store_dwords)
    if chip.lines_per_cycle:
        issue = max(issue, counts.lines / chip.lines_per_cycle)
    return {
        "matrix": per_simd * counts.matrix_cycles,
        "VALU": per_simd * (vector + shared),
        "SALU": per_simd
        * chip.scalar_cycles
        * (counts.salu + counts.scalar_loads + counts.branches),
        "LDS": waves * lds_cycles(counts, chip),
        "memory issue": waves * issue,
    }


def chip_lanes(chip: ChipFacts) -> int:
    """Lanes of a wave: what a SIMD's vector unit serves in the cycles it takes."""
    return 64 if chip.valu_cycles == 4 else 32


def serial_cycles(counts: Counts, launch: Launch, chip: ChipFacts) -> float:
    """Cycles of a workgroup alone whose pipes take turns; memory is issued beside them."""
    pipes = unit_cycles(counts, 1, launch, chip)
    per_simd = -(-launch.waves // chip.simds)
    vector = per_simd * chip.valu_cycles * counts.valu_slots
    return max(pipes["matrix"] + vector + pipes["LDS"], *pipes.values())


def interleaved_cycles(
    counts: Counts, launch: Launch, chip: ChipFacts, *, reads_ahead: bool = False
) -> float:
    """Cycles of a workgroup alone whose loop is interleaved, so that pipes work at the same time.

    Added to the busiest pipe is what does not hide: vector instructions in long runs, and LDS reads
    behind the last product, where it has such.
    """
    vector = -(-launch.waves // chip.simds) * chip.valu_cycles * counts.valu_slots
    fragments = counts.lds_reads_4 + 2 * counts.lds_reads_8 + 4 * counts.lds_reads_16
    late = 0.0
    if fragments > min(MOST_FRAGMENTS, counts.matrix) and not reads_ahead:
        reads = replace(
            counts, lds_writes_4=0, lds_writes_8=0, lds_writes_16=0, lds_conflict_cycles=0
        )
        late = INTERLEAVED.late_reads_share * launch.waves * lds_cycles(reads, chip)
    return (
        max(unit_cycles(counts, 1, launch, chip).values())
        + INTERLEAVED.bare_vector_share * vector
        + late
    )


def chain_cycles(counts: KernelCounts, launch: Launch, chip: ChipFacts) -> float:
    """Cycles one workgroup takes alone on a unit.

    A workgroup's waves go from barrier to barrier together and do the same at the same time: read
    LDS, multiply, shift what was loaded, write LDS. So these do not hide one another (docs/model.md
    compares it with timelines of compiled code). Each barrier adds a round trip to LDS. A load adds
    the part of its latency that the software pipeline leaves uncovered. In an interleaved loop they
    do hide one another, but not in the last iterations, which come after the loop.
    """
    serial = serial_cycles(counts.iteration, launch, chip)
    iteration = (
        min(
            serial,
            interleaved_cycles(counts.iteration, launch, chip, reads_ahead=counts.reads_ahead),
        )
        if counts.interleaved
        else serial
    )
    behind = INTERLEAVED.plain_iterations * (serial - iteration)
    iteration += counts.iteration.barriers * chip.lds_latency_cycles
    if counts.iteration.loads:
        iteration = covered(iteration, counts.load_distance, chip.load_cycles)
    outside = max(unit_cycles(counts.outside, 1, launch, chip).values())
    first_loads = bool(counts.outside.loads) + bool(counts.outside.scalar_loads)
    return counts.iterations * iteration + behind + outside + first_loads * chip.load_cycles


def unit_time(
    counts: KernelCounts, lie: Occupancy, launch: Launch, chip: ChipFacts, alone: float
) -> float:
    """Cycles the busiest unit takes for its workgroups.

    A workgroup takes `alone` cycles by itself, part of it on the pipe it uses most and the rest on
    other pipes or waiting. Residents share that pipe as customers of a closed queueing network
    share a station (exact mean value analysis), so they hide one another's waits as far as chance
    allows: never all, as in step, and never none. As many share it at a time as there is room for,
    or fewer where that leaves no last round of very few.
    """
    # As many workgroups as there are SIMDs fill these evenly, however few waves each has.
    together = unit_cycles(counts.wave, chip.simds, launch, chip)
    busiest = max(together.values()) / chip.simds
    rounds, queue = [0.0], 0.0  # the time of a round by the number of its residents
    for customers in range(1, lie.resident + 1):
        at_pipe = busiest * (1 + queue)
        rounds.append(alone - busiest + at_pipe)
        queue = customers * at_pipe / rounds[-1] if rounds[-1] else 0.0
    return min(
        lie.busiest // held * rounds[held] + rounds[lie.busiest % held]
        for held in range(1, lie.resident + 1)
    )


def covered(iteration: float, distance: float, latency: float) -> float:
    """Cycles of an iteration whose loads are waited for `distance` iterations after they are
    issued."""
    if distance > 1:
        return max(iteration, latency / distance)
    return max(distance * iteration, latency) + (1 - distance) * iteration


def estimate(
    counts: KernelCounts,
    launch: Launch,
    target: Target,
    chip: ChipFacts | None = None,
    alone: float | None = None,
) -> Estimate:
    """Model one dispatch on a chip; `counts` may be from machine code, a run or a prediction.

    `chip` is the target's row unless another is given; `alone` the cycles a workgroup takes by
    itself, by `chain_cycles` where no timeline of its code is known. Raises UnsupportedTarget for
    targets the model has no facts of.
    """
    chip = chip or chip_facts(target)
    lie = occupancy(launch, chip)
    clock = target.clock_ghz * 1e9
    wave = counts.wave
    pipes = {
        name: cycles / clock
        for name, cycles in unit_cycles(wave, lie.busiest, launch, chip).items()
    }
    waves = launch.workgroups * launch.waves
    moved = wave.line_bytes * waves
    if chip.l2_bytes_per_cycle:
        pipes["L2"] = moved / chip.l2_bytes_per_cycle / clock
    if chip.last_level_gb_per_s:
        dies = chip.l2_parts if launch.dies is None else launch.dies
        between = min(moved, launch.read_bytes * dies + launch.written_bytes)
        pipes["last-level cache"] = between / chip.last_level_gb_per_s / 1e9
    warm = launch.warm_bytes if launch.warm_bytes <= chip.last_level_bytes else 0
    footprint = launch.read_bytes - warm + launch.written_bytes
    pipes["memory"] = footprint / target.memory_gb_per_s / 1e9
    if alone is None:
        alone = chain_cycles(counts, launch, chip)
    unit = unit_time(counts, lie, launch, chip, alone) / clock
    work = max(*pipes.values(), unit)
    seconds = work + chip.launch_seconds
    matrix = wave.matrix_cycles * waves / (chip.units * chip.simds * clock)
    return Estimate(
        seconds=seconds,
        launch_seconds=chip.launch_seconds,
        unit_seconds=unit,
        pipes=pipes,
        binds=_binds(pipes, work, chip.launch_seconds),
        matrix_busy=matrix / seconds,
        tflops=(wave.matrix_flops + wave.vector_flops) * waves / seconds / 1e12,
        occupancy=lie,
    )


def _binds(pipes: Mapping[str, float], work: float, launch: float) -> str:
    if launch >= work:
        return "launch"
    busiest = max(pipes, key=lambda name: pipes[name])
    return busiest if pipes[busiest] >= BOUND.busy_share * work else "latency"


def fill_seconds(size: int, target: Target) -> float:
    """Seconds to write `size` bytes with one pattern, its launch included."""
    launch = chip_facts(target).launch_seconds
    return size / target.memory_gb_per_s / 1e9 + launch


def total_seconds(estimates: Iterable[Estimate]) -> float:
    """Dispatches one after another."""
    return sum(one.seconds for one in estimates)
