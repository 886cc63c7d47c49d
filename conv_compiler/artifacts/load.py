# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The artifact of a `.vmfb`, of one problem or of several."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.artifacts.embedded import record_of
from conv_compiler.artifacts.layer_artifact import LayerArtifact
from conv_compiler.artifacts.linked_artifact import LinkedArtifact
from conv_compiler.artifacts.record import kind_of
from conv_compiler.artifacts.sizes_artifact import SizesArtifact
from conv_compiler.binary.module_file import ModuleFile
from conv_compiler.errors import InvalidArtifact

KINDS: MappingProxyType[str, type[LinkedArtifact]] = MappingProxyType(
    {kind.KEY: kind for kind in (LayerArtifact, SizesArtifact)}
)


def load_artifact(path: Path) -> Artifact | LinkedArtifact:
    """The artifact that a file's record is of.

    Raises InvalidArtifact for a file without a record, and where it is of another module.
    """
    module = ModuleFile.read(path)
    try:
        record = record_of(module)
    except InvalidArtifact as error:
        raise InvalidArtifact(f"artifact {path}: {error}") from error
    return KINDS[kind].load(path) if (kind := kind_of(record)) else Artifact.load(path)
