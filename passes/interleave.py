"""Put the operations of a kernel's main loop in the order in which the machine is to run them.

Runs on a kernel after our scripts and IREE's passes, its loop software pipelined in three stages: a
trip multiplies one tile, writes the next to LDS and loads the one behind. Before and after:

    barrier                                  barrier
    read all fragments from LDS              read fragments of both operands in turn
    multiply                                 multiply those that arrive first
    choose zeros, turn both operands         barrier
    barrier                                  load both operands
    write both to LDS                        among the other products, for each operand:
    load both                                    choose zeros, turn it, write it to LDS
                                             the last products

In the first order LDS, vector and matrix units take turns, and a trip's loads are issued behind its
writes. The loop holds two trips: a load then refills registers that the other trip has read. In a
loop of one trip each load stands behind the last use of what it refills, for before it the compiler
would copy what it brings, and wait for it to do so. LLVM's scheduler is held to the order by
barriers of its own (`amdgpu.sched_barrier`), which are no instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.passes.loop_ops import (
    FENCE,
    PRODUCTS,
    WRITES,
    kind,
    operation,
    root,
)
from conv_compiler.passes.split_reads import split_reads
from conv_compiler.schedule import ORDER, ORDERED, mark

# Parts of a loop's products: those that are multiplied while fragments still arrive, and those
# behind the last write to LDS. Found for tiles of 128x128x32 on gfx942, where the reads take 320
# cycles and the writes 220 beside 512 of products; 1/4 to 1/2 and 1/8 to 1/4 differ by 2 % of a
# trip.
FIRST, LAST = 3 / 8, 1 / 4
# Vector instructions of an op, by which the other products are spread among them: for each
# dword of the vectors it takes. Turning 4x4 elements takes one for each dword.
_VECTOR_OPS = ("arith.select", "vector.transpose")
_DWORD_BITS = 32


@dataclass(frozen=True, kw_only=True)
class Interleave:
    """No options. Loops of another shape, and kernels without matrix instructions, stay as they
    are; a function with main loops is marked ORDERED, or with the reason why one is not."""

    name: ClassVar[str] = "interleave"

    def apply(self, module: ir.Module) -> None:
        """Reorder every main loop of the module in place."""
        with module.context, ir.Location.unknown():
            reasons: dict[ir.Operation, str] = {}
            for loop in list(_main_loops(module.operation)):
                split_reads(loop)
                trips = _trips(loop.regions[0].blocks[0])
                why = next(filter(None, (trip.misfit() for trip in trips)), "")
                function = _function(loop)
                reasons[function] = reasons.get(function, "") or why
                if not why:
                    _move([one for trip in trips for one in trip.order()])
            for function, why in reasons.items():
                mark(function, ORDER, why or ORDERED)


def _main_loops(op: ir.Operation) -> Iterator[ir.Operation]:
    """Loops with matrix instructions."""
    for region in op.regions:
        for block in region:
            for one in block.operations:
                inner = one.operation
                if inner.name == "scf.for" and any(
                    x.operation.name.startswith(PRODUCTS)
                    for x in inner.regions[0].blocks[0].operations
                ):
                    yield inner
                else:
                    yield from _main_loops(inner)


def _function(op: ir.Operation) -> ir.Operation:
    """The function around an operation."""
    return op if op.name == "func.func" else _function(op.parent.operation)


def _trips(block: ir.Block) -> list[_Trip]:
    """The trips that a loop's body holds: two where it is unrolled; each has two barriers."""
    *ops, end = (one.operation for one in block.operations)
    barriers = [i for i, op in enumerate(ops) if kind(op) == "barrier"]
    starts = [0, *barriers[2::2], len(ops)]
    values = list(block.arguments), list(end.operands)
    several = len(starts) > 2
    return [_Trip(ops[a:b], *values, several) for a, b in pairwise(starts)]


class _Trip:
    """A trip's operations by number, what they are and which of them each one needs.

    `arguments` are the loop's and `carried` what it gives to its next trip. Of `several` trips in a
    body, a load refills no registers that its own trip reads.
    """

    def __init__(
        self,
        ops: list[ir.Operation],
        arguments: list[ir.Value],
        carried: list[ir.Value],
        several: bool,
    ) -> None:
        self.ops, self.arguments, self.carried = ops, arguments, carried
        self.several = several
        self.number = {op: i for i, op in enumerate(self.ops)}
        self.kinds = [kind(op) for op in self.ops]
        self.placed: dict[int, None] = {}  # in order

    def all_of(self, what: str) -> list[int]:
        """Operations of a kind, in the order of the loop."""
        return [i for i, one in enumerate(self.kinds) if one == what]

    @cached_property
    def needs(self) -> list[set[int]]:
        """Operations that come before each: those that make its operands, and memory's order."""
        first, second = self.all_of("barrier")
        found: list[set[int]] = []
        last: dict[ir.Value, int] = {}
        for i, (op, what) in enumerate(zip(self.ops, self.kinds, strict=True)):
            own = {
                self.number[operation(value.owner)]
                for value in op.operands
                if isinstance(value.owner, ir.OpView | ir.Operation)
                and operation(value.owner) in self.number
            }
            if what == "private":
                buffer = root(op.operands[1 if op.name in WRITES else 0])
                own |= {last[buffer]} if buffer in last else set()
                last[buffer] = i
            own |= {"read": {first}, "write": {second}}.get(what, set())
            if i == second:
                own |= set(self.all_of("read"))
            found.append(own)
        return found

    def before(self, start: int) -> set[int]:
        """All that an operation needs, barriers and what these need left out."""
        found: set[int] = set()
        waiting = [start]
        while waiting:
            for i in self.needs[waiting.pop()] - found:
                if self.kinds[i] != "barrier":
                    found.add(i)
                    waiting.append(i)
        return found

    def place(self, wanted: Iterable[int]) -> None:
        """Put operations next, each behind what it needs."""
        for i in wanted:
            if i not in self.placed:
                self.place(sorted(self.needs[i]))
                self.placed[i] = None

    def misfit(self) -> str:
        """What keeps a trip from being put in order; empty for nothing."""
        barriers, reads, writes = map(self.all_of, ("barrier", "read", "write"))
        if len(barriers) != 2:
            return f"barriers in a trip: {len(barriers)}, where two are expected"
        if others := self.all_of("other"):
            return f"a trip holds {self.ops[others[0]].name}, which may not be moved"
        if not (reads and writes and self.all_of("load")):
            return "a trip has no reads, no writes or no loads"
        if min(writes) < barriers[1] or max(reads) > barriers[1]:
            return "the second barrier is not between a trip's reads and its writes"
        return ""

    def order(self) -> list[tuple[ir.Operation, bool]]:
        """The operations in their new order, and whether LLVM may move nothing across the start of
        each; of a trip without `misfit`."""
        reads, products = self.all_of("read"), self.all_of("product")
        writes, loads = self.all_of("write"), self.all_of("load")
        barriers = self.all_of("barrier")
        self.place([barriers[0]])
        arrival = {one: i for i, one in enumerate(_in_turn(self._by_buffer(reads)))}
        self.place(arrival)
        latest = {i: max((arrival.get(j, -1) for j in self.before(i)), default=-1)
                  for i in products}  # fmt: skip
        products.sort(key=lambda i: (latest[i], i))
        first, last = round(len(products) * FIRST) or 1, round(len(products) * LAST)
        self.place(products[:first])
        self.place([barriers[1], *(loads if self.several else ())])
        between = products[first : max(first, len(products) - last)]
        chain, refills = self._next_tile(writes, loads)
        costs = [self._cost(i) for i in chain]
        done, total, spent = 0, sum(costs) or 1.0, 0.0
        for i, cost in zip(chain, costs, strict=True):
            while done < len(between) and done * total <= spent * len(between):
                self.place([between[done]])
                done += 1
            self.place([i, *refills.get(i, ())])
            spent += cost
        self.place(between[done:])
        self.place(loads)
        self.place(products)
        self.place(i for i, what in enumerate(self.kinds) if what != "fence")
        fenced = ("load", "product")
        return [(self.ops[i], self.kinds[i] in fenced) for i in self.placed]

    def _by_buffer(self, reads: list[int]) -> list[list[int]]:
        found: dict[ir.Value, list[int]] = {}
        for i in reads:
            found.setdefault(root(self.ops[i].operands[0]), []).append(i)
        return list(found.values())

    def _next_tile(
        self, writes: list[int], loads: list[int]
    ) -> tuple[list[int], dict[int, list[int]]]:
        """What brings the next tile to LDS, the operand first that was loaded first; and the loads
        that come behind each of its operations."""
        refilled = {
            self.arguments[1 + self.carried.index(self.ops[i].results[0])]: i
            for i in loads
            if self.ops[i].results[0] in self.carried
        }
        uses = {i: {self.number.get(operation(use.owner), -1) for use in value.uses}
                for value, i in refilled.items()}  # fmt: skip

        def loaded(write: int) -> int:
            behind = self.before(write)
            return min((i for i, users in uses.items() if users & behind), default=len(self.ops))

        chain: dict[int, None] = {}

        def add(i: int) -> None:
            if i not in self.placed and i not in chain:
                for j in sorted(self.needs[i]):
                    add(j)
                chain[i] = None

        for write in sorted(writes, key=loaded):
            add(write)
        places = {i: n for n, i in enumerate(chain)}
        refills: dict[int, list[int]] = {}
        for load, users in uses.items():
            behind = max((self._last_use(user, places) for user in users), default=-1)
            if behind in places:
                refills.setdefault(behind, []).append(load)
        return list(chain), refills

    def _last_use(self, user: int, places: dict[int, int]) -> int:
        """The operation behind which registers that `user` takes are free: itself where it makes
        new ones, else the last before the write."""
        if user not in places or self.ops[user].name == "arith.select":
            return user
        reached = {user}
        for i in places:
            if self.needs[i] & reached and self.kinds[i] != "write":
                reached.add(i)
        return max(reached, key=lambda i: places[i])

    def _cost(self, i: int) -> float:
        """Instructions of the vector, scalar or LDS unit that an operation about becomes."""
        op = self.ops[i]
        if op.name in _VECTOR_OPS:
            result = ir.VectorType(op.results[0].type)
            bits = _bits(result.element_type)
            count = 1
            for size in result.shape:
                count *= size
            return max(1.0, count * bits / _DWORD_BITS)
        if op.name.startswith(("arith.", "affine.")) and op.name != "arith.constant":
            return 1.0
        return 1.0 if self.kinds[i] == "write" else 0.0


def _bits(element: ir.Type) -> int:
    return int(getattr(element, "width", _DWORD_BITS))


def _in_turn(lists: list[list[int]]) -> list[int]:
    """The entries of some lists, each list's spread evenly."""
    places = [
        ((n + 0.5) / len(one), k, i) for k, one in enumerate(lists) for n, i in enumerate(one)
    ]
    return [i for *_, i in sorted(places)]


def _move(order: list[tuple[ir.Operation, bool]]) -> None:
    """Bring a loop's operations into an order, with a fence where told; drop other fences."""
    moved = {op for op, _ in order}
    block = order[0][0].block
    *body, end = (one.operation for one in block.operations)
    (sample,) = ir.Module.parse(f"{FENCE} allow = none").body.operations
    nothing = {"opts": sample.attributes["opts"]}
    for op, fenced in order:
        op.move_before(end)
        if fenced:
            with ir.InsertionPoint(op):
                ir.Operation.create(FENCE, attributes=nothing)
    for op in body:
        if op not in moved:
            op.erase()
