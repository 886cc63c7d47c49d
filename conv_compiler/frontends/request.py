# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user asks for: a problem and the split-K values to build it with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem

SplitK = int | Literal["auto", "occupancy"]

# Of 2^63; Python refuses to read numbers of thousands.
MOST_DIGITS = 19
# ckProfiler's sweep for the word `all`, in its order; -1 is its word for "auto".
ALL_SPLITS: tuple[SplitK, ...] = ("auto", 1, 2, 4, 8, 16, 32, 64, 128)
# Its sweep where it has no rule of its own.
POWERS: tuple[SplitK, ...] = ALL_SPLITS[1:]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One problem and its wanted split-K values, in order.

    `split_k` is empty when the user named none. `label` is a name of the user's own, such as a
    layer's. `note` is what the user is to know of how the request was understood. `ignored` are
    the words that say how to measure, which has no meaning here.
    """

    problem: ConvProblem
    split_k: tuple[SplitK, ...] = ()
    label: str = ""
    note: str = ""
    ignored: tuple[str, ...] = ()

    @property
    def splits(self) -> tuple[SplitK, ...]:
        """The values to build: those asked for, or "auto"; `all` means all that are possible."""
        if self.split_k in (ALL_SPLITS, POWERS):
            from conv_compiler.problem.canonical import canonical

            most = canonical(self.problem).gemm_k
            return tuple(s for s in self.split_k if isinstance(s, str) or s <= most)
        return self.split_k or ("auto",)

    def with_split_k(self, split_k: tuple[SplitK, ...]) -> Request:
        """The request with split-K values from elsewhere on the command line.

        Raises UnsupportedProblem when the request already names others.
        """
        if not split_k or split_k == self.split_k:
            return self
        if self.split_k:
            raise UnsupportedProblem(
                f"--split-k {_spell(split_k)}: the problem itself asks for "
                f"{_spell(self.split_k)}; give it once"
            )
        return replace(self, split_k=split_k)

    def with_batch(self, n: int | None) -> Request:
        """The request over another batch size; unchanged for None."""
        return self if n is None else replace(self, problem=self.problem.with_batch(n))

    def with_dynamic_batch(self) -> Request:
        """The request for a kernel that takes any batch, the problem's `n` images at a time."""
        return replace(self, problem=replace(self.problem, dynamic_batch=True))


def is_count(text: str) -> bool:
    """Whether a word is a plain number, of no more digits than any size has."""
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def is_number(text: str) -> bool:
    """Whether a word is a whole number, below 0 too."""
    return is_count(text.removeprefix("-"))


def parse_split_k(value: Any, name: str = "--split-k") -> tuple[SplitK, ...]:
    """Split-K values from `auto`, -1 (auto), `occupancy`, `all`, a number, `1,2,4`, or a list.

    Raises UnsupportedProblem, naming the flag `name`, for anything else and for numbers below 1.
    """
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    if not parts:
        raise UnsupportedProblem(f"{name}: an empty list; leave it out for auto")
    found: list[SplitK] = []
    for part in parts:
        text = str(part).strip()
        if text == "all":
            found += ALL_SPLITS
        elif text in ("auto", "-1"):
            found.append("auto")
        elif text == "occupancy":
            found.append("occupancy")
        elif is_count(text) and int(text) >= 1:
            found.append(int(text))
        else:
            raise UnsupportedProblem(
                f"{name} {text}: not a split; "
                "use auto (or -1), occupancy, all, or numbers of 1 or more"
            )
    return tuple(dict.fromkeys(found))


def _spell(split_k: tuple[SplitK, ...]) -> str:
    return ",".join(map(str, split_k))
