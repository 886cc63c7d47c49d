#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the cost of kernels of wave groups, or of waves, to times on a Hopper card.

    tools/fit/warp_groups.py compile FOLDER   PTX of every layer, tile and some factors of split-K;
                                              with --new of those without times alone
    tools/fit/warp_groups.py run FOLDER       on a machine with a card, PyTorch and CuPy
    tools/fit/warp_groups.py fit [TIMES]      constants of the tables of cost_constants.py, beside
                                              those that are there

With `--waves` the kernels are those of `mma.sync`, which other chips have too. `run` times each
kernel in a CUDA graph of many launches, behind a check on whole numbers, and writes
FOLDER/times.csv. `fit` reads such a table, or the one that is kept beside this file. It leaves
every third layer out, and prints the error of predictions on both parts. It also prints how much
slower than the fastest measured kernel the chosen one is, and how far the predicted order of the
layers' fastest kernels agrees with the measured one.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import tempfile
from collections.abc import Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
from graph_times import calls, graph_seconds, launch_of
from warp_group_layers import PROBLEMS, problem_of
from warp_group_tensors import tensors_of

CHIP = "sm_90a"
TIMES = {
    "wave groups": Path(__file__).with_name("warp_group_times.csv"),
    "waves": Path(__file__).with_name("wave_times.csv"),
}
# The strategies of weight gradients and of the other directions.
STRATEGIES = {
    "wave groups": ("wgmma_gemm", "wgmma_pixels"),
    "waves": ("mma_sync_gemm", "mma_sync_pixels"),
}
# Constants that are fitted, and by what factors a value is tried beside itself.
BOTH = (
    *("launch_cycles", "other_cycles", "plain_iteration_cycles", "window_iteration_cycles"),
    *("window_times", "lds_cycle_bytes", "store_cycle_bytes", "memory_share"),
    *("sum_launch_cycles", "sum_cycle_bytes"),
)
GEMM = (*BOTH, "memory_latency_cycles", "joined_times")
PIXELS = (*BOTH, "flat_times", "copy_latency_cycles", "apart_share")
STATIONARY = (
    *("start_cycles", "weight_cycle_bytes", "last_level_cycle_bytes", "plain_iteration_cycles"),
    *("copy_latency_cycles", "lds_cycle_bytes", "store_cycle_bytes", "memory_share"),
    "apart_share",
)
# By what multiplies and by the kind of kernel (`Row.kind`): the table, and its constants.
FITTED: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "wave groups": {
        "gradients": ("WARP_GROUPS", GEMM),
        "pixels": ("PIXEL_WARP_GROUPS", PIXELS),
        "stationary": ("STATIONARY", STATIONARY),
    },
    "waves": {
        "gradients": ("WAVES", (*GEMM, "cycle_products")),
        "pixels": ("PIXEL_WAVES", (*PIXELS, "cycle_products")),
    },
}
FACTORS = (0.8, 0.9, 0.96, 0.99, 1.01, 1.04, 1.1, 1.25)
ROUNDS = 30
FAR = 1.45  # times the fastest: kernels beyond are not timed


NO_TAIL = "none"


class Row(NamedTuple):
    """A kernel and its times in microseconds: of the products, of the sum of parts, and of the
    copies in front. `executors` counts a workgroup's wave groups or waves. `tail` has m, n and the
    stages of smaller tiles of the last rows, or is NO_TAIL."""

    layer: int
    direction: str
    m: int
    n: int
    k: int
    executors: int
    stages: int
    merged: int
    row_workgroups: int
    split_k: int
    tail: str
    kernel: float
    sum: float
    copies: float

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells the kernel from others."""
        return self[:TIMES_AT]

    @property
    def kind(self) -> str:
        """Its kind in `FITTED`."""
        if self.direction == "bwd_weight":
            return "gradients"
        return "stationary" if self.row_workgroups else "pixels"


# The columns of the tail and of the first time.
TAIL_AT, TIMES_AT = map(Row._fields.index, ("tail", "kernel"))


def module_of(direction: str) -> tuple[Any, Any]:
    """The modules of a direction's strategy and of its costs."""
    from conv_compiler.strategies.gpu import (
        wgmma_gemm,
        wgmma_gemm_cost,
        wgmma_pixels,
        wgmma_pixels_cost,
    )

    if direction == "bwd_weight":
        return wgmma_gemm, wgmma_gemm_cost
    return wgmma_pixels, wgmma_pixels_cost


def strategies(layer: int, direction: str, target: Any, by: str) -> Iterator[Any]:
    """Every tile of a layer with some factors: few, the ones about a round of workgroups, many."""
    from conv_compiler.strategies.registry import find_strategy
    from conv_compiler.strategies.strategy import Strategy

    problem, (module, _) = problem_of(layer, direction), module_of(direction)
    name = STRATEGIES[by][direction != "bwd_weight"]
    for tiling in module.tilings(problem, target, find_strategy(name).table):  # type: ignore[attr-defined]
        several = module.splits(problem, target, tiling)
        for parts in dict.fromkeys(several[i * (len(several) - 1) // 2] for i in range(3)):
            yield Strategy(name=name, tiling=tiling, split_k=parts)


def _near(layer: int, direction: str, target: Any, by: str) -> list[Any]:
    """The strategies of a layer that are not far behind the fastest, by the table."""
    problem, (_, cost) = problem_of(layer, direction), module_of(direction)
    found = [
        (cost.predict(problem, target, one.tiling, one.split_k), one)
        for one in strategies(layer, direction, target, by)
    ]
    least = min(seconds for seconds, _ in found)
    return [one for seconds, one in found if seconds < FAR * least]


def key_of(layer: int, direction: str, one: Any) -> tuple[Any, ...]:
    """The key of a row of a strategy."""
    from conv_compiler.strategies.strategy import tile_text

    tiling = one.tiling
    executors = math.prod(tiling.warp_groups)
    numbers = executors, tiling.stages, tiling.merged_groups, tiling.row_workgroups
    tail = tile_text((*tiling.tail.tile, tiling.tail.stages)) if tiling.tail else NO_TAIL
    return layer, direction, *one.tile, *numbers, one.split_k, tail


def _compiled(job: tuple[Path, int, str, Any]) -> dict[str, Any]:
    """Write the PTX of a kernel; how it is launched."""
    from conv_compiler.compiler.stages import stage_texts
    from conv_compiler.targets import find_target
    from conv_compiler.targets.resolve import resolve

    folder, layer, direction, one = job
    target = find_target(CHIP)
    resolved = resolve(problem_of(layer, direction), target, one.mma)
    key = key_of(layer, direction, one)
    name = "-".join(map(str, key)) + ".ptx"
    with tempfile.TemporaryDirectory() as work:
        (folder / name).write_text(stage_texts(resolved, one, Path(work))["isa"])
    return {"file": name, "key": key, "launch": launch_of(resolved.wgrad, one, target)}


def compile_all(folder: Path, by: str, known: Collection[tuple[Any, ...]] = ()) -> None:
    """PTX of every kernel that is not known, and an index with how it is launched."""
    from conv_compiler.targets import find_target

    folder.mkdir(parents=True, exist_ok=True)
    target = find_target(CHIP)
    jobs = [
        (folder, layer, direction, one)
        for layer, direction in PROBLEMS
        for one in _near(layer, direction, target, by)
        if key_of(layer, direction, one) not in known
    ]
    with ProcessPoolExecutor() as pool:
        index = list(pool.map(_compiled, jobs, chunksize=4))
    (folder / "index.json").write_text(json.dumps(index))
    print(len(index), "kernels")


def run_all(folder: Path, by: str) -> None:
    """Time every kernel; prints one line each."""
    import torch

    rows, kept, wrong = list[Row](), dict[tuple[Any, ...], Any](), list[str]()
    for entry in json.loads((folder / "index.json").read_text()):
        of = tuple(entry["key"][:2])
        if of not in kept:
            kept = {of: tensors_of(problem_of(*of), seed=of[0])}
        tensors, expected = kept[of]
        tensors["result"].fill_(math.nan)
        several = calls(folder / entry["file"], entry["launch"], tensors)
        for call in several:
            call()
        torch.cuda.synchronize()
        if not torch.equal(tensors["result"], expected):
            wrong.append(entry["file"])
            print(entry["file"], "wrong on whole numbers", flush=True)
            continue
        times = {"products": 0.0, "sum": 0.0, "copies": 0.0}
        for launch, call in zip(entry["launch"], several, strict=True):
            kind = "copies" if launch["writes"].startswith("whole") else "products"
            kind = "sum" if launch["name"] == "parts_sum" else kind
            times[kind] += 1e6 * graph_seconds(call)
        rows.append(Row(*entry["key"], *times.values()))
        print(entry["file"], *(f"{one:.2f}" for one in times.values()), flush=True)
    with (folder / "times.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Row._fields)
        table.writerows((*row.key, *(f"{one:.2f}" for one in row[TIMES_AT:])) for row in rows)
    if wrong:
        raise SystemExit(f"{len(wrong)} of {len(wrong) + len(rows)} kernels are wrong")


def read(path: Path) -> list[Row]:
    """The rows of a table of times."""
    with path.open(newline="") as file:
        _, *rows = csv.reader(file)
    return [
        Row(
            *(int(row[0]), row[1], *map(int, row[2:TAIL_AT]), row[TAIL_AT]),
            *map(float, row[TIMES_AT:]),
        )
        for row in rows
    ]


def fit(path: Path, by: str) -> None:
    """Print table values beside fitted ones, errors and regret, of both tables."""
    from warp_group_errors import fit_table

    rows = read(path)
    for kind, (name, names) in FITTED[by].items():
        fit_table(name, names, [row for row in rows if row.kind == kind], by)


def main() -> int:
    """Run the step that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=("compile", "run", "fit"))
    parser.add_argument("place", type=Path, nargs="?", help="folder, or table")
    parser.add_argument("--new", action="store_true", help="leave out kernels of the kept table")
    parser.add_argument("--waves", action="store_true", help="kernels of mma.sync")
    arguments = parser.parse_args()
    by = "waves" if arguments.waves else "wave groups"
    place = arguments.place or TIMES[by]
    if arguments.step == "compile":
        known = {row.key for row in read(TIMES[by])} if arguments.new else ()
        compile_all(place, by, known)
    else:
        {"run": run_all, "fit": fit}[arguments.step](place, by)
    return 0


if __name__ == "__main__":
    sys.exit(main())
