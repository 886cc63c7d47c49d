# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How often each block of a kernel runs: its scalar instructions, executed for one wave.

Iteration counts of compiled kernels are decided by scalar registers that hold constants, so
executing the scalar unit alone gives them exactly, nested loops included. What comes from vector
registers or memory is unknown; lanes are taken as active. Where that decides nothing, the first
lane alone is followed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

from conv_compiler.errors import ModelRefused
from conv_compiler.model.loops import Block, index_at, loops
from conv_compiler.model.wave import Wave, matters

MOST_BLOCKS = 2_000_000


def run_counts(parts: Sequence[Block], registers: Mapping[str, int]) -> tuple[int, ...]:
    """How often each block runs, from the first block to the end of the program.

    `registers` are known from the start (workgroup ids). A forward branch on an unknown value falls
    through, that is to say its lanes have work. A loop that lanes leave one by one runs as often as
    for the first lane.

    Raises ModelRefused when an unknown value decides whether a loop goes on, or nothing ends.
    """
    return _run_counts(tuple(parts), tuple(registers.items()))


@lru_cache(maxsize=256)
def _run_counts(
    parts: tuple[Block, ...], registers: tuple[tuple[str, int], ...]
) -> tuple[int, ...]:
    for wave in (
        Wave(dict(registers), vectors=False),
        # Some loops count in a vector register, the same in all lanes; slower to follow.
        Wave(dict(registers), vectors=True),
    ):
        with suppress(_UnknownTrips):
            return _run(parts, wave)
    # Others are left lane by lane. The first lane has as much to do as any in loops over what is
    # left of a row.
    return _run(parts, Wave(dict(registers), vectors=True, first_lane=True))


class _UnknownTrips(ModelRefused):
    """A value that is not known decides whether a loop goes on."""


def _run(parts: Sequence[Block], wave: Wave) -> tuple[int, ...]:
    counts = [0] * len(parts)
    effects = [tuple(i for i in block.instructions if matters(i, wave.vectors)) for block in parts]
    targets = [
        None if block.last.target is None else index_at(parts, block.last.target) for block in parts
    ]
    nests = loops(parts)
    at = 0
    for _ in range(MOST_BLOCKS):
        counts[at] += 1
        for one in effects[at]:
            wave.run(one)
        last, target = parts[at].last, targets[at]
        if last.name.startswith("s_endpgm"):
            return tuple(counts)
        taken = target is not None and (wave.taken(last) if last.conditional else True)
        if taken and not wave.first_lane and last.name == "s_cbranch_execnz":
            assert target is not None
            taken = None if target <= at else taken  # lanes that stay active never leave
        if taken is None:
            assert target is not None
            if target <= at or any(at in loop and target not in loop for loop in nests):
                raise _UnknownTrips(
                    f"loop at {last.address:#x}: {last.name} hangs on a value that is not a "
                    "constant, so its iterations are unknown to the model"
                )
            taken = False
        at = target if taken and target is not None else at + 1
        if at >= len(parts):
            return tuple(counts)
    raise ModelRefused(f"kernel: still running after {MOST_BLOCKS} blocks; give a smaller problem")
