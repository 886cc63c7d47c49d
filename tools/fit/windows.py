#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the cost of kernels that keep windows in LDS to times on a Hopper card: `wgmma_windows`, and
with `--gradients` `mma_sync_windows`.

    tools/fit/windows.py [--gradients] compile FOLDER   PTX of a share of every layer's tilings
    tools/fit/windows.py [--gradients] run FOLDER       on a machine with a card, PyTorch and CuPy
    tools/fit/windows.py [--gradients] fit [TIMES]      constants of the table, and fitted ones

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
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from descent import descended
from graph_times import launch_of
from nvidia_bench import LAUNCH, PTX, graph_is_exact, ptx_seconds
from nvidia_problems import square_layer

from conv_compiler.problem.conv_problem import ConvProblem

CHIP = "sm_90a"
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
FACTORS = (0.7, 0.8, 0.9, 0.96, 0.99, 1.01, 1.04, 1.1, 1.25, 1.4)
ROUNDS = 12
FAR = 1.5  # times the fastest kernel of a layer: slower ones are not fitted


@dataclass(frozen=True, kw_only=True)
class Family:
    """Kernels that have a formula of their own.

    `key` names what tells one from others of its layer: fields of its tiling, and perhaps its
    parts. Every so many kernels (`share`) are tried. `table` has the constants, of which `fitted`
    are fitted.
    """

    strategy: str
    tiling: str
    directions: tuple[str, ...]
    layers: tuple[ConvProblem, ...]
    key: tuple[str, ...]
    table: str
    fitted: tuple[str, ...]
    times: str
    share: int

    def problem(self, layer: int, direction: str) -> ConvProblem:
        """A layer in a direction."""
        return replace(self.layers[layer], direction=direction)

    def strategies(self, problem: ConvProblem, target: Any) -> Iterator[Any]:
        """All kernels."""
        from conv_compiler.strategies.registry import find_strategy
        from conv_compiler.strategies.strategy import Strategy
        from conv_compiler.targets.resolve import resolve

        wgrad = resolve(problem, target).wgrad
        module = import_module(f"conv_compiler.strategies.gpu.{self.strategy}")
        for tiling in module.tilings(getattr(wgrad, "of", wgrad), target):
            one = Strategy(name=self.strategy, tiling=tiling)
            for parts in find_strategy(self.strategy).splits(wgrad, target, one):
                yield one.with_split_k(parts)

    def words(self, one: Any) -> list[str]:
        """What tells a kernel from others."""
        fields = {**vars(one.tiling), "split_k": one.split_k}
        values = (fields[name] for name in self.key)
        return ["x".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values]

    def strategy_of(self, words: Sequence[str]) -> Any:
        """The kernel of such words."""
        from conv_compiler.strategies import warp_group_tiling
        from conv_compiler.strategies.strategy import Strategy

        kind = getattr(warp_group_tiling, self.tiling)
        values: dict[str, Any] = {}
        for name, word in zip(self.key, words, strict=True):
            several = tuple(map(int, word.split("x")))
            values[name] = several if name == "pixels" else several[0]
        parts = values.pop("split_k", 1)
        return Strategy(name=self.strategy, tiling=kind(**values, mma=""), split_k=parts)


WINDOWS = Family(
    strategy="wgmma_windows",
    tiling="WindowTiling",
    directions=("fwd", "bwd_data"),
    layers=LAYERS,
    key=(
        *("images", "rows", "columns", "patch_rows", "wave_groups", "merged_groups"),
        "workgroups",
    ),
    table="WINDOWS",
    fitted=(
        *("other_cycles", "tile_cycles", "instruction_cycles", "copy_cycle_bytes"),
        *("lds_cycle_bytes", "memory_share", "cached_times", "apart_share"),
    ),
    times="window_times.csv",
    share=6,
)
GRADIENTS = Family(
    strategy="mma_sync_windows",
    tiling="GradientTiling",
    directions=("bwd_weight",),
    layers=(*LAYERS, square_layer(32, 56, 4, 4, g=32), square_layer(16, 28, 4, 4, 5, g=64)),
    key=(
        *("images", "pixels", "joined_groups", "merged_groups", "wave_pieces", "stages"),
        "split_k",
    ),
    table="GRADIENT_WINDOWS",
    fitted=(
        *("other_cycles", "step_cycles", "lds_cycle_bytes", "cycle_products", "memory_share"),
        *("common_share", "cached_times", "apart_share"),
    ),
    times="gradient_window_times.csv",
    share=17,
)


def _compiled(job: tuple[Family, Path, int, str, Any]) -> str:
    """Write the PTX of a kernel, and how it is launched, to a folder of its own."""
    from conv_compiler.compiler.stages import stage_texts
    from conv_compiler.targets import find_target
    from conv_compiler.targets.resolve import resolve

    family, folder, layer, direction, one = job
    target = find_target(CHIP)
    resolved = resolve(family.problem(layer, direction), target, one.mma)
    name = f"{layer}-{direction}-" + "-".join(family.words(one))
    own = folder / name
    own.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        (own / PTX).write_text(stage_texts(resolved, one, Path(work), "isa")["isa"])
    (own / LAUNCH).write_text(json.dumps(launch_of(resolved.wgrad, one, target)))
    return name


def compile_all(family: Family, folder: Path) -> None:
    """PTX of a share of the kernels of each layer."""
    from conv_compiler.targets import find_target

    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for layer in range(len(family.layers)):
        for direction in family.directions:
            several = list(family.strategies(family.problem(layer, direction), find_target(CHIP)))
            own = several[layer % family.share :: family.share]
            jobs += [(family, folder, layer, direction, one) for one in own]
    with ProcessPoolExecutor() as pool:
        names = list(pool.map(_compiled, jobs, chunksize=4))
    (folder / "index.json").write_text(json.dumps(names))
    print(len(names), "kernels")


def run_all(family: Family, folder: Path) -> None:
    """Time every kernel; prints one line each."""
    rows, wrong = [], []
    for name in json.loads((folder / "index.json").read_text()):
        layer, direction, *words = name.split("-")
        problem = family.problem(int(layer), direction)
        if not graph_is_exact(folder / name, problem):
            wrong.append(name)
            print(name, "wrong on whole numbers", flush=True)
            continue
        us = 1e6 * ptx_seconds(folder / name, problem)
        rows.append((layer, direction, *words, f"{us:.2f}"))
        print(name, f"{us:.2f}", flush=True)
    with (folder / "times.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("layer", "direction", *family.key, "us"))
        table.writerows(rows)
    if wrong:
        raise SystemExit(f"{len(wrong)} of {len(wrong) + len(rows)} kernels are wrong")


class Errors:
    """How far predictions are off."""

    def __init__(self, family: Family, path: Path) -> None:
        from conv_compiler.strategies.registry import find_strategy
        from conv_compiler.targets import find_target
        from conv_compiler.targets.resolve import resolve

        self.family, self.target = family, find_target(CHIP)
        self.kind, self.rows = find_strategy(family.strategy), []
        self.cost = import_module(f"conv_compiler.strategies.gpu.{family.strategy}_cost")
        with path.open(newline="") as file:
            _, *lines = csv.reader(file)
        for layer, direction, *words, us in lines:
            wgrad = resolve(family.problem(int(layer), direction), self.target).wgrad
            one = family.strategy_of(words)
            self.rows.append((int(layer), direction, wgrad, one, float(us)))
        least: dict[tuple[int, str], float] = {}
        for row in self.rows:
            least[row[:2]] = min(row[-1], least.get(row[:2], math.inf))
        self.near = [row for row in self.rows if row[-1] < FAR * least[row[:2]]]

    def predicted(self, values: Any, row: Any) -> float:
        """Microseconds by a table."""
        setattr(self.cost, self.family.table, values)
        return 1e6 * self.kind.cost(row[2], self.target, row[3])

    def rms(self, values: Any, rows: list[Any]) -> float:
        """Of the logarithms of predicted over measured times."""
        logs = [math.log(self.predicted(values, row) / row[-1]) for row in rows]
        return math.sqrt(sum(x * x for x in logs) / len(logs))

    def regret(self, values: Any, rows: list[Any]) -> float:
        """How much slower than the fastest measured kernel the chosen one is, in the mean."""
        logs = []
        for of in {row[:2] for row in rows}:
            own = [row for row in rows if row[:2] == of]
            chosen = min(own, key=lambda row: self.predicted(values, row))
            logs.append(math.log(chosen[-1] / min(row[-1] for row in own)))
        return math.exp(sum(logs) / len(logs)) - 1


def fit(family: Family, path: Path) -> None:
    """Print table values beside fitted ones, errors and regret."""
    from conv_compiler.strategies.gpu import cost_constants

    table = getattr(cost_constants, family.table)
    errors = Errors(family, path)
    seen = [row for row in errors.near if row[0] % 3 != 2]
    unseen = [row for row in errors.near if row[0] % 3 == 2]
    best = descended(table, family.fitted, FACTORS, ROUNDS, lambda tried: errors.rms(tried, seen))
    print(f"{len(seen)} kernels, {len(unseen)} of other layers held out")
    for name in family.fitted:
        print(f"    {name:26} {getattr(table, name):10.4g} {getattr(best, name):10.4g}")
    for what, values in (("table", table), ("fitted", best)):
        for which, some in (("", seen), ("held out, ", unseen)):
            print(
                f"{what}: {which}error {errors.rms(values, some):.3f} (rms of logarithms), chosen "
                f"kernels slower than the fastest by {errors.regret(values, some):.1%}"
            )


def main() -> int:
    """Run the step that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=("compile", "run", "fit"))
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--gradients", action="store_true")
    args = parser.parse_args()
    family = GRADIENTS if args.gradients else WINDOWS
    path = args.path or Path(__file__).with_name(family.times)
    {"compile": compile_all, "run": run_all, "fit": fit}[args.step](family, path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
