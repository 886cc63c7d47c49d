# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What this machine can do at most: f32 multiply-adds in registers, copies beyond the caches."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import iree.runtime as iree
import numpy as np

from conv_compiler.runtime.vm_instance import configuration

# So many multiply-adds wait for one another in a chain; the chains do not. Which number of chains
# is best is the processor's to say. 4 cycles of latency times 2 pipes want 8, and their sums must
# stay in 16 registers where a vector takes two.
CHAINS, LENGTH, ELEMENTS = (4, 6, 8), 64, 2**20
COPIED_BYTES = 2**28
CALLS = 20

_KERNEL = """
#map = affine_map<(i) -> (i)>
func.func @main(%input: tensor<{elements}xf32>) -> tensor<{elements}xf32> {{
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<{elements}xf32>
  %output = linalg.generic {{indexing_maps = [#map, #map], iterator_types = ["parallel"]}}
      ins(%input : tensor<{elements}xf32>) outs(%empty : tensor<{elements}xf32>) {{
  ^bb0(%x: f32, %unused: f32):
    {body}
    linalg.yield %sum{last} : f32
  }} -> tensor<{elements}xf32>
  return %output : tensor<{elements}xf32>
}}
"""


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """Of one core by processor time, and of `threads` threads by the clock on the wall."""

    threads: int
    fma_gflops: float
    fma_gflops_threads: float
    copy_gbytes: float
    copy_gbytes_threads: float
    fma_is: str = "f32 multiply-adds of a compiled kernel, in vector registers"
    copy_is: str = f"numpy.copyto of {COPIED_BYTES >> 20} MiB, bytes read and bytes written"

    @property
    def text(self) -> str:
        """Two lines for people."""
        return (
            f"FMA peak, GFLOP/s: {self.fma_gflops:.1f} of one core, "
            f"{self.fma_gflops_threads:.1f} at --threads {self.threads} ({self.fma_is})\n"
            f"copies, GB/s: {self.copy_gbytes:.1f} of one core, "
            f"{self.copy_gbytes_threads:.1f} at --threads {self.threads} ({self.copy_is})"
        )


def fma_kernel(
    chains: int,
    elements: int = ELEMENTS,
    flags: tuple[str, ...] = ("--iree-llvmcpu-target-cpu=host",),
) -> bytes:
    """A module that halves each element and adds 1, LENGTH times in each of some chains.

    It is for this CPU, or for that of the compiler's flags. It returns the sum of the chains, which
    goes to 2 a chain. The chains start with a number of their own each, or the compiler would make
    one of them.
    """
    lines = [f"%start{i} = arith.constant {i}.0 : f32" for i in range(chains)]
    lines += [f"%x0_{i} = math.fma %x, %half, %start{i} : f32" for i in range(chains)]
    lines += [
        f"%x{step}_{i} = math.fma %x{step - 1}_{i}, %half, %one : f32"
        for step in range(1, LENGTH)
        for i in range(chains)
    ]
    lines.append("%sum0 = arith.constant 0.0 : f32")
    lines += [f"%sum{i + 1} = arith.addf %sum{i}, %x{LENGTH - 1}_{i} : f32" for i in range(chains)]
    text = _KERNEL.format(elements=elements, body="\n    ".join(lines), last=chains)
    from iree.compiler import compile_str

    module: bytes = compile_str(text, target_backends=["llvm-cpu"], extra_args=list(flags))
    return module


def loaded(module: bytes, device: Any) -> Callable[..., Any]:
    """The function `main` of a compiled module, on a device."""
    context = iree.SystemContext(config=configuration(device))
    context.add_vm_module(iree.VmModule.copy_buffer(context.instance, module))
    function: Callable[..., Any] = context.modules.module["main"]
    return function


def least_seconds(call: Callable[[], Any], clock: Callable[[], float]) -> float:
    """The shortest of CALLS calls, after one that warms up: what was not disturbed."""
    call()
    times = []
    for _ in range(CALLS):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def fma_gflops(
    device_name: str, clock: Callable[[], float], kernels: Callable[[int], bytes]
) -> float:
    """GFLOP/s of the best of the kernels, on a device of IREE."""
    device = iree.get_device(device_name)
    ones = iree.asdevicearray(device, np.ones(ELEMENTS, np.float32))

    def measured(chains: int) -> float:
        kernel = loaded(kernels(chains), device)
        seconds = least_seconds(lambda: kernel(ones), clock)
        return 2 * chains * LENGTH * ELEMENTS / seconds / 1e9

    return max(map(measured, CHAINS))


def copy_gbytes(threads: int, clock: Callable[[], float]) -> float:
    """GB/s of copies by some threads, each of its own part of the bytes."""
    source, target = (np.ones(COPIED_BYTES, np.uint8) for _ in range(2))
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:
        seconds = least_seconds(lambda: list(pool.map(lambda pair: np.copyto(*pair), parts)), clock)
    return 2 * COPIED_BYTES / seconds / 1e9


def measure_peaks(threads: int, kernels: Callable[[int], bytes] = fma_kernel) -> Peaks:
    """Measure them all; IREE's workers are made with as many threads by the caller. `kernels` gives
    the module of a number of chains."""
    return Peaks(
        threads=threads,
        fma_gflops=fma_gflops("local-sync", time.process_time, kernels),
        fma_gflops_threads=fma_gflops("local-task", time.perf_counter, kernels),
        copy_gbytes=copy_gbytes(1, time.process_time),
        copy_gbytes_threads=copy_gbytes(threads, time.perf_counter),
    )
