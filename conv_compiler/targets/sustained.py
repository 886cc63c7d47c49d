# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What AMD's chips keep up under load, as others measured it; the peaks are in `amd.py`.

A chip without a row here has none that was published. Marks as in `amd.py`; every number is M
unless a comment says otherwise, and its source is one of these:

- MAF: AMD, "Measuring Max-Achievable FLOPs, part 2" (rocm.blogs.amd.com, 2025-02-28): hipBLASLt on
  random-like data with cold caches, with the median clock of all dies. MI300X at 750 W.
- RRZE: github.com/RRZE-HPC/gpu-benches at 1038c5d, raw results of 2025: gpu-stream, gpu-cache,
  gpu-l2-stream, gpu-latency, gpu-roofline, gpu-small-kernels.
- MT4G: github.com/caps-tum/mt4g at 231c5bc, "AMD Instinct MI300X VF", 2025-08-08.
- AMDBENCH: AMD's roofline tool; MI300X in github.com/ROCm/rocm-amdgpu-bench issue 22 (2025-10-22),
  MI210 in github.com/ROCm/rocprofiler-compute `tests/workloads/path/MI200/roofline.csv`.
- HK: github.com/HazyResearch/HipKittens at f09e968, `analysis/{bf16,fp8}_gemm/mi350x`, MI355X.
- AITER: github.com/ROCm/aiter at e404860, `aiter/configs`, 256 CUs of gfx950.
- TILE: github.com/tile-ai/tilelang pull 2248: sums of 52 GB on a gfx950.
- BOO: github.com/iree-org/iree pull 24411: device times of kernels that do next to nothing.
- TORCH: github.com/zzc0721/torch-performance-test-data issues 58, 68 and 103 (RX 7900 XTX).
- BENCH: github.com/chanzhennan/ChipBenchmarker at f556fbe: an RX 7900 XT of 84 CUs and 800 GB/s.
- SGEMM: github.com/seb-v/fp32_sgemm_amd at 6d582dd: RX 7900 XTX, f32, dual issue by hand.
- GRAPH: github.com/ROCm/rocm-systems issue 10834: HIP graphs on a Radeon Pro W7900.
- HELLO: github.com/datawhalechina/hello-gpu at 254131a: RX 9070 XT.
- CK: github.com/ROCm/rocm-libraries pull 5460: RX 9070 XT.
- DRIVER: github.com/samuel-bohman/AI-benchmarking-guide, ND_MI300X_v5: BabelStream.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """The best rate that a kernel keeps up on operands of a type, and the clock it runs at.

    Where nobody read the clock, it is the one at which matrix units that never wait give the rate:
    no more than the true one times their use.
    """

    dtype: str
    tflops: float
    clock_ghz: float


@dataclass(frozen=True, kw_only=True)
class Sustained:
    """Rates under load. Those that nobody published are None, and the peak stands for them.

    `clock_ghz` is the clock of a kernel without matrix instructions, `memory_gb_per_s` the rate of
    a stream that reads and writes, and `memory_best_gb_per_s` the best of any kernel, which only
    reads or only writes. `last_level_best_gb_per_s` likewise. A load that misses in L2 takes
    `l2_latency_cycles`, and beyond them `beyond_l2_ns`, which hang on other clocks than the chip's.
    `launch_seconds` is the most that a small kernel of a queue was seen to cost.
    """

    card: str
    clock_ghz: float | None
    matrix: tuple[Matrix, ...]
    memory_gb_per_s: float
    memory_best_gb_per_s: float
    l2_gb_per_s: float | None
    last_level_gb_per_s: float | None
    last_level_best_gb_per_s: float | None
    l2_latency_cycles: float | None
    beyond_l2_ns: float | None
    launch_seconds: float

    def __post_init__(self) -> None:
        numbers = [*(value for name, value in vars(self).items() if name not in ("card", "matrix"))]
        numbers += [value for row in self.matrix for value in (row.tflops, row.clock_ghz)]
        if bad := [value for value in numbers if value is not None and value <= 0]:
            raise ValueError(f"sustained rates of {self.card}: {bad} are not above 0")
        if len({row.dtype for row in self.matrix}) != len(self.matrix):
            raise ValueError(f"sustained rates of {self.card}: a type stands twice")

    def matrix_of(self, dtype: str) -> Matrix | None:
        """The row of an operand type."""
        return next((row for row in self.matrix if row.dtype == dtype), None)


GFX90A = Sustained(
    card="MI210, 104 CUs",
    clock_ghz=1.58,  # C: AMDBENCH, 21.0 of 22.6 TFLOP/s of vector f32 at 1.7
    # AMDBENCH; the clocks are C, of its share of the peak of 104 CUs at 1.7; the rates are C too,
    # of the 110 CUs of a die of an MI250X.
    matrix=(
        Matrix(dtype="f16", tflops=174.7, clock_ghz=1.55),
        Matrix(dtype="bf16", tflops=180.9, clock_ghz=1.606),
        Matrix(dtype="f32", tflops=43.9, clock_ghz=1.557),
        Matrix(dtype="i8", tflops=176.5, clock_ghz=1.567),
    ),
    memory_gb_per_s=1389,  # AMDBENCH; RRZE has 1412 of scale, 1232 of triad
    memory_best_gb_per_s=1533,  # RRZE: init
    l2_gb_per_s=5030,  # AMDBENCH; RRZE has 4300 to 5100
    last_level_gb_per_s=None,
    last_level_best_gb_per_s=None,
    l2_latency_cycles=250,  # RRZE
    beyond_l2_ns=213,  # C: RRZE, 587 to 637 cycles at 1.7 GHz
    launch_seconds=2.1e-6,  # RRZE: in a stream and in a graph alike
)
GFX942 = Sustained(
    card="MI300X, 750 W",
    clock_ghz=1.254,  # RRZE: read while a stream draws 750 W
    matrix=(  # MAF; clocks were read
        Matrix(dtype="f16", tflops=654, clock_ghz=1.115),
        Matrix(dtype="bf16", tflops=708, clock_ghz=1.207),
        Matrix(dtype="f8", tflops=1273, clock_ghz=1.230),
    ),
    memory_gb_per_s=3997,  # RRZE: scale; DRIVER has 4110 of copy
    memory_best_gb_per_s=4870,  # a GEMV of 2 GB, github.com/ROCm/rocm-libraries pull 12329
    l2_gb_per_s=13300,  # RRZE: scale; 16900 of triad, 26500 where all read the same; MT4G has 15400
    last_level_gb_per_s=5000,  # RRZE: scale of what fits; AMDBENCH reads 6423
    last_level_best_gb_per_s=7100,  # RRZE: gpu-cache
    l2_latency_cycles=213,  # RRZE; MT4G has 288
    beyond_l2_ns=320,  # C: RRZE, 878 to 890 cycles at 2.092 GHz
    launch_seconds=3.6e-6,  # BOO, of an MI355X: none was found of an MI300X
)
GFX950 = Sustained(
    card="MI355X, 1400 W",
    clock_ghz=None,
    # Clocks are C, of the share of the peak at 2.4.
    matrix=(
        Matrix(dtype="f16", tflops=1610, clock_ghz=1.535),  # as bf16: the units are the same
        Matrix(dtype="bf16", tflops=1610, clock_ghz=1.535),  # HK; AITER has 1597
        Matrix(dtype="f8", tflops=3378, clock_ghz=1.611),  # HK: the forms of K = 128
    ),
    memory_gb_per_s=5800,  # TILE
    memory_best_gb_per_s=6635,  # AITER: a GEMV of 524 MB
    l2_gb_per_s=None,
    last_level_gb_per_s=None,
    last_level_best_gb_per_s=None,
    l2_latency_cycles=None,
    beyond_l2_ns=None,
    launch_seconds=3.6e-6,  # BOO: 3.0 to 3.6
)
GFX1100 = Sustained(
    card="RX 7900 XTX",
    clock_ghz=None,
    matrix=(
        Matrix(dtype="f16", tflops=105.4, clock_ghz=2.145),  # TORCH; C
        Matrix(dtype="bf16", tflops=105.4, clock_ghz=2.145),  # as f16: the units are the same
        Matrix(dtype="f32", tflops=49.0, clock_ghz=2.5),  # SGEMM: vector code
    ),
    memory_gb_per_s=848,  # C: BENCH, 706 of 800
    memory_best_gb_per_s=960,  # D: the peak; BENCH passes it where the last cache helps
    l2_gb_per_s=3253,  # BENCH
    last_level_gb_per_s=None,
    last_level_best_gb_per_s=None,
    l2_latency_cycles=340,  # BENCH
    beyond_l2_ns=88,  # C: BENCH, 551 cycles at 2.4 GHz
    launch_seconds=3.865e-6,  # GRAPH
)
GFX1201 = Sustained(
    card="RX 9070 XT",
    clock_ghz=None,
    matrix=(
        Matrix(dtype="f16", tflops=144.8, clock_ghz=2.21),  # CK; C
        Matrix(dtype="bf16", tflops=144.8, clock_ghz=2.21),  # as f16: the units are the same
    ),
    memory_gb_per_s=571,  # HELLO: copy
    memory_best_gb_per_s=600,  # HELLO: sum of two vectors
    l2_gb_per_s=None,
    last_level_gb_per_s=None,
    last_level_best_gb_per_s=None,
    l2_latency_cycles=None,
    beyond_l2_ns=None,
    launch_seconds=3.865e-6,  # GRAPH, of the RDNA3 card: none was found of RDNA4
)
