# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tools/cpu_bench.py found: a line and plain values a layer, means, and the file."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conv_compiler.benchmark.turns import Timing
from conv_compiler.problem.conv_problem import ConvProblem


@dataclass(frozen=True, kw_only=True)
class Result:
    """One layer: a side without a timing has its reason in `notes`.

    `backend` is the kernel that PyTorch chose, by its own name; Mkldnn is oneDNN.
    """

    name: str
    problem: ConvProblem
    backend: str
    strategy: str = ""
    pytorch: Timing | None = None
    ours: Timing | None = None
    notes: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """How many times as fast ours is."""
        return self.pytorch.seconds / self.ours.seconds if self.pytorch and self.ours else None

    def gflops(self, side: Timing | None) -> float | None:
        """10^9 operations a second of a side, by the problem's count."""
        return self.problem.flops / side.seconds / 1e9 if side else None

    @property
    def text(self) -> str:
        """One line of the table, which names PyTorch's kernel where it is not oneDNN's."""
        cells = [f"{self.name:36}"]
        for side in (self.pytorch, self.ours):
            speed = self.gflops(side)
            cells.append(f"{speed:9.1f}{side.spread:7.0%}" if side else f"{'-':>9}{'-':>7}")
        cells.append(f"{self.ratio:7.2f}" if self.ratio else f"{'-':>7}")
        notes = ((self.backend,) if self.backend != "Mkldnn" else ()) + self.notes
        return "".join(cells) + "  " + "; ".join(filter(None, (self.strategy, *notes)))

    def to_json(self) -> dict[str, Any]:
        """Plain values, speeds and ratio included."""
        speeds = {
            "pytorch_gflops": self.gflops(self.pytorch),
            "ours_gflops": self.gflops(self.ours),
            "ratio": self.ratio,
        }
        return asdict(self) | speeds | {"problem": self.problem.to_json()}


HEADER = f"{'layer':36}{'PyTorch':>9}{'spread':>7}{'ours':>9}{'spread':>7}{'ratio':>7}  GFLOP/s"


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The ratios of some layers: of all, or of those for which PyTorch took one kernel."""

    about: str
    layers: int
    geometric_mean: float
    least: float
    least_layer: str

    @property
    def text(self) -> str:
        """One line under the table."""
        return (
            f"{self.about}: {self.layers} layers, geometric mean {self.geometric_mean:.2f}, "
            f"least {self.least:.2f} ({self.least_layer})"
        )


def summaries(results: Sequence[Result]) -> list[Summary]:
    """Of all layers that have a ratio, then of each kernel of PyTorch's where there are several."""
    timed = [one for one in results if one.ratio]
    groups = {"all": timed}
    backends = sorted({one.backend for one in timed})
    if len(backends) > 1:
        groups |= {name: [one for one in timed if one.backend == name] for name in backends}
    rows = []
    for about, group in groups.items():
        ratios = {one.name: one.ratio for one in group if one.ratio}
        if ratios:
            least = min(ratios, key=ratios.__getitem__)
            rows.append(
                Summary(
                    about=about,
                    layers=len(ratios),
                    geometric_mean=statistics.geometric_mean(ratios.values()),
                    least=ratios[least],
                    least_layer=least,
                )
            )
    return rows


def write_json(path: Path, found: Any) -> None:
    """Write a file of JSON whole, or not at all."""
    text = json.dumps(found, indent=1, allow_nan=False) + "\n"
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        staged = Path(folder) / "staged"
        staged.write_text(text)
        os.replace(staged, path)
