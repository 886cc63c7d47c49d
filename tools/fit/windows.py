#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the cost of kernels that keep windows in LDS (`wgmma_windows`) to times on a Hopper card.

    tools/fit/windows.py compile FOLDER   PTX of a sixth of every layer's tilings
    tools/fit/windows.py run FOLDER       on a machine with a card, PyTorch and CuPy
    tools/fit/windows.py fit [TIMES]      constants of `Windows`, beside those of the table

`run` checks each kernel on whole numbers, times it in a CUDA graph of many launches, and writes
FOLDER/times.csv. `fit` reads such a table, or the one that is kept beside this file. It leaves
every third layer out and prints the error of predictions on both parts.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from descent import descended
from graph_times import launch_of
from nvidia_bench import LAUNCH, PTX, graph_is_exact, ptx_seconds
from nvidia_problems import square_layer

from conv_compiler.problem.conv_problem import ConvProblem

CHIP = "sm_90a"
TIMES = Path(__file__).with_name("window_times.csv")
TWO = {"stride": (2, 2)}
LAYERS = (
    square_layer(32, 56, 8, 8, g=16),
    square_layer(32, 56, 8, 8, g=32, **TWO),
    square_layer(32, 28, 8, 8, g=32),
    square_layer(32, 28, 16, 16, g=32, **TWO),
    square_layer(32, 14, 16, 16, g=32),
    square_layer(32, 14, 32, 32, g=32, **TWO),
    square_layer(32, 7, 32, 32, g=32),
    square_layer(16, 64, 8, 8, 5, g=16),
    square_layer(64, 28, 32, 32, g=8),
    square_layer(8, 100, 16, 16, g=16),
    square_layer(128, 14, 8, 8, g=64),
)
DIRECTIONS = ("fwd", "bwd_data")
FITTED = (
    *("other_cycles", "tile_cycles", "instruction_cycles", "copy_cycle_bytes", "lds_cycle_bytes"),
    *("memory_share", "cached_times", "apart_share"),
)
FACTORS = (0.7, 0.8, 0.9, 0.96, 0.99, 1.01, 1.04, 1.1, 1.25, 1.4)
ROUNDS = 12
FAR = 1.5  # times the fastest kernel of a layer: slower ones are not fitted
# The fields of a tiling that tell it from others of its layer.
KEY = ("images", "rows", "columns", "patch_rows", "wave_groups", "merged_groups", "workgroups")


def problem_of(layer: int, direction: str) -> ConvProblem:
    """A layer in a direction."""
    return replace(LAYERS[layer], direction=direction)


def _key(tiling: Any) -> tuple[int, ...]:
    return tuple(getattr(tiling, name) for name in KEY)


def _compiled(job: tuple[Path, int, str, Any]) -> str:
    """Write the PTX of a kernel, and how it is launched, to a folder of its own."""
    from conv_compiler.compiler.stages import stage_texts
    from conv_compiler.strategies.strategy import Strategy
    from conv_compiler.targets import find_target
    from conv_compiler.targets.resolve import resolve

    folder, layer, direction, tiling = job
    one = Strategy(name="wgmma_windows", tiling=tiling, split_k=1)
    target = find_target(CHIP)
    resolved = resolve(problem_of(layer, direction), target, one.mma)
    name = f"{layer}-{direction}-" + "-".join(map(str, _key(tiling)))
    own = folder / name
    own.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        (own / PTX).write_text(stage_texts(resolved, one, Path(work), "isa")["isa"])
    (own / LAUNCH).write_text(json.dumps(launch_of(resolved.wgrad, one, target)))
    return name


def compile_all(folder: Path) -> None:
    """PTX of every sixth tiling of each layer."""
    from conv_compiler.strategies.gpu.wgmma_windows import tilings
    from conv_compiler.targets import find_target

    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for layer in range(len(LAYERS)):
        for direction in DIRECTIONS:
            several = list(tilings(problem_of(layer, direction), find_target(CHIP)))
            jobs += [(folder, layer, direction, one) for one in several[layer % 6 :: 6]]
    with ProcessPoolExecutor() as pool:
        names = list(pool.map(_compiled, jobs, chunksize=4))
    (folder / "index.json").write_text(json.dumps(names))
    print(len(names), "kernels")


def run_all(folder: Path) -> None:
    """Time every kernel; prints one line each."""
    rows, wrong = [], []
    for name in json.loads((folder / "index.json").read_text()):
        layer, direction, *key = name.split("-")
        problem = problem_of(int(layer), direction)
        if not graph_is_exact(folder / name, problem):
            wrong.append(name)
            print(name, "wrong on whole numbers", flush=True)
            continue
        us = 1e6 * ptx_seconds(folder / name, problem)
        rows.append((layer, direction, *key, f"{us:.2f}"))
        print(name, f"{us:.2f}", flush=True)
    with (folder / "times.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("layer", "direction", *KEY, "us"))
        table.writerows(rows)
    if wrong:
        raise SystemExit(f"{len(wrong)} of {len(wrong) + len(rows)} kernels are wrong")


class Errors:
    """How far predictions are off."""

    def __init__(self, path: Path) -> None:
        from conv_compiler.strategies.warp_group_tiling import WindowTiling
        from conv_compiler.targets import find_target

        self.target, self.rows = find_target(CHIP), []
        with path.open(newline="") as file:
            _, *lines = csv.reader(file)
        for layer, direction, *key, us in lines:
            numbers = dict(zip(KEY, map(int, key), strict=True))
            tiling = WindowTiling(**numbers, mma="")
            self.rows.append((int(layer), direction, tiling, float(us)))
        least: dict[tuple[int, str], float] = {}
        for row in self.rows:
            least[row[:2]] = min(row[3], least.get(row[:2], math.inf))
        self.near = [row for row in self.rows if row[3] < FAR * least[row[:2]]]

    def predicted(self, values: Any, row: Any) -> float:
        """Microseconds by a table."""
        from conv_compiler.strategies.gpu import wgmma_windows_cost as cost

        layer, direction, tiling, _ = row
        cost.WINDOWS = values
        return 1e6 * cost.predict(problem_of(layer, direction), self.target, tiling)

    def rms(self, values: Any, rows: list[Any]) -> float:
        """Of the logarithms of predicted over measured times."""
        logs = [math.log(self.predicted(values, row) / row[3]) for row in rows]
        return math.sqrt(sum(x * x for x in logs) / len(logs))

    def regret(self, values: Any, rows: list[Any]) -> float:
        """How much slower than the fastest measured kernel the chosen one is, in the mean."""
        logs = []
        for of in {row[:2] for row in rows}:
            own = [row for row in rows if row[:2] == of]
            chosen = min(own, key=lambda row: self.predicted(values, row))
            logs.append(math.log(chosen[3] / min(row[3] for row in own)))
        return math.exp(sum(logs) / len(logs)) - 1


def fit(path: Path) -> None:
    """Print table values beside fitted ones, errors and regret."""
    from conv_compiler.strategies.gpu.cost_constants import WINDOWS

    errors = Errors(path)
    seen = [row for row in errors.near if row[0] % 3 != 2]
    unseen = [row for row in errors.near if row[0] % 3 == 2]
    best = descended(WINDOWS, FITTED, FACTORS, ROUNDS, lambda tried: errors.rms(tried, seen))
    print(f"{len(seen)} kernels, {len(unseen)} of other layers held out")
    for name in FITTED:
        print(f"    {name:26} {getattr(WINDOWS, name):10.4g} {getattr(best, name):10.4g}")
    for what, values in (("table", WINDOWS), ("fitted", best)):
        for which, some in (("", seen), ("held out, ", unseen)):
            print(
                f"{what}: {which}error {errors.rms(values, some):.3f} (rms of logarithms), chosen "
                f"kernels slower than the fastest by {errors.regret(values, some):.1%}"
            )


def main() -> int:
    """Run the step that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=("compile", "run", "fit"))
    parser.add_argument("path", type=Path, nargs="?", default=TIMES)
    args = parser.parse_args()
    {"compile": compile_all, "run": run_all, "fit": fit}[args.step](args.path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
