# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Published, measured times of single operations on AMD GPUs, as `tests/data` keeps them.

None was measured by this project. docs/model-against-silicon.md says how they were chosen.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conv_compiler.model.roofline import Work, work_of
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.targets import Target

FILE = Path(__file__).parents[1] / "tests" / "data" / "published_times.json"
# What a time is of, and whether the roofline may be held against it.
CLASSES = {
    "kernel": "device time of the kernels of an operation, by a profiler or events",
    "find-db": "the best of MIOpen's solvers as its database states it",
    "find-db weight gradient": "the same; zeroing and casting kernels may be left out of it",
    "library": "a library's call with its launch, or not said which",
}
TRUSTED = ("kernel", "find-db")
# One in so many records is held out of every fit.
HELD_OUT_OF = 3
_OPERATIONS = ("problem", "gemm", "copy")


@dataclass(frozen=True, kw_only=True)
class Gemm:
    """C(m, n) = A(m, k) B(k, n); `layout` says which operand is stored transposed (NN, NT, TN)."""

    m: int
    n: int
    k: int
    dtype: str
    result_dtype: str
    layout: str = ""

    @property
    def work(self) -> Work:
        """Its arithmetic and bytes."""
        operands = (self.m * self.k + self.k * self.n) * DTYPES[self.dtype].bytes
        result = self.m * self.n * DTYPES[self.result_dtype].bytes
        return Work(
            flops=2.0 * self.m * self.n * self.k,
            operands=(self.dtype, self.dtype),
            bytes=operands + result,
        )


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A stream over memory."""

    bytes_read: int
    bytes_written: int

    @property
    def work(self) -> Work:
        """No arithmetic."""
        moved = self.bytes_read + self.bytes_written
        return Work(flops=0.0, operands=("f32", "f32"), bytes=moved)


@dataclass(frozen=True, kw_only=True)
class Record:
    """One published time. `kind` is a key of CLASSES, `card` the product that was measured."""

    id: str
    chip: str
    card: str
    operation: ConvProblem | Gemm | Copy
    software: str
    us: float
    kind: str
    date: str
    source: str

    @property
    def seconds(self) -> float:
        """The measured time."""
        return self.us * 1e-6

    @property
    def trusted(self) -> bool:
        """Whether it is the device time of complete kernels."""
        return self.kind in TRUSTED

    @property
    def held_out(self) -> bool:
        """Whether no fit may look at it: by a hash of its id, so nobody chose."""
        return int(hashlib.sha256(self.id.encode()).hexdigest(), 16) % HELD_OUT_OF == 0

    @property
    def is_iree(self) -> bool:
        """Whether IREE's compiler made the kernel."""
        return self.software.startswith("IREE")

    @property
    def what(self) -> str:
        """The direction of a convolution, "gemm" or "copy"."""
        if isinstance(self.operation, ConvProblem):
            return self.operation.direction
        return "gemm" if isinstance(self.operation, Gemm) else "copy"

    def work(self, target: Target) -> Work:
        """What any kernel of it does at least."""
        if isinstance(self.operation, ConvProblem):
            return work_of(self.operation, target)
        return self.operation.work


def record_of(values: dict[str, Any]) -> Record:
    """A record from its JSON.

    Raises ValueError for one that states no operation, or more than one, or an unknown class;
    UnsupportedProblem for a problem that is none.
    """
    stated = [name for name in _OPERATIONS if name in values]
    if len(stated) != 1:
        raise ValueError(f"record {values['id']}: states {stated}; one of {_OPERATIONS} is due")
    if values["class"] not in CLASSES:
        raise ValueError(f"record {values['id']}: class {values['class']} is not in CLASSES")
    given = values[stated[0]]
    operation: ConvProblem | Gemm | Copy
    if stated[0] == "problem":
        operation = ConvProblem.from_json(given)
    else:
        operation = Gemm(**given) if stated[0] == "gemm" else Copy(**given)
    names = ("id", "chip", "card", "software", "us", "date", "source")
    return Record(
        **{name: values[name] for name in names}, kind=values["class"], operation=operation
    )


def published() -> tuple[Record, ...]:
    """All records, in the file's order."""
    return tuple(record_of(one) for one in json.loads(FILE.read_text())["records"])
