"""What a compilation leaves: a `.vmfb`, and the record of what it is that lies beside it."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conv_compiler.errors import ConvError, InvalidArtifact
from conv_compiler.facts import KernelFacts
from conv_compiler.module_file import ModuleFile
from conv_compiler.problem import ConvProblem
from conv_compiler.record import Record, read_record, signed
from conv_compiler.strategy import Strategy
from conv_compiler.targets import find_target


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
    def main_kernel(self) -> KernelFacts:
        """The kernel that holds the contraction."""
        return next((k for k in self.kernels if k.role == "contraction"), self.kernels[0])

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
        """The artifact a record describes.

        Raises InvalidArtifact for one whose values are not those that `to_json` writes.
        """
        values = Record.of(record)
        try:
            return cls(
                problem=ConvProblem.from_json(values.problem),
                target=find_target(values.target).name,
                strategy=Strategy.from_json(values.strategy),
                vmfb=vmfb,
                kernels=values.kernels,
                seconds=values.seconds,
                rejected=values.rejected,
                cached=cached,
            )
        except ConvError as error:
            raise InvalidArtifact(f"record: {error}") from error

    @classmethod
    def load(cls, path: str | Path) -> Artifact:
        """The artifact of a `.vmfb` written by `save`.

        Raises InvalidArtifact without its record, and where the record is of another module.
        """
        vmfb = Path(path)
        beside = vmfb.with_suffix(".json")
        try:
            text = beside.read_bytes()
        except OSError as error:
            raise InvalidArtifact(
                f"artifact {vmfb}: {beside.name} beside it is missing; "
                "compile it with `conv-compiler compile -o`"
            ) from error
        module = ModuleFile.read(vmfb)
        try:
            return cls.from_record(vmfb, read_record(text, module.data), cached=True)
        except InvalidArtifact as error:
            raise InvalidArtifact(
                f"artifact {vmfb}: {beside.name} beside it is no record of it ({error})"
            ) from error

    def save(self, path: str | Path) -> Artifact:
        """Copy the module to `path` and its record beside it; both or neither appear."""
        target = Path(path)
        with tempfile.TemporaryDirectory(dir=target.parent) as staging:
            module, record = Path(staging) / "module", Path(staging) / "record"
            module.write_bytes(self.vmfb.read_bytes())
            values = signed(self.to_json(), module.read_bytes())
            record.write_text(json.dumps(values, indent=1))
            module.replace(target)
            record.replace(target.with_suffix(".json"))
        return replace(self, vmfb=target)
