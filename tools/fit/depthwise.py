#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the order of depthwise weight gradients to times on an NVIDIA card.

    tools/fit/depthwise.py compile FOLDER   modules of some kernels of every layer
    tools/fit/depthwise.py run FOLDER       on a machine with a card, iree-base-runtime and PyTorch
    tools/fit/depthwise.py fit [TIMES]      powers of the table, and fitted ones.

`compile` takes the first kernels in today's order, and others at random. `run` checks each on whole
numbers, times it and cuDNN by PyTorch's profiler, and writes FOLDER/times.csv. `fit` reads such a
table, or the one that is kept beside this file. It leaves each layer out in turn, and tells how
fast the kernel that comes first then is, over the fastest one of the layer.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
import numpy as np
from nvidia_bench import cudnn_seconds, profiled_seconds
from nvidia_problems import square_layer

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.strategy import DepthwiseTiling, Strategy

CHIP, CUDNN = "sm_90a", "cuDNN"
# Kernels of a layer: the first ones, of a strip at most so many, and others.
FIRST, OF_A_STRIP, OTHERS = 22, 3, 16
# Times the fastest kernel of a layer: slower ones are not fitted. The pull to no power at all.
FAR, PULL = math.e, 1.0
KERNEL = ("vector", "columns", "rows", "unroll", "lanes", "threads", "split_k")


class Layer(NamedTuple):
    """A square layer of one channel a group."""

    images: int
    channels: int
    image: int
    filter: int
    stride: int

    @property
    def problem(self) -> ConvProblem:
        """Its weight gradient in f16."""
        two = (self.stride, self.stride)
        return square_layer(self.images, self.image, 1, 1, self.filter, g=self.channels, stride=two)


LAYERS = tuple(
    Layer(*sizes)
    for sizes in (
        (32, 144, 56, 3, 1), (32, 96, 112, 3, 2), (32, 384, 14, 3, 1), (32, 960, 7, 3, 1),
        (32, 96, 56, 7, 1), (32, 32, 112, 3, 1), (32, 240, 28, 5, 1), (32, 240, 28, 5, 2),
        (32, 672, 14, 5, 1), (32, 192, 28, 7, 1), (32, 384, 14, 7, 1), (32, 144, 56, 3, 2),
        (32, 192, 28, 3, 1), (32, 768, 7, 7, 1), (64, 256, 32, 3, 1), (32, 64, 56, 3, 1),
        (32, 128, 56, 3, 2), (64, 96, 28, 3, 1), (32, 576, 14, 3, 1), (32, 512, 14, 3, 2),
        (128, 512, 7, 3, 1), (32, 1024, 7, 3, 1), (16, 32, 112, 3, 1), (32, 24, 64, 3, 1),
        (32, 192, 56, 3, 2), (32, 40, 56, 5, 1), (32, 120, 28, 5, 1), (32, 480, 14, 5, 1),
        (32, 1152, 7, 5, 1), (32, 672, 14, 5, 2), (32, 144, 56, 5, 2), (16, 256, 20, 5, 1),
        (32, 128, 56, 7, 1), (64, 256, 14, 7, 1), (32, 512, 7, 7, 1), (16, 96, 64, 7, 1),
        (32, 64, 32, 7, 2),
    )
)  # fmt: skip


def strategy_of(values: Sequence[int]) -> Strategy:
    """The kernel of such numbers."""
    *tiling, split_k = values
    named = dict(zip(KERNEL, tiling, strict=False))
    return Strategy(name="depthwise", tiling=DepthwiseTiling(**named), split_k=split_k)


def some_kernels(layer: Layer) -> Iterator[tuple[int, ...]]:
    """The first kernels of a layer in today's order, and others."""
    from conv_compiler.strategies.gpu import depthwise
    from conv_compiler.strategies.gpu.depthwise_rank import order
    from conv_compiler.targets import find_target

    problem, target = layer.problem, find_target(CHIP)
    every = {
        (*astuple(tiling), split_k): order(problem, target, tiling, split_k)
        for tiling in depthwise.tilings(problem, target)
        for split_k in depthwise.splits(
            problem, target, tiling, depthwise.DEPTHWISE_SEARCH.timed_workgroups
        )
    }
    ranked = sorted(every, key=lambda one: every[one])
    first: list[tuple[int, ...]] = []
    for one in ranked:
        if sum(one[:4] == other[:4] for other in first) < OF_A_STRIP and len(first) < FIRST:
            first.append(one)
    left = [one for one in ranked[: len(ranked) // 2] if one not in first]
    yield from first
    yield from random.Random(str(layer)).sample(left, min(OTHERS, len(left)))


def _compiled(job: tuple[Path, Layer, tuple[int, ...]]) -> None:
    from conv_compiler.compiler.compile import compile

    folder, layer, values = job
    one = strategy_of(values)
    artifact = compile(layer.problem, CHIP, one, one.split_k, tuned=False)
    artifact.save(folder / ("-".join(map(str, (*layer, *values))) + ".vmfb"))


def compile_all(folder: Path) -> None:
    """A module of every kernel; its name has the layer and the kernel."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [(folder, layer, values) for layer in LAYERS for values in some_kernels(layer)]
    with ProcessPoolExecutor() as pool:
        list(pool.map(_compiled, jobs, chunksize=4))
    print(len(jobs), "kernels")


def _wanted(problem: ConvProblem, operands: Sequence[Any]) -> Any:
    """The weight gradient of whole numbers, from sums in f64 on the card."""
    import torch

    pads, stride = list(problem.pad_low), list(problem.stride)
    image, gradient = (
        torch.from_numpy(np.asarray(one, np.float64)).cuda().flatten(3).movedim(3, 1)
        for one in operands
    )
    weight = image.new_zeros(problem.g, 1, *problem.filter)
    found = torch.ops.aten.convolution_backward(
        *(gradient, image, weight, None, stride, pads, [1, 1], False, [0, 0], problem.g),
        [False, True, False],
    )[1]
    return found.half().cpu().numpy()


def run_all(folder: Path) -> None:
    """Check and time every kernel, and time cuDNN; prints one line a layer."""
    import iree.runtime

    from conv_compiler.runtime.kernel import load
    from conv_compiler.verification.inputs import inputs

    iree.runtime.flags.parse_flags("--cuda_use_streams=true")
    names = [tuple(map(int, path.stem.split("-"))) for path in sorted(folder.glob("*.vmfb"))]
    rows: list[tuple[object, ...]] = []
    wrong = []
    for layer in dict.fromkeys(Layer(*name[:5]) for name in names):
        problem = layer.problem
        whole, operands = inputs(problem, "integers", 0), inputs(problem, "random", 0)
        wanted = _wanted(problem, whole)
        for name in (one for one in names if one[:5] == layer):
            kernel = load(folder / ("-".join(map(str, name)) + ".vmfb"), "cuda")
            found = np.asarray(kernel(*map(kernel.put, whole))).reshape(wanted.shape)
            if not np.array_equal(found, wanted):
                wrong.append(name)
                continue
            held = list(map(kernel.put, operands))
            seconds = profiled_seconds(lambda kernel=kernel, held=held: kernel(*held))
            rows.append((*name, f"{1e6 * seconds:.2f}"))
        cudnn = 1e6 * cudnn_seconds(problem, profiled=True)
        rows.append((*layer, CUDNN, *[""] * (len(KERNEL) - 1), f"{cudnn:.2f}"))
        print(*layer, f"cuDNN {cudnn:.1f} us", flush=True)
    with (folder / "times.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow((*Layer._fields, *KERNEL, "microseconds"))
        table.writerows(rows)
    if wrong:
        raise SystemExit(f"{len(wrong)} kernels are wrong: {wrong}")


class Times(NamedTuple):
    """Terms and logarithms of times of a layer's kernels."""

    terms: Any
    times: Any


def read_times(path: Path) -> dict[Layer, Times]:
    """Of every layer of a table."""
    from conv_compiler.strategies.gpu.depthwise_rank import terms
    from conv_compiler.targets import find_target

    target = find_target(CHIP)
    found: dict[Layer, list[tuple[tuple[float, ...], float]]] = {}
    with path.open(newline="") as file:
        _, *lines = csv.reader(file)
    for line in lines:
        if CUDNN in line:
            continue
        *numbers, us = line
        values = tuple(map(int, numbers))
        layer, one = Layer(*values[:5]), strategy_of(values[5:])
        assert isinstance(one.tiling, DepthwiseTiling)
        row = astuple(terms(layer.problem, target, one.tiling, one.split_k))
        found.setdefault(layer, []).append((row, math.log(float(us))))
    return {
        layer: Times(np.array([row for row, _ in rows]), np.array([time for _, time in rows]))
        for layer, rows in found.items()
    }


def powers_of(several: Sequence[Times]) -> Any:
    """Powers whose product is nearest to the times, but for a factor of each layer's own."""
    rows, times = [], []
    for one in several:
        near = one.times <= one.times.min() + math.log(FAR)
        rows.append(one.terms[near] - one.terms[near].mean(axis=0))
        times.append(one.times[near] - one.times[near].mean())
    a, b = np.concatenate(rows), np.concatenate(times)
    return np.linalg.solve(a.T @ a + PULL * np.eye(a.shape[1]), a.T @ b)


def shares(layers: Mapping[Layer, Times], powers: Mapping[Layer, Any]) -> list[float]:
    """The fastest time of each layer over that of its first kernel by some powers."""
    return [
        math.exp(one.times.min() - one.times[np.argmin(one.terms @ powers[layer])])
        for layer, one in layers.items()
    ]


def fit(path: Path) -> None:
    """Print powers of the table beside fitted ones, and how fast the first kernels are."""
    from conv_compiler.strategies.gpu.depthwise_rank import Terms, power_of

    layers = read_times(path)
    names = [one.name for one in fields(Terms)]
    table = np.array([power_of(name) for name in names])
    fitted = powers_of(list(layers.values()))
    apart = {
        layer: powers_of([other for other in layers.values() if other is not one])
        for layer, one in layers.items()
    }
    print(sum(len(one.times) for one in layers.values()), "kernels of", len(layers), "layers")
    for name, now, then in zip(names, table, fitted, strict=True):
        print(f"    {name:16}{now:10.3f}{then:10.3f}")
    whole = {"table": dict.fromkeys(layers, table), "fitted": dict.fromkeys(layers, fitted)}
    for what, powers in (*whole.items(), ("each layer held out", apart)):
        found = shares(layers, powers)
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"{what}: fastest over first {mean:.3f} in the mean, {min(found):.2f} at least")


def main() -> int:
    """Run the step that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=("compile", "run", "fit"))
    parser.add_argument("path", type=Path, nargs="?")
    args = parser.parse_args()
    path = args.path or Path(__file__).with_name("depthwise_gradient_times.csv")
    {"compile": compile_all, "run": run_all, "fit": fit}[args.step](path)
    if args.step == "run":
        sys.stdout.flush()
        os._exit(0)  # PyTorch's profiler and IREE's CUDA driver abort where both end
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
