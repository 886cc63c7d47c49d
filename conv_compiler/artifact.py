"""What a compilation leaves: a `.vmfb`, and the record of what it is that lies beside it."""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conv_compiler.errors import ConvError, InvalidArtifact
from conv_compiler.facts import KernelFacts
from conv_compiler.problem import ConvProblem
from conv_compiler.strategy import Strategy


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A compiled problem: where its `.vmfb` lies and what its kernels are.

    `seconds` is what compiling took (when it was compiled); `cached` whether it was found ready;
    `rejected` the better-ranked candidates whose machine code broke a promise, with the reason.
    """

    problem: ConvProblem
    target: str
    strategy: Strategy
    vmfb: Path
    kernels: tuple[KernelFacts, ...]
    seconds: float
    rejected: tuple[str, ...] = ()
    cached: bool = False

    @property
    def main_kernel(self) -> KernelFacts | None:
        """The kernel that holds the contraction, or does most in its place; None without kernels,
        as an empty result has none."""
        return next(
            (k for k in self.kernels if k.role == "contraction"), next(iter(self.kernels), None)
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values; `load` reads them back from `<name>.json` beside `<name>.vmfb`."""
        return {
            "problem": self.problem.to_json(),
            "target": self.target,
            "strategy": self.strategy.to_json(),
            "kernels": [kernel.to_json() for kernel in self.kernels],
            "seconds": self.seconds,
            "rejected": list(self.rejected),
        }

    @classmethod
    def from_record(cls, vmfb: Path, record: dict[str, Any], *, cached: bool) -> Artifact:
        """The artifact a record describes."""
        return cls(
            problem=ConvProblem.from_json(record["problem"]),
            target=record["target"],
            strategy=Strategy.from_json(record["strategy"]),
            vmfb=vmfb,
            kernels=tuple(KernelFacts(**kernel) for kernel in record["kernels"]),
            seconds=record["seconds"],
            rejected=tuple(record["rejected"]),
            cached=cached,
        )

    @classmethod
    def load(cls, path: str | Path) -> Artifact:
        """The artifact of a `.vmfb` written by `save`.

        Raises InvalidArtifact without its record, and where the record is of another module.
        """
        vmfb = Path(path)
        try:
            record = json.loads(vmfb.with_suffix(".json").read_text())
            artifact, written_for = cls.from_record(vmfb, record, cached=True), record["sha256"]
            found = _sha256(vmfb)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, ConvError) as error:
            raise InvalidArtifact(
                f"artifact {vmfb}: {vmfb.with_suffix('.json').name} beside it is missing or not a "
                "record of ours; compile it with `conv-compiler compile -o`"
            ) from error
        if found != written_for:
            raise InvalidArtifact(
                f"artifact {vmfb}: not the module that {vmfb.with_suffix('.json').name} was "
                "written for; compile it again"
            )
        return artifact

    def save(self, path: str | Path) -> Artifact:
        """Copy the module to `path` and its record beside it; both or neither appear."""
        target = Path(path)
        with tempfile.TemporaryDirectory(dir=target.parent) as staging:
            module, record = Path(staging) / "module", Path(staging) / "record"
            module.write_bytes(self.vmfb.read_bytes())
            values = {**self.to_json(), "sha256": _sha256(module)}
            record.write_text(json.dumps(values, indent=1))
            module.replace(target)
            record.replace(target.with_suffix(".json"))
        return replace(self, vmfb=target)
