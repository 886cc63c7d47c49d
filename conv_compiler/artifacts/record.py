# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record of an artifact: what it says, checked before anybody reads it.

A record states a SHA-256 over itself and its module, so that neither is taken for what it is not.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from conv_compiler.artifacts.kernel_facts import KernelFacts
from conv_compiler.errors import InvalidArtifact
from conv_compiler.typed import decoded, typed

_SIGNATURE = "sha256"
# Under which the record of a module of several problems has those of each.
RESULTS, SIZES = "results", "sizes"
# What such a module is of, and the class that loads it.
SEVERAL = MappingProxyType(
    {
        RESULTS: "a layer of several results; load it as LayerArtifact",
        SIZES: "several sizes; load it as SizesArtifact",
    }
)


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


def kind_of(values: dict[str, Any]) -> str | None:
    """RESULTS or SIZES for the record of a module of several problems; None for one of one."""
    return next((key for key in SEVERAL if key in values), None)


def records_of(values: dict[str, Any], key: str) -> tuple[dict[str, Any], ...]:
    """The records of each problem of a module of several, under RESULTS or SIZES.

    Raises InvalidArtifact where the record is of another kind of module, or of no problem.
    """
    if (kind := kind_of(values)) != key:
        other = SEVERAL[kind] if kind else "a single problem; load it as an Artifact"
        raise InvalidArtifact(f"record: of {other}")
    if not (found := values[key]):
        raise InvalidArtifact("record: of no problem; compile it again")
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
    kind = kind_of(values)
    for one in records_of(values, kind) if kind else (values,):
        Record.of(one)
    if values.get(_SIGNATURE) != checksum(values, module):
        raise InvalidArtifact(
            "record: altered, or not the module that it was written for; compile it again"
        )
    return values
