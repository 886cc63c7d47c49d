# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of wave groups launched from their PTX in CUDA graphs, for tools that time them.

IREE's runtime launches kernels one by one, and a call of it costs more than small kernels take.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import Target

REPEATS = 20
REPLAYS = 8
Call = Callable[[], None]


def launch_of(wgrad: ConvProblem, one: Strategy, target: Target) -> dict[str, Any]:
    """How both kernels of a strategy are launched: workgroups, threads and bytes of LDS."""
    from conv_compiler.passes.wgmma_parts.reduction import Reduction
    from conv_compiler.strategies.gpu.wgmma_gemm import passes
    from conv_compiler.strategies.gpu.wgmma_gemm_cost import lds_bytes

    (m, n, _), (step,) = one.tile, passes(wgrad, target, one)
    across = Reduction(threads=step.sum_threads, slices=step.sum_slices).across
    taps = math.prod(wgrad.filter)
    return {
        "split_k": one.split_k,
        "grid": [-(-wgrad.k // m), -(-wgrad.c // n) * taps, one.split_k * wgrad.g],
        "threads": step.threads,
        "lds": lds_bytes(one.tiling),
        "sum_grid": [-(-math.prod(wgrad.weight_shape) // (4 * across)), 1, 1],
        "sum_threads": step.sum_threads,
        "sum_lds": 16 * step.sum_threads if step.sum_slices > 1 else 0,
    }


def calls(path: Path, launch: dict[str, Any], gradient: Any, image: Any, weight: Any) -> list[Call]:
    """Launches of the kernels in a file of PTX, in order, on tensors of PyTorch."""
    import cupy
    import numpy
    import torch

    module = cupy.RawModule(path=str(path))
    parts = weight
    if launch["split_k"] > 1:
        parts = torch.empty((launch["split_k"], weight.numel()), device="cuda")

    def launched(name: str, prefix: str, *memory: Any) -> Call:
        function = module.get_function(name)
        lds = launch[f"{prefix}lds"]
        function.max_dynamic_shared_size_bytes = lds
        places = tuple(numpy.uint64(one.data_ptr()) for one in memory)
        grid, threads = tuple(launch[f"{prefix}grid"]), (launch[f"{prefix}threads"],)

        def run() -> None:
            with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
                function(grid, threads, places, shared_mem=lds)
            _ = memory  # kept alive as long as the launch

        return run

    found = [launched("wgmma_gemm", "", gradient, image, parts)]
    if launch["split_k"] > 1:
        found.append(launched("wgmma_sum", "sum_", parts, weight))
    return found


def graph_seconds(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Seconds of one call, in a CUDA graph of many: the median of some replays."""
    import torch

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            call()
    times = []
    for _ in range(REPLAYS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3 / repeats)
    return float(sorted(times[1:])[len(times) // 2 - 1])
