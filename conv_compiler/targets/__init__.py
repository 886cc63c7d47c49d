"""Where a kernel can run: one row a chip, one row a matrix instruction.

Chip facts are those of IREE's `compiler/src/iree/compiler/Codegen/Dialect/GPU/TargetUtils/
KnownTargets.cpp` (which cites AMD's and NVIDIA's product pages); `conv-compiler list targets
--check` compares them with what the compiler reports. Cycles are those of AMD's matrix instruction
calculator (ROCm/amd_matrix_instruction_calculator) and of LLVM's scheduling models. CPUs by name
are rows of `targets/processors.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

from conv_compiler.errors import UnsupportedTarget
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.targets.processors import PROCESSORS, Processor, host_processor


@dataclass(frozen=True, kw_only=True)
class Mma:
    """One matrix instruction D(m, n) += A(m, k) B(k, n), named as IREE names it.

    `instruction` is how its mnemonic starts in the chip's assembly; `subgroup_cycles` is how long
    one instruction keeps a SIMD's matrix unit. IREE lays an operand side longer than `side` out as
    (side / `side`, `side`); 0 leaves every side whole. `dtype` is A's, and B's unless `dtype_b` is.
    `unlisted` rows IREE compiles for the chip, though its own list of the chip lacks them.
    """

    name: str
    dtype: str
    m: int
    n: int
    k: int
    instruction: str
    subgroup_cycles: int
    side: int = 0
    dtype_b: str = ""
    unlisted: bool = False

    def __hash__(self) -> int:
        return hash(self.name)  # a choice looks rows up thousands of times

    @property
    def operands(self) -> tuple[str, str]:
        """Data types of A and B."""
        return self.dtype, self.dtype_b or self.dtype

    def unit(self, extent: int) -> int:
        """The innermost part of a side of the operand tile."""
        return min(extent, self.side or extent)

    def inner(self, extent: int, size: int) -> list[int]:
        """Tile sizes for a side as IREE lays it out: `size` of the innermost part."""
        return [size] if self.unit(extent) == extent else [1, size]


def _mfma(
    dtype: str, iree: str, shape: tuple[int, int, int], cycles: int, accumulator: str = "F32"
) -> Mma:
    m, n, k = shape
    name = f"MFMA_{accumulator}_{m}x{n}x{k}_{iree}"
    instruction = f"v_mfma_{accumulator.lower()}_{m}x{n}x{k}"
    return Mma(
        name=name, dtype=dtype, m=m, n=n, k=k, instruction=instruction, subgroup_cycles=cycles
    )


# 8-bit floats: gfx942 has those without infinities and negative zero (FNUZ), later chips OCP's.
_F8_OCP, _F8_FNUZ = ("f8E4M3FN", "f8E5M2"), ("f8E4M3FNUZ", "f8E5M2FNUZ")


def _pairs(names: tuple[str, ...]) -> tuple[tuple[str, str, str], ...]:
    """(A's, B's, IREE's name of both) for each two of some types."""
    return tuple(
        (a, b, "_".join(dict.fromkeys(name.replace("f8", "F8") for name in (a, b))))
        for a in names
        for b in names
    )


def _mfma_f8(names: tuple[str, ...]) -> tuple[Mma, ...]:
    shapes = (((16, 16, 32), 16), ((32, 32, 16), 32))
    return tuple(
        replace(_mfma(a, iree, shape, cycles), dtype_b=b)
        for a, b, iree in _pairs(names)
        for shape, cycles in shapes
    )


def _wmma(
    generation: int, cycles: int, i8_cycles: int, f8: tuple[str, ...] = ()
) -> tuple[Mma, ...]:
    return tuple(
        Mma(
            name=f"WMMAR{generation}_{accumulator}_16x16x16_{iree}",
            dtype=dtype,
            dtype_b=dtype_b,
            m=16,
            n=16,
            k=16,
            instruction=f"v_wmma_{accumulator.lower()}_16x16x16",
            subgroup_cycles=busy,
        )
        for dtype, dtype_b, iree, accumulator, busy in (
            ("f16", "f16", "F16", "F32", cycles),
            ("bf16", "bf16", "BF16", "F32", cycles),
            ("i8", "i8", "I8", "I32", i8_cycles),
            *((a, b, iree, "F32", i8_cycles) for a, b, iree in _pairs(f8)),
        )
    )


_NV_MMA = tuple(
    Mma(
        name=f"NV_MMA_SYNC_F32_16x8x16_{dtype.upper()}",
        dtype=dtype,
        m=16,
        n=8,
        k=16,
        instruction="mma.sync.aligned.m16n8k16",
        subgroup_cycles=8,
        side=8,
    )
    for dtype in ("f16", "bf16")
)


@dataclass(frozen=True, kw_only=True)
class Target:
    """One chip, the host CPU, or a CPU by name (`processor`; None for the host's).

    `backend` (a row of BACKENDS) picks compiler flags, runtime driver and schedules.
    `compute_units` counts what the driver dispatches workgroups to (CUs; WGPs count two; SMs on
    NVIDIA), `vgprs_per_lane` the registers one wave may address (on gfx9 with the accumulation
    registers), and `vector_flops_per_clock` the f32 operations a unit retires in a clock (an fma
    counts two). `flushed` are the data types of which its matrix instructions (a CPU's whole code)
    take denormals as 0, and `gradients_as` names for such types what gradients are computed in
    where the problem leaves it open (dtypes.CONVERSIONS).
    `pipeline_stages` is the depth of a matrix kernel's software pipeline: of 3, whose trips
    `passes/interleave.py` orders, where that is faster by the model.
    """

    name: str
    backend: str
    chip: str = ""
    subgroup_size: int = 1
    lds_bytes: int = 0
    compute_units: int = 1
    simds_per_unit: int = 1
    vgprs_per_lane: int = 0
    clock_ghz: float = 0.0
    memory_gb_per_s: float = 0.0
    vector_flops_per_clock: int = 0
    mma: tuple[Mma, ...] = ()
    flushed: tuple[str, ...] = ()
    gradients_as: tuple[tuple[str, str], ...] = ()
    pipeline_stages: int = 2
    processor: Processor | None = None

    def __hash__(self) -> int:
        return hash(self.name)  # the table of instructions would be hashed each time

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ValueError(f"target {self.name}: backend {self.backend} is not in BACKENDS")
        if len({row.name for row in self.mma}) != len(self.mma):
            raise ValueError(f"target {self.name}: an MMA row stands twice")

    @property
    def is_gpu(self) -> bool:
        """Whether kernels run as workgroups on a GPU."""
        return self.subgroup_size > 1

    def mma_for(self, a: str, b: str = "") -> tuple[Mma, ...]:
        """Matrix instructions for data types of A and B, one for both where B's is left out.

        In order of preference; empty where it has none.
        """
        return tuple(row for row in self.mma if row.operands == (a, b or a))

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
    def has_fnuz(self) -> bool:
        """Whether its 8-bit floats are those without negative zero."""
        return any(DTYPES[row.dtype].fnuz for row in self.mma)


@dataclass(frozen=True, kw_only=True)
class Backend:
    """How a family of targets is compiled for and run.

    `{chip}` stands for the row's chip in `flags`; `driver` is the runtime's name for it; `assembly`
    is the suffix of the dumped machine-code text; `object` that of the code object.
    """

    flags: tuple[str, ...]
    driver: str
    assembly: str
    object: str


BACKENDS = MappingProxyType(
    {
        "llvm-cpu": Backend(
            flags=(
                "--iree-hal-target-device=local",
                "--iree-hal-local-target-device-backends=llvm-cpu",
                "--iree-llvmcpu-target-cpu={chip}",
                # By default IREE 3.13 makes f32 of f64, and crashes on our payload as it does.
                "--iree-input-demote-f64-to-f32=false",
            ),
            driver="local-task",
            assembly="s",
            object="o",
        ),
        "rocm": Backend(
            flags=("--iree-hal-target-device=hip", "--iree-rocm-target={chip}"),
            driver="hip",
            assembly="rocmasm",
            object="hsaco",
        ),
        "cuda": Backend(
            flags=("--iree-hal-target-device=cuda", "--iree-cuda-target={chip}"),
            driver="cuda",
            assembly="ptx",
            object="ptx",
        ),
    }
)

_GFX90A_MMA = (
    _mfma("f16", "F16", (16, 16, 16), 32),
    _mfma("f16", "F16", (32, 32, 8), 64),
    # v_mfma_f32_*bf16_1k, new with gfx90a. IREE 3.13 lists those of gfx908, of half the rate.
    replace(_mfma("bf16", "BF16", (16, 16, 16), 32), unlisted=True),
    replace(_mfma("bf16", "BF16", (32, 32, 8), 64), unlisted=True),
    _mfma("f32", "F32", (16, 16, 4), 32),
    _mfma("i8", "I8", (16, 16, 16), 32, "I32"),
)
_GFX942_MMA = (
    _mfma("f16", "F16", (16, 16, 16), 16),
    _mfma("f16", "F16", (32, 32, 8), 32),
    _mfma("bf16", "BF16", (16, 16, 16), 16),
    _mfma("bf16", "BF16", (32, 32, 8), 32),
    _mfma("f32", "F32", (16, 16, 4), 32),
    _mfma("i8", "I8", (16, 16, 32), 16, "I32"),
    _mfma("i8", "I8", (32, 32, 16), 32, "I32"),
    *_mfma_f8(_F8_FNUZ),
)
_GFX950_MMA = (
    _mfma("f16", "F16", (16, 16, 32), 16),
    _mfma("f16", "F16", (32, 32, 16), 32),
    _mfma("f16", "F16", (16, 16, 16), 16),
    _mfma("bf16", "BF16", (16, 16, 32), 16),
    _mfma("bf16", "BF16", (32, 32, 16), 32),
    _mfma("bf16", "BF16", (16, 16, 16), 16),
    _mfma("f32", "F32", (16, 16, 4), 32),
    _mfma("i8", "I8", (16, 16, 64), 16, "I32"),
    _mfma("i8", "I8", (16, 16, 32), 16, "I32"),
    *_mfma_f8(_F8_OCP),
)

# IREE's worker threads set FTZ and DAZ (`iree_task_worker_main`). What converts f16 ignores both,
# and what multiplies pairs or tiles of bf16 flushes whatever they are.
_CPU_FLUSHED = ("f32", "f64", "bf16")

TARGETS = MappingProxyType(
    {
        row.name: row
        for row in (
            Target(name="cpu", backend="llvm-cpu", chip="host", flushed=_CPU_FLUSHED),
            *(
                Target(
                    name=f"cpu-{name}",
                    backend="llvm-cpu",
                    chip=name,
                    processor=row,
                    flushed=_CPU_FLUSHED,
                )
                for name, row in PROCESSORS.items()
            ),
            Target(
                name="gfx90a",
                backend="rocm",
                chip="gfx90a",
                subgroup_size=64,
                lds_bytes=65536,
                compute_units=110,  # one of MI250X's two dies: a HIP device of its own
                simds_per_unit=4,
                vgprs_per_lane=512,
                clock_ghz=1.7,
                memory_gb_per_s=1600,
                vector_flops_per_clock=128,
                mma=_GFX90A_MMA,
                # AMD's MIOpen documentation, "MI200 MFMA behavior specifics".
                flushed=("f16", "bf16"),
                # As MIOpen does there unless it is told not to (the same page).
                gradients_as=(("f16", "bf16"),),
            ),
            Target(
                name="gfx942",
                backend="rocm",
                chip="gfx942",
                subgroup_size=64,
                lds_bytes=65536,
                compute_units=304,
                simds_per_unit=4,
                vgprs_per_lane=512,
                clock_ghz=2.1,
                memory_gb_per_s=5300,
                vector_flops_per_clock=256,
                mma=_GFX942_MMA,
                pipeline_stages=3,
            ),
            Target(
                name="gfx950",
                backend="rocm",
                chip="gfx950",
                subgroup_size=64,
                lds_bytes=163840,
                compute_units=256,
                simds_per_unit=4,
                vgprs_per_lane=512,
                clock_ghz=2.4,
                memory_gb_per_s=8000,
                vector_flops_per_clock=256,
                mma=_GFX950_MMA,
                pipeline_stages=3,
            ),
            Target(
                name="gfx1100",
                backend="rocm",
                chip="gfx1100",
                subgroup_size=32,
                lds_bytes=65536,
                compute_units=96,
                simds_per_unit=2,
                vgprs_per_lane=256,
                clock_ghz=2.5,
                memory_gb_per_s=960,
                vector_flops_per_clock=256,
                mma=_wmma(3, 32, 32),
            ),
            Target(
                name="gfx1201",
                backend="rocm",
                chip="gfx1201",
                subgroup_size=32,
                lds_bytes=65536,
                compute_units=64,
                simds_per_unit=2,
                vgprs_per_lane=256,
                clock_ghz=2.97,
                memory_gb_per_s=640,
                vector_flops_per_clock=256,
                mma=_wmma(4, 16, 8, _F8_OCP),  # i8 as the published 389 TOP/s say
            ),
            Target(
                name="sm_80",
                backend="cuda",
                chip="sm_80",
                subgroup_size=32,
                lds_bytes=166912,
                compute_units=108,
                simds_per_unit=4,
                vgprs_per_lane=255,
                clock_ghz=1.41,
                memory_gb_per_s=2039,
                vector_flops_per_clock=128,
                mma=_NV_MMA,
            ),
            Target(
                name="sm_86",
                backend="cuda",
                chip="sm_86",
                subgroup_size=32,
                lds_bytes=101376,
                compute_units=84,
                simds_per_unit=4,
                vgprs_per_lane=255,
                clock_ghz=1.7,
                memory_gb_per_s=936,
                vector_flops_per_clock=256,
                mma=_NV_MMA,
            ),
            Target(
                name="sm_89",
                backend="cuda",
                chip="sm_89",
                subgroup_size=32,
                lds_bytes=101376,
                compute_units=128,
                simds_per_unit=4,
                vgprs_per_lane=255,
                clock_ghz=2.52,
                memory_gb_per_s=1008,
                vector_flops_per_clock=256,
                mma=_NV_MMA,
            ),
        )
    }
)

# More than any host has; beyond it the choice among deals takes long.
MOST_CORES = 1024


def find_target(name: str) -> Target:
    """The row of a chip, or UnsupportedTarget naming those there are.

    A CPU's name may end in the number of cores to deal work out for: `cpu-x86-64-v3@16`.
    """
    base, at, cores = name.partition("@")
    row = TARGETS.get(base)
    if row is None:
        raise UnsupportedTarget(f"target {name}: not in the table; known: {', '.join(TARGETS)}")
    if not at:
        return row
    if row.processor is None:
        raise UnsupportedTarget(f"target {name}: cores are for CPUs by name; use {base}")
    if not (cores.isdecimal() and 1 <= int(cores) <= MOST_CORES):
        raise UnsupportedTarget(
            f"target {name}: cores {cores} is not 1 to {MOST_CORES}; write {base}@16, or {base} "
            f"for {row.processor.cores}"
        )
    dealt = replace(row.processor, cores=int(cores))
    return replace(row, name=f"{base}@{dealt.cores}", processor=dealt)
