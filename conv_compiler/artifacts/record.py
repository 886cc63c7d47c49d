# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record of an artifact: what it says, checked before anybody reads it.

A record states a SHA-256 over itself and its module, so that neither is taken for what it is not.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from conv_compiler.artifacts.kernel_facts import KernelFacts
from conv_compiler.errors import InvalidArtifact
from conv_compiler.typed import decoded, typed

_SIGNATURE = "sha256"
# Under which a layer's record has those of its results.
RESULTS = "results"


@dataclass(frozen=True, kw_only=True)
class Record:
    """The values of a record by type; problem and strategy are read by their own classes."""

    problem: dict[str, Any]
    target: str
    strategy: dict[str, Any]
    kernels: tuple[KernelFacts, ...]
    rejected: tuple[str, ...]
    seconds: float | None = None

    @classmethod
    def of(cls, values: Any) -> Record:
        """A decoded record's. Raises InvalidArtifact where one is missing or of another type."""
        return typed(values, cls, "record", InvalidArtifact)


def records_of(values: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """The records of a layer's results.

    Raises InvalidArtifact where the record is of a single problem, or of no result.
    """
    if not (found := values.get(RESULTS)):
        raise InvalidArtifact("record: of a single problem; load it as an Artifact")
    return typed(found, tuple[dict[str, Any], ...], "record", InvalidArtifact)


def checksum(values: dict[str, Any], module: bytes) -> str:
    """SHA-256 over a record, without its signature, and its module."""
    unsigned = {name: value for name, value in values.items() if name != _SIGNATURE}
    digest = hashlib.sha256(json.dumps(unsigned, sort_keys=True).encode())
    digest.update(module)
    return digest.hexdigest()


def signed(values: dict[str, Any], module: bytes) -> dict[str, Any]:
    """A record with its signature."""
    return {**values, _SIGNATURE: checksum(values, module)}


def read_record(text: str | bytes, module: bytes) -> dict[str, Any]:
    """The values of a record's text, whose types are those of Record.

    Raises InvalidArtifact for text that is no record, and for one of another module or altered.
    """
    values = typed(
        decoded(text, "record", InvalidArtifact), dict[str, Any], "record", InvalidArtifact
    )
    for one in records_of(values) if RESULTS in values else (values,):
        Record.of(one)
    if values.get(_SIGNATURE) != checksum(values, module):
        raise InvalidArtifact(
            "record: altered, or not the module that it was written for; compile it again"
        )
    return values
