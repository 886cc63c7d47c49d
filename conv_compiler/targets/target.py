# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The row of a target: what it is compiled by, its instructions and its pipes.

A row checks itself when it is made. The rows themselves are in `amd.py`, `nvidia.py` and `cpu.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.targets.backends import BACKENDS
from conv_compiler.targets.limits import ACCUMULATOR_SHARE, K_TILE_BYTES, MMA_TILES
from conv_compiler.targets.mma import Cycles, Mma, cycles_of
from conv_compiler.targets.processors import Processor, host_processor
from conv_compiler.targets.sustained import Sustained

# Tables of instruction words that the virtual GPU has, and generations whose rules of memory and
# waiting it knows (gfx9, gfx11, gfx12).
ENCODINGS = ("cdna", "rdna3", "rdna4")
GENERATIONS = (9, 11, 12)
WAVE_SIZES = (32, 64)


@dataclass(frozen=True, kw_only=True)
class Isa:
    """The instruction set of some AMD chips.

    `encoding` is a row of ENCODINGS and `generation` of GENERATIONS. `cdna` is the CDNA generation
    of the matrix instructions, 0 on RDNA. `vgpr_encoding` is how many registers a kernel descriptor
    counts as one. `packed_ids` tells whether a lane's x, y and z in its workgroup start in one
    register. `transposed_read_bits` are the sizes of elements that lanes can read from LDS
    transposed. `lds_load_bytes` is what a lane's load that writes to LDS brings, 0 where there is
    none as wide as a vector. `dots` are the types of which a lane multiplies 32 bits by 32 bits and
    adds the products to a sum in one vector instruction. `not_executed` says why the virtual GPU
    does not run such code; it is empty where it does.
    """

    name: str
    encoding: str
    generation: int
    cdna: int
    vgpr_encoding: int = 8
    packed_ids: bool = True
    transposed_read_bits: tuple[int, ...] = ()
    lds_load_bytes: int = 0
    dots: tuple[str, ...] = ()
    not_executed: str = ""

    def __post_init__(self) -> None:
        if self.encoding not in ENCODINGS and not self.not_executed:
            raise ValueError(f"ISA {self.name}: encoding {self.encoding} is not in ENCODINGS")
        if self.generation not in GENERATIONS:
            raise ValueError(f"ISA {self.name}: generation {self.generation} is not in GENERATIONS")


@dataclass(frozen=True, kw_only=True)
class LdsCycles:
    """How long one wave-instruction keeps a unit's LDS, by the bytes that each lane moves."""

    bytes_4: float
    bytes_8: float
    bytes_16: float


@dataclass(frozen=True, kw_only=True)
class Pipes:
    """What the performance model knows of a chip, per unit that a workgroup occupies.

    That unit is `cus_per_unit` compute units: a CU, on RDNA a WGP of two. Cycles are the unit's.
    `lds_read_cycles` and `lds_write_cycles` are of one wave-instruction without conflicts.
    Bandwidths are None where nothing is known; the model then leaves that pipe out. With
    `accumulators_apart` sums have registers of their own, as many as a lane has of the others.
    """

    cus_per_unit: int
    waves_per_simd: int
    workgroups: int
    vgprs_per_simd: int
    vgpr_granule: int
    accumulators_apart: bool
    valu_cycles: int  # a SIMD's vector unit is held by one wave-instruction
    matrix_beside_valu: bool
    scalar_cycles: int
    lds_read_cycles: LdsCycles
    lds_write_cycles: LdsCycles
    memory_bytes_per_cycle: float  # between a unit and the caches
    lines_per_cycle: float | None  # that a unit's vector L1 looks up
    l1_bytes: int  # of each compute unit
    l2_bytes_per_cycle: float | None  # the whole chip
    l2_parts: int  # dies with an L2 of their own
    last_level_gb_per_s: float | None
    last_level_bytes: int  # what one kernel writes and the next reads stays there if it fits
    load_cycles: float  # latency of a load that misses
    lds_latency_cycles: float
    launch_seconds: float


# Fields of a GPU's row and of its pipes that are numbers above 0.
_POSITIVE = (
    *("lds_bytes", "compute_units", "simds_per_unit", "vgprs_per_lane", "clock_ghz"),
    *("memory_gb_per_s", "vector_flops_per_clock", "pipeline_stages"),
)
_POSITIVE_PIPES = (
    *("cus_per_unit", "waves_per_simd", "workgroups", "vgprs_per_simd", "vgpr_granule"),
    *("valu_cycles", "scalar_cycles", "memory_bytes_per_cycle", "l2_parts", "last_level_bytes"),
    *("l1_bytes", "load_cycles", "lds_latency_cycles", "launch_seconds"),
)
_POSITIVE_OR_UNKNOWN = ("lines_per_cycle", "l2_bytes_per_cycle", "last_level_gb_per_s")
_MOST_MACH = 0xFF  # EF_AMDGPU_MACH is the low byte of e_flags


@dataclass(frozen=True, kw_only=True)
class Target:
    """One chip, the host CPU, or a CPU by name (`processor`; None for the host's).

    `backend` (a row of BACKENDS) picks compiler flags, runtime driver and schedules.
    `compute_units` counts CUs on AMD (of which a WGP has two) and SMs on NVIDIA. `lds_bytes` is the
    most that one workgroup may have. `vgprs_per_lane` counts the registers that one wave may
    address (on gfx9 with the accumulation registers), and `vector_flops_per_clock` the f32
    operations that a compute unit retires in a clock (an fma counts two).

    `device` is the compiler's attribute of a device with the chip, where its own table has no such
    chip; a module must state it (`compiler/stated_device.py`).

    `mma` are the matrix instructions of GEMMs, `blocks` those that multiply 16 blocks at once, and
    `scaled` those that take a scale for each 32 products. `wgmma` are the data types that groups of
    four waves multiply straight from LDS, `wgmma_along_k` those of which both operands must lie
    along gemm_k there, `mma_sync` those of which waves read fragments (NVIDIA). Waves of a unit
    have `wave_products` in a cycle, of 16-bit floats with sums in f32; 0: nothing is known.
    `flushed` are the data types of which its matrix instructions (a CPU's whole code) take
    denormals as 0, and `gradients_as` names for such types what gradients are computed in where the
    problem leaves it open (dtypes.CONVERSIONS). `pipeline_stages` is the depth of a matrix kernel's
    software pipeline: of 3, whose iterations `passes/interleave.py` orders, where that is faster by
    the model.

    `sustained` has what the chip keeps up under load; `pipes`, the clock and the bandwidths are
    peaks, by which tilings are ranked. Of AMD's chips alone: `isa`, `elf_mach` (EF_AMDGPU_MACH of a
    code object) and `cycles`, which has those of every matrix instruction that code may hold.
    """

    name: str
    backend: str
    chip: str = ""
    device: str = ""
    subgroup_size: int = 1
    lds_bytes: int = 0
    compute_units: int = 1
    simds_per_unit: int = 1
    vgprs_per_lane: int = 0
    clock_ghz: float = 0.0
    memory_gb_per_s: float = 0.0
    vector_flops_per_clock: int = 0
    mma: tuple[Mma, ...] = ()
    blocks: tuple[Mma, ...] = ()
    scaled: tuple[Mma, ...] = ()
    wgmma: tuple[str, ...] = ()
    wgmma_along_k: tuple[str, ...] = ()
    mma_sync: tuple[str, ...] = ()
    wave_products: int = 0
    flushed: tuple[str, ...] = ()
    gradients_as: tuple[tuple[str, str], ...] = ()
    pipeline_stages: int = 2
    pipes: Pipes | None = None
    sustained: Sustained | None = None
    isa: Isa | None = None
    elf_mach: int = 0
    cycles: Cycles = ()
    processor: Processor | None = None

    def __hash__(self) -> int:
        return hash(self.name)  # the table of instructions would be hashed each time

    def __post_init__(self) -> None:
        for rule in self._broken_rules():
            raise ValueError(f"target {self.name}: {rule}")

    @property
    def is_gpu(self) -> bool:
        """Whether kernels run as workgroups on a GPU."""
        return self.subgroup_size > 1

    @property
    def is_virtual(self) -> bool:
        """Whether the virtual GPU runs its code."""
        return self.isa is not None and not self.isa.not_executed

    def mma_for(self, a: str, b: str = "") -> tuple[Mma, ...]:
        """Matrix instructions for data types of A and B, one for both where B's is left out.

        In order of preference; empty where it has none.
        """
        return tuple(row for row in self.mma if row.operands == (a, b or a))

    def multiplies(self, dtype: str) -> bool:
        """Whether matrix instructions of some kernels multiply two numbers of a type."""
        return bool(self.mma_for(dtype)) or dtype in self.mma_sync

    def scaled_for(self, dtype: str) -> Mma | None:
        """The matrix instruction that takes scales of elements of a type, if there is one."""
        return next((row for row in self.scaled if row.dtype == dtype), None)

    def blocks_for(self, dtype: str) -> Mma | None:
        """The matrix instruction of 16 blocks for a data type, if there is one."""
        return next((row for row in self.blocks if row.dtype == dtype), None)

    @property
    def flags(self) -> tuple[str, ...]:
        """iree-compile's flags."""
        named = self.processor.flags if self.processor else ()
        return (*(flag.format(chip=self.chip) for flag in BACKENDS[self.backend].flags), *named)

    @property
    def cpu(self) -> Processor:
        """The CPU that a CPU target is compiled for."""
        return self.processor or host_processor()

    @property
    def has_xf32(self) -> bool:
        """Whether it multiplies f32 numbers of which it leaves out bits."""
        types = (*(row.dtype for row in self.mma), *self.mma_sync)
        return any(DTYPES[dtype].multiplied_only for dtype in types)

    @property
    def has_fnuz(self) -> bool:
        """Whether its 8-bit floats are those without negative zero."""
        return any(DTYPES[row.dtype].fnuz for row in self.mma)

    def _broken_rules(self) -> Iterator[str]:
        """What is wrong with the row, each with the field's name."""
        if self.backend not in BACKENDS:
            yield f"backend {self.backend} is not in BACKENDS"
        if len({row.name for row in self.mma}) != len(self.mma):
            yield "mma: an MMA row stands twice"
        if not self.is_gpu:
            if self.backend != "llvm-cpu":
                yield f"subgroup_size {self.subgroup_size} is not of a GPU"
            return
        if self.subgroup_size not in WAVE_SIZES:
            yield f"subgroup_size {self.subgroup_size} is not 32 or 64"
        yield from self._broken_numbers()
        for mma in self.mma:
            yield from self._broken_instruction(mma)
        if self.backend == "rocm":
            yield from self._broken_isa()

    def _broken_numbers(self) -> Iterator[str]:
        for name in _POSITIVE:
            if getattr(self, name) <= 0:
                yield f"{name} {getattr(self, name)} is not above 0"
        pipes = self.pipes
        if pipes is None:
            yield "pipes are missing: tilings are ranked by them"
            return
        for name in (*_POSITIVE_PIPES, *_POSITIVE_OR_UNKNOWN):
            value = getattr(pipes, name)
            known = value is not None or name not in _POSITIVE_OR_UNKNOWN
            if known and value <= 0:
                yield f"pipes.{name} {value} is not above 0"
        for name in ("lds_read_cycles", "lds_write_cycles"):
            cycles = getattr(pipes, name)
            if min(vars(cycles).values()) <= 0:
                yield f"pipes.{name} {vars(cycles)} are not above 0"
        if self.compute_units % pipes.cus_per_unit:
            yield f"compute_units {self.compute_units} are not whole units of {pipes.cus_per_unit}"

    def _broken_instruction(self, mma: Mma) -> Iterator[str]:
        """Rules of one matrix instruction: lanes, and the LDS of its largest tile."""
        lanes, (m, n, k) = self.subgroup_size, (mma.m, mma.n, mma.k)
        for name, elements in (("m*k", m * k), ("k*n", k * n), ("m*n", m * n)):
            if elements % lanes:
                yield f"mma {mma.name}: {name} {elements} does not divide among {lanes} lanes"
        if mma.subgroup_cycles <= 0:
            yield f"mma {mma.name}: subgroup_cycles {mma.subgroup_cycles} is not above 0"
        if (needed := self._largest_tile_bytes(mma)) > self.lds_bytes:
            yield f"lds_bytes {self.lds_bytes}: the largest tile of {mma.name} takes {needed}"

    def _largest_tile_bytes(self, mma: Mma) -> int:
        """LDS of both operands' tiles, the largest that a lane's registers allow (MMA_TILES)."""
        row = max(K_TILE_BYTES, mma.k * DTYPES[mma.dtype].bytes)
        sides = (
            (m * mma.m, n * mma.n, subgroups_m * subgroups_n * self.subgroup_size)
            for (m, n), (subgroups_m, subgroups_n) in MMA_TILES
        )
        most = self.vgprs_per_lane // ACCUMULATOR_SHARE
        return max(((m + n) * row for m, n, lanes in sides if m * n // lanes <= most), default=0)

    def _broken_isa(self) -> Iterator[str]:
        if self.isa is None:
            yield "isa is missing"
        if not 0 < self.elf_mach <= _MOST_MACH:
            yield f"elf_mach {self.elf_mach:#x} is not 1 to {_MOST_MACH:#x}"
        for mma in self.mma:
            cycles = cycles_of(self.cycles, mma.assembly_type, mma.m)
            if cycles != mma.joined * mma.subgroup_cycles:
                yield (
                    f"cycles of {mma.name}: the table has {cycles or 'none'}, its row "
                    f"{mma.joined * mma.subgroup_cycles}"
                )
