# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of wave groups launched from their PTX in CUDA graphs, for tools that time them.

IREE's runtime launches kernels one by one, and a call of it costs more than small kernels take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import Strategy
    from conv_compiler.targets import Target

REPEATS = 20
REPLAYS = 8
Call = Callable[[], None]


def launch_of(wgrad: ConvProblem, one: Strategy, target: Target) -> list[dict[str, Any]]:
    """How the kernels of a strategy are launched, in order: workgroups, threads and bytes of LDS,
    which tensors each reads, which it writes, and how many elements of how many bytes that has."""
    from conv_compiler.passes.mma_sync_windows import MmaSyncWindows
    from conv_compiler.passes.wgmma_parts.kernel import lds_floats
    from conv_compiler.passes.wgmma_parts.sizes import rounded_up
    from conv_compiler.passes.wgmma_parts.window_kernel import WindowKernel
    from conv_compiler.passes.wgmma_pixels import WgmmaPixels
    from conv_compiler.passes.wgmma_windows import WgmmaWindows
    from conv_compiler.strategies.gpu import mma_sync_windows_cost as gradients
    from conv_compiler.strategies.gpu.warp_group_kind import PAD_THREADS
    from conv_compiler.strategies.gpu.wgmma_gemm_cost import column_tiles, k_tiles
    from conv_compiler.strategies.registry import find_strategy

    step: Any
    step, *_ = find_strategy(one.name).lower(wgrad, target, one).passes
    if isinstance(step, WgmmaWindows):
        problem, windows = wgrad.of, WindowKernel(step)  # type: ignore[attr-defined]
        elements, bytes_ = math.prod(problem.result_shape), problem.result_type.bytes
        lds = 4 * windows.lds_floats(is_narrow=bytes_ == 2)
        reads = ["source", "weight"]
        grid = list(windows.grid)
        return [_kernel(one.name, grid, step.threads, lds, reads, "result", elements, bytes_)]
    if isinstance(step, MmaSyncWindows):
        elements, bytes_ = math.prod(wgrad.weight_shape), wgrad.result_type.bytes
        lds = gradients.lds_bytes(wgrad, one.tiling)
        grid = [one.split_k * gradients.workgroups(wgrad, one.tiling), 1, 1]
        threads = gradients.tile_of(wgrad, one.tiling).threads
        is_one = one.split_k == 1
        writes, size = ("result", bytes_) if is_one else ("parts", 4)
        reads = ["gradient", "image"]
        kernel = _kernel(one.name, grid, threads, lds, reads, writes, elements * one.split_k, size)
        return [kernel] if is_one else [kernel, *_sum(step, elements, bytes_)]
    if isinstance(step, WgmmaPixels):
        first, second, problem = "source", "weight", wgrad.of  # type: ignore[attr-defined]
        channels = step.sources, step.weight_channels
        shapes = problem.operand_shapes
        pixels = step.kernel
        grid, elements, width = pixels.grid, pixels.elements, step.gemm_n
    else:
        (m, n, _), problem = one.tile, wgrad
        merged = one.tiling.merged_groups
        first, second = "gradient", "image"
        channels = (step.piece, step.piece) if merged > 1 else (wgrad.k, wgrad.c)
        shapes = wgrad.output_shape, wgrad.input_shape
        grid = (
            -(-wgrad.k * merged // m),
            column_tiles(wgrad, n, merged),
            one.split_k * wgrad.g // merged,
        )
        elements, width = math.prod(wgrad.weight_shape), wgrad.c
        tiles = k_tiles(wgrad, one.tiling)
    found, read = [], [first, second]
    for at, (own, shape) in enumerate(zip(channels, shapes, strict=True)):
        if at and isinstance(step, WgmmaPixels) and step.transposes_weight:
            count = math.prod(shape) // step.sources * rounded_up(step.sources, step.piece)
            found.append(
                _kernel("transposed_weight", [-(-count // (PAD_THREADS * step.piece)), 1, 1],
                        PAD_THREADS, 0, ["weight"], "transposed weight", count, step.element_bytes)
            )  # fmt: skip
            read[at] = "transposed weight"
        elif own % step.piece:
            count = math.prod(shape) // own * rounded_up(own, step.piece)
            threads = PAD_THREADS * step.piece
            found.append(
                _kernel(f"whole_{read[at]}", [-(-count // threads), 1, 1], PAD_THREADS, 0,
                        [read[at]], f"whole {read[at]}", count, step.element_bytes)
            )  # fmt: skip
            read[at] = f"whole {read[at]}"
    is_narrow = one.split_k == 1 and problem.result_type.bytes == 2 and width % 2 == 0
    if isinstance(step, WgmmaPixels):
        lds = 4 * pixels.lds_floats(is_narrow=is_narrow)
    else:
        lds = 4 * lds_floats(step, -(-tiles // one.split_k), is_narrow)
    parts = one.split_k > 1
    bytes_ = 4 if parts else problem.result_type.bytes
    found.append(
        _kernel(one.name, list(grid), step.threads, lds, read, "parts" if parts else "result",
                elements * one.split_k, bytes_)
    )  # fmt: skip
    return [*found, *_sum(step, elements, problem.result_type.bytes)] if parts else found


def _sum(step: Any, elements: int, bytes_: int) -> list[dict[str, Any]]:
    """The kernel that adds parts of so many elements, of so many bytes as results."""
    from conv_compiler.passes.wgmma_parts.reduction import Reduction, quad

    across = Reduction(threads=step.sum_threads, slices=step.sum_slices).across * quad(elements)
    slices = 4 * quad(elements) * step.sum_threads if step.sum_slices > 1 else 0
    grid, threads = [-(-elements // across), 1, 1], step.sum_threads
    return [_kernel("parts_sum", grid, threads, slices, ["parts"], "result", elements, bytes_)]


def _kernel(
    name: str,
    grid: list[int],
    threads: int,
    lds: int,
    reads: list[str],
    writes: str,
    elements: int,
    bytes_: int,
) -> dict[str, Any]:
    return {
        "name": name,
        "grid": grid,
        "threads": threads,
        "lds": lds,
        "reads": reads,
        "writes": writes,
        "bytes": elements * bytes_,
    }


def calls(path: Path, launch: list[dict[str, Any]], tensors: Mapping[str, Any]) -> list[Call]:
    """Launches of the kernels in a file of PTX, in order, on tensors of PyTorch by name: operands
    and `result`. Tensors between kernels are made."""
    import cupy
    import numpy
    import torch

    module = cupy.RawModule(path=str(path))
    memory = dict(tensors)

    def launched(entry: dict[str, Any]) -> Call:
        function = module.get_function(entry["name"])
        function.max_dynamic_shared_size_bytes = entry["lds"]
        if entry["writes"] not in memory:
            memory[entry["writes"]] = torch.empty(entry["bytes"], dtype=torch.uint8, device="cuda")
        names = [*entry["reads"], entry["writes"]]
        places = tuple(numpy.uint64(memory[name].data_ptr()) for name in names)
        grid, threads = tuple(entry["grid"]), (entry["threads"],)

        def run() -> None:
            with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
                function(grid, threads, places, shared_mem=entry["lds"])
            _ = memory  # kept alive as long as the launch

        return run

    return [launched(entry) for entry in launch]


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
