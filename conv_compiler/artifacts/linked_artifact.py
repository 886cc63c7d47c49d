# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiling several problems into one module leaves: its `.vmfb`, and the record of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.artifacts.embedded import record_of, save_with_record
from conv_compiler.artifacts.record import records_of
from conv_compiler.binary.module_file import ModuleFile
from conv_compiler.errors import ConvError, InvalidArtifact

if TYPE_CHECKING:
    from conv_compiler.storage.cache import Entry


@dataclass(frozen=True, kw_only=True)
class LinkedArtifact(ABC):
    """Several compiled problems in one `.vmfb`, and what `compile` says of each.

    Args:
        artifacts: One for each problem, in order. Each names the `.vmfb` of all.
        vmfb: The file of the module.
        cached: Whether it was found in the cache.
        held: The bytes of a module from the cache, which may remove its file.
    """

    # Under which a record has those of the problems.
    KEY: ClassVar[str]

    artifacts: tuple[Artifact, ...]
    vmfb: Path
    cached: bool = False
    held: bytes = field(default=b"", repr=False, compare=False)

    @abstractmethod
    def check(self) -> None:
        """Raise ConvError where the problems are not of one module of this kind."""

    @property
    def target(self) -> str:
        """The target it was compiled for."""
        return self.artifacts[0].target

    @property
    def module(self) -> bytes:
        """The bytes of the `.vmfb`. Raises InvalidArtifact where they cannot be read."""
        return replace(self.artifacts[0], vmfb=self.vmfb, held=self.held).module

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_record` reads them back."""
        return {self.KEY: [one.to_json() for one in self.artifacts]}

    @classmethod
    def of_entry(cls, entry: Entry, *, cached: bool) -> Self:
        """The artifact that lies in the cache."""
        found = cls.from_record(entry.vmfb, entry.record, cached=cached)
        return replace(found, held=entry.module)

    @classmethod
    def from_record(cls, vmfb: Path, record: dict[str, Any], *, cached: bool) -> Self:
        """The artifact a record describes.

        Raises InvalidArtifact for one whose values are not those that `to_json` writes.
        """
        every = records_of(record, cls.KEY)
        artifacts = tuple(Artifact.from_record(vmfb, one, cached=cached) for one in every)
        found = cls(artifacts=artifacts, vmfb=vmfb, cached=cached)
        try:
            found.check()
        except ConvError as error:
            raise InvalidArtifact(f"record: {error}") from error
        return found

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The artifact of a `.vmfb` written by `save`.

        Raises InvalidArtifact for one without such a record, and where it is of another module.
        """
        vmfb = Path(path)
        module = ModuleFile.read(vmfb)
        try:
            return cls.from_record(vmfb, record_of(module), cached=True)
        except InvalidArtifact as error:
            raise InvalidArtifact(f"artifact {vmfb}: {error}") from error

    def save(self, path: str | Path) -> Self:
        """Write the module with its record in it to `path`, whole or not at all.

        Raises InvalidOutput where that cannot be written or holds anything but such a file.
        """
        target, record = Path(path), self.to_json()
        for one in record[self.KEY]:
            del one["seconds"]
        save_with_record(target, self.module, record)
        every = tuple(replace(one, vmfb=target) for one in self.artifacts)
        return replace(self, artifacts=every, vmfb=target)
