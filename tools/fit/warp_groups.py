#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the cost of kernels of wave groups (`wgmma_gemm`) to times on a Hopper card.

    tools/fit/warp_groups.py compile FOLDER   PTX of every layer, tile and some factors of split-K
    tools/fit/warp_groups.py run FOLDER       on a machine with a card, PyTorch and CuPy
    tools/fit/warp_groups.py fit [TIMES]      constants of `WarpGroups`, beside those of the table

`run` times each kernel in a CUDA graph of many launches, behind a check on whole numbers, and
writes FOLDER/times.csv. `fit` reads such a table, or the one that is kept beside this file. It
leaves every third layer out, and prints the error of predictions on both parts. It also prints how
much slower than the fastest measured kernel the chosen one is.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
from graph_times import calls, graph_seconds, launch_of
from nvidia_problems import square_layer

CHIP = "sm_90a"
TIMES = Path(__file__).with_name("warp_group_times.csv")
# Constants that are fitted, and by what factors a value is tried beside itself.
FITTED = (
    *("launch_cycles", "other_cycles", "plain_iteration_cycles", "window_iteration_cycles"),
    *("window_times", "lds_cycle_bytes", "store_cycle_bytes", "memory_share"),
    "memory_latency_cycles",
    *("sum_launch_cycles", "sum_cycle_bytes"),
)
FACTORS = (0.8, 0.9, 0.96, 0.99, 1.01, 1.04, 1.1, 1.25)
ROUNDS = 30
FAR = 1.45  # times the fastest: kernels beyond are not timed


TWO = {"stride": (2, 2)}
LAYERS = (
    # ResNet-50, all but the stem.
    *(square_layer(32, 56, 64, 64, window) for window in (1, 3)),
    square_layer(32, 56, 64, 256, 1),
    square_layer(32, 56, 256, 64, 1),
    square_layer(32, 56, 256, 128, 1),
    square_layer(32, 56, 128, 128, 3, **TWO),
    square_layer(32, 28, 128, 512, 1),
    square_layer(32, 56, 256, 512, 1, **TWO),
    square_layer(32, 28, 512, 128, 1),
    square_layer(32, 28, 128, 128),
    square_layer(32, 28, 512, 256, 1),
    square_layer(32, 28, 256, 256, 3, **TWO),
    square_layer(32, 14, 256, 1024, 1),
    square_layer(32, 28, 512, 1024, 1, **TWO),
    square_layer(32, 14, 1024, 256, 1),
    square_layer(32, 14, 256, 256),
    square_layer(32, 14, 1024, 512, 1),
    square_layer(32, 14, 512, 512, 3, **TWO),
    square_layer(32, 7, 512, 2048, 1),
    square_layer(32, 14, 1024, 2048, 1, **TWO),
    square_layer(32, 7, 2048, 512, 1),
    square_layer(32, 7, 512, 512),
    # Others: detectors, larger batches, odd channels, groups.
    square_layer(8, 100, 256, 256),
    square_layer(8, 50, 256, 256),
    square_layer(8, 25, 256, 720),
    square_layer(128, 14, 256, 256),
    square_layer(16, 64, 96, 192),
    square_layer(8, 28, 64, 64, g=8),
    square_layer(4, 40, 320, 320),
    square_layer(64, 8, 1280, 320, 1),
)


class Row(NamedTuple):
    """A kernel and its times in microseconds: of the products, and of the sum of parts."""

    layer: int
    m: int
    n: int
    k: int
    split_k: int
    kernel: float
    sum: float


def strategies(layer: int) -> Iterator[Any]:
    """Every tile of a layer with some factors: few, the ones about a round of workgroups, many."""
    from conv_compiler.strategies.gpu.wgmma_gemm import splits, tilings
    from conv_compiler.strategies.strategy import Strategy
    from conv_compiler.targets import find_target

    problem, target = LAYERS[layer], find_target(CHIP)
    for tiling in tilings(problem, target):
        several = splits(problem, target, tiling)
        for parts in dict.fromkeys(several[i * (len(several) - 1) // 2] for i in range(3)):
            yield Strategy(name="wgmma_gemm", tiling=tiling, split_k=parts)


def _near(layer: int, target: Any) -> list[Any]:
    """The strategies of a layer that are not far behind the fastest, by the table."""
    from conv_compiler.strategies.gpu.wgmma_gemm_cost import predict

    found = [
        (predict(LAYERS[layer], target, one.tiling, one.split_k), one) for one in strategies(layer)
    ]
    least = min(seconds for seconds, _ in found)
    return [one for seconds, one in found if seconds < FAR * least]


def compile_all(folder: Path) -> None:
    """PTX of every kernel, and an index with how it is launched."""
    from conv_compiler.compiler.stages import stage_texts
    from conv_compiler.targets import find_target
    from conv_compiler.targets.resolve import resolve

    folder.mkdir(parents=True, exist_ok=True)
    target, index = find_target(CHIP), []
    for layer, problem in enumerate(LAYERS):
        for one in _near(layer, target):
            with tempfile.TemporaryDirectory() as work:
                texts = stage_texts(resolve(problem, target, one.mma), one, Path(work))
            name = f"{layer:02}-{'x'.join(map(str, one.tile))}-{one.split_k}.ptx"
            (folder / name).write_text(texts["isa"])
            entry = {"file": name, "layer": layer, "tile": one.tile}
            index.append(entry | launch_of(problem, one, target))
            print(name, flush=True)
    (folder / "index.json").write_text(json.dumps(index))


def run_all(folder: Path) -> None:
    """Time every kernel; prints one line each."""
    import torch

    rows = []
    for entry in json.loads((folder / "index.json").read_text()):
        image, gradient, weight, expected = _tensors(entry["layer"])
        weight.fill_(math.nan)
        several = calls(folder / entry["file"], entry, gradient, image, weight)
        for call in several:
            call()
        torch.cuda.synchronize()
        if not torch.equal(weight, expected):
            raise SystemExit(f"{entry['file']}: wrong on whole numbers")
        seconds = (*map(graph_seconds, several), 0.0)[:2]
        row = Row(entry["layer"], *entry["tile"], entry["split_k"], *(1e6 * s for s in seconds))
        rows.append(row)
        print(entry["file"], f"{row.kernel:.2f} {row.sum:.2f}", flush=True)
    with (folder / "times.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Row._fields)
        table.writerows((*row[:5], f"{row.kernel:.2f}", f"{row.sum:.2f}") for row in rows)


_KEPT: dict[int, Any] = {}


def _tensors(layer: int) -> Any:
    """Image, output gradient and weight of whole numbers on the card, and the right weight."""
    import torch

    if layer not in _KEPT:
        _KEPT.clear()
        problem = LAYERS[layer]
        torch.manual_seed(layer)
        image, gradient = (
            torch.randint(-2, 3, shape, device="cuda").half()
            for shape in (problem.input_shape, problem.output_shape)
        )
        groups = problem.g
        weight = torch.empty(problem.weight_shape, device="cuda", dtype=torch.half)
        as_torch = torch.empty((groups * problem.k, problem.c, *problem.filter), device="cuda")
        found = torch.ops.aten.convolution_backward(
            gradient.permute(0, 3, 1, 2).float(),
            image.permute(0, 3, 1, 2).float(),
            as_torch,
            None,
            problem.stride,
            problem.pad_low,
            problem.dilation,
            False,
            [0, 0],
            groups,
            [False, True, False],
        )[1]
        expected = found.permute(0, 2, 3, 1).reshape(problem.weight_shape).half()
        _KEPT[layer] = image, gradient, weight, expected
    return _KEPT[layer]


def read(path: Path) -> list[Row]:
    """The rows of a table of times."""
    with path.open(newline="") as file:
        _, *rows = csv.reader(file)
    return [Row(*map(int, row[:5]), *map(float, row[5:])) for row in rows]


def fit(path: Path) -> None:
    """Print table values beside fitted ones, errors and regret."""
    from conv_compiler.strategies.gpu import wgmma_gemm_cost as cost
    from conv_compiler.targets import find_target

    rows, target = read(path), find_target(CHIP)
    tiled = {
        (layer, one.tile, one.split_k): one.tiling
        for layer in range(len(LAYERS))
        for one in strategies(layer)
    }
    known = [(row, tiled.get((row.layer, (row.m, row.n, row.k), row.split_k))) for row in rows]
    kept = [(row, tiling) for row, tiling in known if tiling]
    table = cost.WARP_GROUPS

    def predicted(values: Any, row: Row, tiling: Any) -> float:
        cost.WARP_GROUPS = values
        return 1e6 * cost.predict(LAYERS[row.layer], target, tiling, row.split_k)

    def error(values: Any, some: list[Any]) -> float:
        """Of both kernels together: the root of the mean square of logarithms."""
        logs = [math.log(predicted(values, *one) / (one[0].kernel + one[0].sum)) for one in some]
        return math.sqrt(sum(x * x for x in logs) / len(logs))

    def apart(values: Any, some: list[Any]) -> float:
        """The same of each kernel by itself, so that neither stands in for the other."""
        cost.WARP_GROUPS = values
        logs = []
        for row, tiling in some:
            problem = LAYERS[row.layer]
            kernel = cost.kernel_seconds(problem, target, tiling, row.split_k)
            logs.append(math.log(1e6 * kernel / row.kernel))
            if row.split_k > 1:
                logs.append(
                    math.log(1e6 * cost.sum_seconds(problem, target, row.split_k) / row.sum)
                )
        return math.sqrt(sum(x * x for x in logs) / len(logs))

    def regret(values: Any, layers: set[int]) -> float:
        worse = []
        for layer in layers:
            own = [one for one in kept if one[0].layer == layer]
            times = [row.kernel + row.sum for row, _ in own]
            chosen = min(own, key=lambda one: predicted(values, *one))[0]
            worse.append(math.log((chosen.kernel + chosen.sum) / min(times)))
        return math.exp(sum(worse) / len(worse)) - 1

    layers = {row.layer for row, _ in kept}
    held = {layer for layer in layers if layer % 3 == 2}
    seen = [one for one in kept if one[0].layer not in held]
    unseen = [one for one in kept if one[0].layer in held]
    best, least = table, apart(table, seen)
    for _ in range(ROUNDS):
        before = least
        for name in FITTED:
            for factor in FACTORS:
                tried = replace(best, **{name: getattr(best, name) * factor})
                if (now := apart(tried, seen)) < least:
                    best, least = tried, now
        if before - least < 1e-5:
            break
    print(f"{len(seen)} kernels of {len(layers - held)} layers, {len(unseen)} held out")
    for name in FITTED:
        print(f"{name:26} {getattr(table, name):10.4g} {getattr(best, name):10.4g}")
    for what, values in (("table", table), ("fitted", best)):
        print(
            f"{what}: error {error(values, seen):.3f} (rms of logarithms), held out "
            f"{error(values, unseen):.3f}; chosen kernels slower than the fastest by "
            f"{regret(values, layers - held):.1%}, held out {regret(values, held):.1%}"
        )
    cost.WARP_GROUPS = table


def main() -> int:
    """Run the step that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=("compile", "run", "fit"))
    parser.add_argument("place", type=Path, nargs="?", default=TIMES, help="folder, or table")
    arguments = parser.parse_args()
    {"compile": compile_all, "run": run_all, "fit": fit}[arguments.step](arguments.place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
