# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compilation leaves: a `.vmfb`, and the record of what it is that lies in it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.artifacts.embedded import record_of, save_with_record
from conv_compiler.artifacts.kernel_facts import KernelFacts
from conv_compiler.artifacts.record import SEVERAL, Record, kind_of
from conv_compiler.binary.module_file import ModuleFile
from conv_compiler.errors import ConvError, InvalidArtifact
from conv_compiler.markup import element, table
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import find_target

if TYPE_CHECKING:
    from conv_compiler.storage.cache import Entry


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A compiled problem: its `.vmfb` and the facts of its kernels.

    Args:
        problem: The problem, with `compute` where the target decided it.
        target: The target it was compiled for.
        strategy: The strategy of its kernel.
        vmfb: The file of the module.
        kernels: The facts of each kernel, read from its machine code: registers, LDS, instructions.
        seconds: How long compiling took; None for a file that `save` wrote, because equal kernels
            make equal files.
        rejected: The better-ranked candidates whose kernels broke a promise, each with the reason.
        cached: Whether it was found in the cache.
        tuned: How the tuning store's choice was found, where its strategy came from there; else
            empty.
        held: The bytes of a module from the cache, which may remove its file.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> artifact = cc.compile(problem, target="cpu").save("wgrad.vmfb")
        >>> cc.Artifact.load("wgrad.vmfb").problem == problem
        True
    """

    problem: ConvProblem
    target: str
    strategy: Strategy
    vmfb: Path
    kernels: tuple[KernelFacts, ...]
    seconds: float | None
    rejected: tuple[str, ...] = ()
    cached: bool = False
    tuned: str = ""
    held: bytes = field(default=b"", repr=False, compare=False)

    @property
    def module(self) -> bytes:
        """The bytes of the `.vmfb`. Raises InvalidArtifact where they cannot be read."""
        try:
            return self.held or self.vmfb.read_bytes()
        except OSError as error:
            raise InvalidArtifact(
                f"artifact {self.vmfb}: {error.strerror or error}; compile it again"
            ) from error

    @property
    def main_kernel(self) -> KernelFacts | None:
        """The kernel that holds the contraction, or does most in its place; None without kernels,
        as an empty result has none."""
        return next(
            (k for k in self.kernels if k.role == "contraction"), next(iter(self.kernels), None)
        )

    def _repr_html_(self) -> str:
        """What it is and its kernels as a table, for notebooks."""
        header = ("kernel", "matrix instructions", "VGPRs", "LDS", "spills")
        rows = [
            (
                one.name,
                ", ".join(f"{name} x{count}" for name, count in one.mma.items()) or "-",
                *(
                    "-" if fact is None else str(fact)
                    for fact in (one.vgprs, one.lds_bytes, one.spills)
                ),
            )
            for one in self.kernels
        ]
        title = element("b", f"{self.problem.name} on {self.target}")
        return element("div", title, element("br"), self.strategy.text, table(header, rows))

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_record` reads them back."""
        return {
            "problem": self.problem.to_json(),
            "target": self.target,
            "strategy": self.strategy.to_json(),
            "kernels": [kernel.to_json() for kernel in self.kernels],
            "seconds": self.seconds,
            "rejected": list(self.rejected),
        }

    @classmethod
    def of_entry(cls, entry: Entry, *, cached: bool) -> Artifact:
        """The artifact that lies in the cache."""
        found = cls.from_record(entry.vmfb, entry.record, cached=cached)
        return replace(found, held=entry.module)

    @classmethod
    def from_record(cls, vmfb: Path, record: dict[str, Any], *, cached: bool) -> Artifact:
        """The artifact a record describes.

        Raises InvalidArtifact for one whose values are not those that `to_json` writes.
        """
        if kind := kind_of(record):
            raise InvalidArtifact(f"record: of {SEVERAL[kind]}")
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

        Raises InvalidArtifact for one without a record, and where it is of another module.
        """
        vmfb = Path(path)
        module = ModuleFile.read(vmfb)
        try:
            return cls.from_record(vmfb, record_of(module), cached=True)
        except InvalidArtifact as error:
            raise InvalidArtifact(f"artifact {vmfb}: {error}") from error

    def save(self, path: str | Path) -> Artifact:
        """Write the module with its record in it to `path`, whole or not at all.

        Raises InvalidOutput where that cannot be written or holds anything but such a file.
        """
        target, record = Path(path), self.to_json()
        del record["seconds"]
        save_with_record(target, self.module, record)
        return replace(self, vmfb=target)
