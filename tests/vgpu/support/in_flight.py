"""Which instructions touch what their wave has not waited for, on any way through a kernel's branches.

A second opinion of the checks, from the code alone: nothing is executed. A wait that is loosened
without one such instruction changes nothing, whatever the kernel is given.

Loads from memory, on gfx9 with the stores between them, are done in their order, and so are accesses
of LDS: a wait that leaves n in flight leaves the last n. Scalar loads are done in any order, so only
a wait that leaves nothing says that one is done. LDS accesses of one wave need no waits among each
other. What lies where in LDS is not known from the code: loads that write to LDS are followed as
positions alone. No kernel that is looked at reads memory that it writes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from conv_compiler.vgpu.program import TEMP, VCC, VGPR0, Operand, Record
from tests.vgpu.support.kernels import (
    BARRIER_STARTS,
    Kernel,
    limit_of,
    loads_memory,
    loads_to_lds,
    stores_memory,
)

LOAD, LDS, SCALAR = "load", "lds", "scalar"
MOST_IN_FLIGHT = 63  # the hardware waits by itself before a counter overflows
_ELSEWHERE = ("s_setpc", "s_swappc", "s_call", "flat_", "scratch_")
Queue = tuple[frozenset[int], ...]  # instructions by how many of their kind were begun after them


def is_lds(r: Record) -> bool:
    """Whether it reads or writes LDS by an address of its own."""
    return r.name.startswith("ds_") and not any(word in r.name for word in ("permute", "swizzle"))


def _registers(*operands: Operand) -> frozenset[int]:
    """Codes of the registers among operands, accumulation registers too."""
    return frozenset(
        op.reg + n
        for op in operands
        if op.reg < VCC or VGPR0 <= op.reg < TEMP
        for n in range(op.dwords)
    )


@dataclass(frozen=True)
class State:
    """What may be in flight before an instruction, by indices of those that began it."""

    load: Queue = ()
    lds: Queue = ()
    scalar: frozenset[int] = frozenset()

    def joined(self, other: State) -> State:
        """What may be in flight on either of two ways."""
        return State(
            _joined(self.load, other.load), _joined(self.lds, other.lds), self.scalar | other.scalar
        )


def _joined(a: Queue, b: Queue) -> Queue:
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    return (
        *(one | other for one, other in zip(longer, shorter, strict=False)),
        *longer[len(shorter) :],
    )


def _begun(queue: Queue, n: int) -> Queue:
    return (frozenset({n}), *queue)[:MOST_IN_FLIGHT]


@dataclass(frozen=True)
class Flow:
    """The ways through a code object's kernels, which begin at `entries` (addresses)."""

    kernel: Kernel
    entries: tuple[int, ...]

    @cached_property
    def _following(self) -> list[tuple[int, ...]]:
        return [tuple(self._successors(n)) for n in range(len(self.kernel.records))]

    @cached_property
    def _index(self) -> Mapping[int, int]:
        """Of each address of an instruction, its index; the first half of a pair has it."""
        numbered = list(enumerate(self.kernel.records))
        return {self.kernel.address(r): n for n, r in reversed(numbered)}

    def _successors(self, n: int) -> Iterator[int]:
        r = self.kernel.records[n]
        assert not r.name.startswith(_ELSEWHERE), f"{r.text}: not followed here"
        assert "atomic" not in r.name, f"{r.text}: not followed here"
        if r.name.startswith("s_endpgm"):
            return
        if r.name.startswith(("s_branch", "s_cbranch")):
            yield self._index[self.kernel.address(r) + r.size + 4 * r.imm]
        if not r.name.startswith("s_branch"):
            yield n + 1

    @cached_property
    def _registers(self) -> list[tuple[frozenset[int], frozenset[int]]]:
        """(all registers, those written) of each instruction."""
        return [
            (_registers(r.d, r.e, r.a, r.b, r.c, r.x), _registers(r.d, r.e))
            for r in self.kernel.records
        ]

    def early(self, wait: int | None = None, counter: str = "") -> frozenset[int]:
        """Addresses of the instructions that may come before what they need is done, where the wait
        at an address does not wait for a counter."""
        states = self._states(None if wait is None else self._index[wait], counter)
        return self._addresses(n for n, state in states.items() if self._is_early(n, state))

    def waited_for(self, wait: int, counter: str) -> frozenset[int]:
        """Addresses of the instructions whose results a wait at an address may be for."""
        n = self._index[wait]
        limit = limit_of(self.kernel.chip, self.kernel.records[n], counter)
        state = self._whole[n]
        queue = {LOAD: state.load, LDS: state.lds, SCALAR: ()}[counter]
        return self._addresses(state.scalar.union(*queue[limit:]))

    def _addresses(self, indices: Iterable[int]) -> frozenset[int]:
        return frozenset(self.kernel.address(self.kernel.records[n]) for n in indices)

    @cached_property
    def _whole(self) -> Mapping[int, State]:
        return self._states(None, "")

    def _states(self, loosened: int | None, counter: str) -> dict[int, State]:
        """What may be in flight before each instruction that can be reached."""
        states: dict[int, State] = {self._index[entry]: State() for entry in self.entries}
        todo = list(states)
        while todo:
            n = todo.pop()
            behind = self._after(n, states[n], counter if n == loosened else "")
            for following in self._following[n]:
                known = states.get(following)
                joined = known.joined(behind) if known else behind
                if joined != known:
                    states[following] = joined
                    todo.append(following)
        return states

    def _is_early(self, n: int, state: State) -> bool:
        records = self.kernel.records
        r = records[n]
        if r.name in BARRIER_STARTS:
            return any(is_lds(records[one]) for slot in state.lds for one in slot)
        touched, written = self._registers[n]
        # What is done in order may be written anew, also by halves.
        others = touched - written
        by_load, by_lds = (
            others if loads_memory(r) else touched,
            others if r.name.startswith("ds_") else touched,
        )
        return (
            any(self._registers[one][1] & by_load for slot in state.load for one in slot)
            or any(self._registers[one][1] & by_lds for slot in state.lds for one in slot)
            or any(self._registers[one][1] & touched for one in state.scalar)
        )

    def _after(self, n: int, state: State, loosened: str) -> State:
        """What may be in flight behind an instruction."""
        chip, r = self.kernel.chip, self.kernel.records[n]
        apart = chip.startswith("gfx12")  # scalar loads have a counter of their own
        load, lds, scalar = state.load, state.lds, state.scalar
        limit = {
            name: None if name == loosened else limit_of(chip, r, name)
            for name in (LOAD, LDS, SCALAR)
        }
        if limit[LOAD] is not None:
            load = load[: limit[LOAD]]
        if limit[LDS] is not None:
            lds = lds[: limit[LDS]]
        if limit[SCALAR if apart else LDS] == 0:
            scalar = frozenset()
        if loads_memory(r) or loads_to_lds(r) or (stores_memory(r) and chip.startswith("gfx9")):
            load = _begun(load, n)
        elif r.name.startswith("ds_"):
            lds = _begun(lds, n)
        elif r.name.startswith(("s_load", "s_buffer_load")):
            scalar |= {n}
        return State(load, lds, scalar)

    def is_needed(self, barrier: int) -> bool:
        """Whether, on some way, LDS is accessed both between the barrier before the one at an
        address and it, and between it and the next."""
        return all(self._accesses_around(barrier))

    def only_loads_around(self, barrier: int) -> bool:
        """Whether loads that write to LDS are all that accesses it on both sides of a barrier."""
        return all(map(loads_to_lds, itertools.chain(*self._accesses_around(barrier))))

    def _accesses_around(self, barrier: int) -> tuple[list[Record], list[Record]]:
        """The LDS accesses from which a barrier may be met, and those that may be met behind it,
        before another barrier."""
        n = self._index[barrier]
        before: dict[int, list[int]] = {}
        for at, following in enumerate(self._following):
            for to in following:
                before.setdefault(to, []).append(at)
        behind = {at: list(following) for at, following in enumerate(self._following)}
        return self._accesses(before, n), self._accesses(behind, n)

    def _accesses(self, neighbours: Mapping[int, Iterable[int]], n: int) -> list[Record]:
        todo, seen, found = list(neighbours.get(n, ())), set[int](), []
        while todo:
            at = todo.pop()
            r = self.kernel.records[at]
            if at in seen or r.name in BARRIER_STARTS:
                continue
            seen.add(at)
            if is_lds(r) or loads_to_lds(r):
                found.append(r)
            todo += neighbours.get(at, ())
        return found
