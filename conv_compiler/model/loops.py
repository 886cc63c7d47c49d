# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Basic blocks and loops of a kernel, and which loop is its main one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from conv_compiler.model.instructions import Instruction


@dataclass(frozen=True, kw_only=True)
class Block:
    """Instructions that run one after another: entered at the first, left after the last."""

    instructions: tuple[Instruction, ...]

    @property
    def start(self) -> int:
        """Address of the first instruction."""
        return self.instructions[0].address

    @property
    def last(self) -> Instruction:
        """The instruction that decides where to go."""
        return self.instructions[-1]


@dataclass(frozen=True, kw_only=True)
class Loop:
    """The blocks from the target of a back edge to the branch that takes it, by index."""

    first: int
    last: int

    def __contains__(self, block: int) -> bool:
        return self.first <= block <= self.last


def blocks(code: Sequence[Instruction]) -> tuple[Block, ...]:
    """Basic blocks in address order."""
    starts = {code[0].address} if code else set()
    for before, after in pairwise(code):
        if before.target is not None or before.name.startswith("s_endpgm"):
            starts.add(after.address)
    starts |= {i.target for i in code if i.target is not None}
    found: list[list[Instruction]] = []
    for instruction in code:
        if instruction.address in starts and not instruction.dual:
            found.append([])
        found[-1].append(instruction)
    return tuple(Block(instructions=tuple(part)) for part in found)


def index_at(parts: Sequence[Block], address: int) -> int:
    """The block that holds an address."""
    return bisect_right([block.start for block in parts], address) - 1


def loops(parts: Sequence[Block]) -> tuple[Loop, ...]:
    """One loop a header, as far as its last back edge, in address order of the header.

    A block behind the branch that a header reaches only by jumping out and back (as compilers
    place the exit test of a rotated loop) belongs to the loop, for the back edge is in it.
    """
    ends: dict[int, int] = {}
    for i, block in enumerate(parts):
        if block.last.target is not None and block.last.target <= block.start:
            header = index_at(parts, block.last.target)
            ends[header] = max(i, ends.get(header, i))
    return tuple(Loop(first=first, last=last) for first, last in sorted(ends.items()))


def innermost(found: Sequence[Loop]) -> tuple[Loop, ...]:
    """Those that hold no other loop."""
    return tuple(
        one
        for one in found
        if not any(other != one and other.first in one and other.last in one for other in found)
    )


def main_loop(parts: Sequence[Block], work: Callable[[int], tuple[float, ...]]) -> Loop | None:
    """The innermost loop with the most `work`: a block's, as a tuple compared in order.

    None where there is no loop, or no work in any.
    """
    ranked = [
        (tuple(map(sum, zip(*(work(b) for b in range(one.first, one.last + 1)), strict=True))), one)
        for one in innermost(loops(parts))
    ]
    amount, best = max(ranked, key=lambda entry: entry[0], default=((0.0,), None))
    return best if any(amount) else None
