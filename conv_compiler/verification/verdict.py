# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a verification found: the verdict on a kernel, in words and as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import Mismatch
from conv_compiler.markup import table
from conv_compiler.strategies.warp_group_tiling import WarpGroupTiling
from conv_compiler.targets import find_target
from conv_compiler.targets.short_sums import HOPPER_F8, ShortSums
from conv_compiler.verification.comparison import Comparison
from conv_compiler.verification.tolerance import Tolerance, lost_in_sums

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.runtime.times import Times


@dataclass(frozen=True, kw_only=True)
class Report:
    """What `verify` found.

    Args:
        problem, target, device, strategy, split_k: What was run, and where.
        data, seed, runs: On what, and how often.
        tolerance: What an element may be off by.
        comparison: How many elements are wrong, the largest error, and the worst element.
        drifting: The number of elements whose bits differ between runs.
        times: The times of calls; None where none were taken, as on a virtual device.
        artifact: The compiled kernel.
        batches: The batches it was run on; several for a dynamic batch.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> report = cc.verify(problem, target="cpu", data="random", budget=0)
        >>> report.require().comparison.wrong
        0
    """

    problem: ConvProblem
    target: str
    device: str
    strategy: str
    split_k: int
    data: str
    seed: int
    tolerance: Tolerance
    comparison: Comparison
    runs: int
    drifting: int
    times: Times | None
    artifact: Artifact
    batches: tuple[int, ...]

    @property
    def repeatable(self) -> bool:
        """Whether all runs gave the same bits."""
        return self.drifting == 0

    @property
    def passed(self) -> bool:
        """Whether no element is wrong and all runs agree."""
        return self.comparison.wrong == 0 and self.repeatable

    @property
    def seconds(self) -> float:
        """The median time of a call in seconds; 0 where no time was taken."""
        return self.times.median if self.times else 0.0

    @property
    def gflops(self) -> float:
        """10^9 operations a second, by the problem's count; 0 where no time was taken."""
        return self.problem.flops / self.seconds / 1e9 if self.seconds else 0.0

    @property
    def verdict(self) -> str:
        """The outcome in a few words."""
        found = self.comparison
        if found.wrong:
            why = self._flushed_data
            return f"WRONG: {found.wrong} of {found.elements} elements, worst {found.worst}{why}"
        if not self.repeatable:
            return f"WRONG: {self.runs} runs differ in {self.drifting} of {found.elements} elements"
        how = "exact" if self.tolerance.exact else f"within tolerance, error {found.max_error:.1e}"
        return f"right ({how})"

    def _repr_html_(self) -> str:
        """The outcome as a table, for notebooks."""
        rows = [
            ("problem", self.problem.name),
            ("where", f"{self.target} on {self.device}"),
            ("strategy", f"{self.strategy}, split-K {self.split_k}"),
            ("data", f"{self.data}, seed {self.seed}, {self.runs} runs"),
            ("result", self.verdict),
        ]
        if self.times:
            rows.append(("median time", f"{self.seconds * 1e6:.4g} us, {self.gflops:.4g} GFLOP/s"))
        return table(("", ""), rows)

    @property
    def _flushed_data(self) -> str:
        """What to do about denormals of f16 that were taken as 0, where data have them."""
        if self.data != "denormal" or self.problem.data_type.is_integer:
            return ""
        flushed = flushed_types(self.artifact)
        lost = {*self.problem.operand_dtypes} & {*flushed} - {*lost_in_sums(self.problem, flushed)}
        if not lost:
            return ""
        return f"; {self.target} takes denormals of {' and '.join(lost)} as 0, --compute bf16 none"

    @property
    def text(self) -> str:
        """One line a person reads."""
        text = f"{self.problem.name} on {self.device}, {self.strategy}: {self.verdict}"
        if not self.times:
            return text
        least, median, most = (
            f"{1e3 * time:.3f}" for time in (self.times.least, self.seconds, self.times.most)
        )
        return f"{text}, {median} ms ({least} to {most}), {self.gflops:.1f} GFLOP/s"

    def to_json(self) -> dict[str, Any]:
        """Plain values for machines; floats may be NaN where a kernel gave NaN."""
        names = ("target", "device", "strategy", "split_k", "data", "seed", "runs", "drifting")
        return {
            "problem": self.problem.to_json(),
            **{name: getattr(self, name) for name in names},
            "batches": list(self.batches),
            "passed": self.passed,
            "repeatable": self.repeatable,
            "tolerance": self.tolerance.to_json(),
            **asdict(self.comparison),
            "seconds": self.seconds,
            "gflops": self.gflops,
            "times": asdict(self.times) if self.times else None,
            "artifact": self.artifact.to_json(),
        }

    def require(self) -> Report:
        """The report itself; raises Mismatch unless it passed."""
        if not self.passed:
            raise Mismatch(f"kernel {self.problem.name}: {self.verdict}; {self.strategy}")
        return self


def flushed_types(artifact: Artifact) -> tuple[str, ...]:
    """The types whose denormals the instructions of a kernel take as 0."""
    target = find_target(artifact.target)
    return target.flushed if artifact.strategy.mma or not target.is_gpu else ()


def short_sums(artifact: Artifact) -> ShortSums | None:
    """What an instruction of a kernel loses of sums, if it keeps fewer bits than their type."""
    tiling = artifact.strategy.tiling
    return HOPPER_F8 if isinstance(tiling, WarpGroupTiling) and tiling.adds_tiles else None
