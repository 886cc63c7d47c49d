#!/usr/bin/env python3
"""Our CPU kernels beside PyTorch's (oneDNN), layer by layer: needs the extra [torch].

    tools/onednn_ratio.py                 one core, by processor time: holds on a busy machine
    tools/onednn_ratio.py --clock wall    all cores, by the clock on the wall: wants an idle one
    tools/onednn_ratio.py --type bf16 r56 ret

Both sides keep their tensors in NHWC and are called without a copy, in turns; medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import iree.runtime as iree
import torch

from conv_compiler import ConvProblem, compile, verify

BATCHES, BATCH, WARM_UP = 6, 8, 2
LAYOUT = "NHWC_KYXC_NHWK"


def _layer(image: int, c: int, k: int, **more: Any) -> dict[str, Any]:
    sizes = {"n": 8, "c": c, "k": k, "image": (image, image), "filter": (3, 3), "pad_low": (1, 1)}
    return sizes | more


_POINT = {"filter": (1, 1), "pad_low": (0, 0)}
LAYERS = {
    "r56": _layer(56, 64, 64),
    "r28": _layer(28, 128, 128),
    "r14": _layer(14, 256, 256),
    "r7": _layer(7, 512, 512),
    "p56": _layer(56, 64, 256, **_POINT),
    "p14": _layer(14, 1024, 256, **_POINT),
    "p7": _layer(7, 512, 2048, **_POINT),
    "p28_s2": _layer(28, 512, 1024, stride=(2, 2), **_POINT),
    "ret": _layer(25, 256, 256),
    "ret_s2": _layer(25, 256, 256, stride=(2, 2)),
    "stem": _layer(224, 3, 64, filter=(7, 7), pad_low=(3, 3), stride=(2, 2)),
    "rx56": _layer(56, 4, 4, g=32),
    "rx14": _layer(14, 16, 16, g=32),
    "dw56": _layer(56, 1, 1, g=144),
}


def medians(calls: Sequence[Callable[[], Any]], clock: Callable[[], float]) -> list[float]:
    """Median time of each call, in batches that take turns: a busy moment meets all of them.

    The first calls of a batch warm caches and threads again and do not count.
    """
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(BATCHES):
        for call, found in zip(calls, times, strict=True):
            for number in range(BATCH):
                start = clock()
                call()
                if number >= WARM_UP:
                    found.append(clock() - start)
    return [statistics.median(found) for found in times]


def ours(problem: ConvProblem, device: str) -> tuple[str, Callable[[], Any]]:
    """Strategy and a call of our kernel, after it was verified."""
    verify(problem, "cpu").require()
    artifact = compile(problem, "cpu")
    config = iree.Config(device)
    context = iree.SystemContext(config=config)
    data = artifact.vmfb.read_bytes()
    context.add_vm_module(iree.VmModule.copy_buffer(context.instance, data))
    main = context.modules.module["main"]
    dtype = problem.data_type.to_numpy()
    operands = [
        iree.asdevicearray(config.device, torch.rand(shape).numpy().astype(dtype))
        for shape in (problem.input_shape, problem.output_shape)
    ]
    return artifact.strategy.text, lambda: main(*operands)


def onednn(problem: ConvProblem) -> Callable[[], Any]:
    """A call of PyTorch's weight gradient on channels-last tensors."""
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[problem.dtype]
    g, pads = problem.g, list(problem.pad_low)
    image, gradient, weight = (
        torch.rand(shape, dtype=dtype).to(memory_format=torch.channels_last)
        for shape in (
            (problem.n, g * problem.c, *problem.image),
            (problem.n, g * problem.k, *problem.out_image),
            (g * problem.k, problem.c, *problem.filter),
        )
    )
    stride, dilation = list(problem.stride), list(problem.dilation)
    return lambda: torch.ops.aten.convolution_backward(
        gradient,
        image,
        weight,
        None,
        stride,
        pads,
        dilation,
        False,
        [0, 0],
        g,
        [False, True, False],
    )


def main() -> None:
    """Print one line a layer: GFLOP/s of both, and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("layers", nargs="*", help=f"some of {' '.join(LAYERS)} (all)")
    parser.add_argument("--type", default="f32", help="f32, f16 or bf16 (f32)")
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    args = parser.parse_args()
    one_core = args.clock == "cpu"
    clock = time.process_time if one_core else time.perf_counter
    if one_core:
        torch.set_num_threads(1)
    print(f"{'layer':8}{'oneDNN':>9}{'ours':>9}{'ratio':>7}  GFLOP/s, {args.type}")
    for name in args.layers or LAYERS:
        problem = ConvProblem(dtype=args.type, layout=LAYOUT, **LAYERS[name])
        strategy, call = ours(problem, "local-sync" if one_core else "local-task")
        times = medians((onednn(problem), call), clock)
        theirs, mine = (problem.flops / seconds / 1e9 for seconds in times)
        print(f"{name:8}{theirs:9.1f}{mine:9.1f}{mine / theirs:7.2f}  {strategy}", flush=True)


if __name__ == "__main__":
    main()
