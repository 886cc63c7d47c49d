# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiling a layer leaves: one `.vmfb` of all its results, and the record of each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.artifacts.embedded import record_of, save_with_record
from conv_compiler.artifacts.record import RESULTS, records_of
from conv_compiler.binary.module_file import ModuleFile
from conv_compiler.errors import ConvError, InvalidArtifact
from conv_compiler.problem.layer import Layer

if TYPE_CHECKING:
    from conv_compiler.storage.cache import Entry


@dataclass(frozen=True, kw_only=True)
class LayerArtifact:
    """A compiled layer: its `.vmfb`, and what `compile` says of each of its results.

    Args:
        artifacts: One for each problem of the layer, in order. Each names the `.vmfb` of the layer.
        vmfb: The file of the module.
        cached: Whether it was found in the cache.
        held: The bytes of a module from the cache, which may remove its file.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> artifact = cc.compile_layer(cc.Layer.of(problem), target="cpu")
        >>> [one.strategy.name for one in artifact.artifacts][-1]
        'channel_sums'
    """

    artifacts: tuple[Artifact, ...]
    vmfb: Path
    cached: bool = False
    held: bytes = field(default=b"", repr=False, compare=False)

    @property
    def layer(self) -> Layer:
        """The layer, with `compute` where the target decided it."""
        return Layer(problems=tuple(one.problem for one in self.artifacts))

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
        return {RESULTS: [one.to_json() for one in self.artifacts]}

    @classmethod
    def of_entry(cls, entry: Entry, *, cached: bool) -> LayerArtifact:
        """The artifact that lies in the cache."""
        found = cls.from_record(entry.vmfb, entry.record, cached=cached)
        return replace(found, held=entry.module)

    @classmethod
    def from_record(cls, vmfb: Path, record: dict[str, Any], *, cached: bool) -> LayerArtifact:
        """The artifact a record describes.

        Raises InvalidArtifact for one whose values are not those that `to_json` writes.
        """
        every = records_of(record)
        found = tuple(Artifact.from_record(vmfb, one, cached=cached) for one in every)
        try:
            Layer(problems=tuple(one.problem for one in found))
        except ConvError as error:
            raise InvalidArtifact(f"record: {error}") from error
        return cls(artifacts=found, vmfb=vmfb, cached=cached)

    @classmethod
    def load(cls, path: str | Path) -> LayerArtifact:
        """The artifact of a `.vmfb` written by `save`.

        Raises InvalidArtifact for one without a record of a layer, and where it is of another
        module.
        """
        vmfb = Path(path)
        module = ModuleFile.read(vmfb)
        try:
            return cls.from_record(vmfb, record_of(module), cached=True)
        except InvalidArtifact as error:
            raise InvalidArtifact(f"artifact {vmfb}: {error}") from error

    def save(self, path: str | Path) -> LayerArtifact:
        """Write the module with its record in it to `path`, whole or not at all.

        Raises InvalidOutput where that cannot be written or holds anything but such a file.
        """
        target, record = Path(path), self.to_json()
        for one in record[RESULTS]:
            del one["seconds"]
        save_with_record(target, self.module, record)
        every = tuple(replace(one, vmfb=target) for one in self.artifacts)
        return replace(self, artifacts=every, vmfb=target)
