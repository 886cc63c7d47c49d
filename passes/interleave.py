# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Put the operations of a kernel's main loop in the order in which the machine is to run them.

Runs on a kernel after our scripts and IREE's passes, its loop software pipelined in three stages
and unrolled by two. An iteration multiplies one tile, writes the next to LDS and loads the one
behind. Each iteration, before and after:

    barrier                                  (its fragments are read or about to arrive)
    read all fragments from LDS              the first products, among them for each operand:
    multiply                                     choose zeros, turn it
    choose zeros, turn both operands         barrier
    barrier                                  write both to LDS
    write both to LDS                        the other products, among them:
    load both                                    load both operands of the tile after next
                                                 barrier; read the next iteration's fragments

In the first order LDS, vector and matrix units take turns, and products wait for LDS. After, every
wait but a short one has products before it: fragments are read, and operands loaded, an iteration
earlier (`read_ahead.py`). Scheduling barriers (`amdgpu.sched_barrier`) hold LLVM to the order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.ir.attributes import ORDER, ORDERED, mark
from conv_compiler.passes.main_loop.loop_ops import (
    FENCE,
    WRITES,
    function_of,
    kind,
    main_loops,
    operation,
    root,
)
from conv_compiler.passes.main_loop.read_ahead import run_ahead, with_needs
from conv_compiler.passes.main_loop.split_reads import split_reads
from conv_compiler.targets.limits import MOST_FRAGMENTS

# Parts of an iteration's products: those before its writes to LDS, and those behind its reads.
# Found for tiles of 128x128x32 on gfx942, where the reads take 320 cycles and the writes 256 beside
# 512 of products. 10 to 13 and 7 to 9 of 32 differ by 2 % of an iteration. With 8 behind the reads
# some kernels have 176 registers and not the 168 of which three workgroups fit.
FIRST, LAST = 12 / 32, 9 / 32
# Instructions that an op becomes, by which it is spread among products. Vector instructions: one
# for each dword of the vectors it takes, as turning 4x4 elements does. A load: its address and
# itself.
_VECTOR_OPS = ("arith.select", "vector.transpose")
_DWORD_BITS = 32
_LOAD_COST = 2.0


@dataclass(frozen=True, kw_only=True)
class Interleave:
    """No options. Loops of another shape, and kernels without matrix instructions, stay as they
    are; a function with main loops is marked ORDERED, or with the reason why one is not."""

    name: ClassVar[str] = "interleave"

    def apply(self, module: ir.Module) -> None:
        """Reorder every main loop of the module in place."""
        with module.context, ir.Location.unknown():
            reasons: dict[ir.Operation, str] = {}
            for loop in list(main_loops(module.operation)):
                function = function_of(loop)
                split_reads(loop)
                why = _reorder(loop)
                reasons[function] = reasons.get(function, "") or why
            for function, why in reasons.items():
                mark(function, ORDER, why or ORDERED)


def _reorder(loop: ir.Operation) -> str:
    """Reorder a loop of two iterations, which then reads ahead; or tell what keeps it from that."""
    *ops, _ = (one.operation for one in loop.regions[0].blocks[0].operations)
    iterations = [_Iteration(one) for one in _cut(ops)]
    if why := next(filter(None, (iteration.misfit() for iteration in iterations)), ""):
        return why
    if len(iterations) != 2:
        return f"iterations in the loop: {len(iterations)}, where two are expected"
    first, second = iterations
    products = [iteration.products() for iteration in iterations]
    early = [with_needs(loop, iteration.ahead()) for iteration in iterations]
    if not all(early):
        return "what an iteration reads or loads hangs on another iteration"
    # What an iteration runs for the one behind it: the first for the second, and that for the
    # loop's next. All sets before operands change: the hash of an operation hangs on them.
    gone, moved = (set(group) for group in early)
    stays = [op for op in first.ops if op not in gone]
    brought = [op for op in second.ops if op in moved]
    others = [op for op in second.ops if op not in moved]
    others += run_ahead(loop, early[0])
    orders = [
        _Iteration(own).order(multiplied)
        for own, multiplied in zip(([*stays, *brought], others), products, strict=True)
    ]
    _move([one for order in orders for one in order])
    return ""


def _cut(ops: list[ir.Operation]) -> list[list[ir.Operation]]:
    """A loop's operations by iterations, which have two barriers each."""
    barriers = [i for i, op in enumerate(ops) if kind(op) == "barrier"]
    return [ops[a:b] for a, b in pairwise([0, *barriers[2::2], len(ops)])]


class _Iteration:
    """An iteration's operations by number, what they are and which of them each one needs."""

    def __init__(self, ops: list[ir.Operation]) -> None:
        self.ops = ops
        self.number = {op: i for i, op in enumerate(ops)}
        self.kinds = [kind(op) for op in ops]
        self.placed: dict[int, None] = {}  # in order

    def all_of(self, what: str) -> list[int]:
        """Operations of a kind, in the order of the loop."""
        return [i for i, one in enumerate(self.kinds) if one == what]

    def misfit(self) -> str:
        """What keeps an iteration from being put in order; empty where nothing does.

        It must read LDS, multiply, and write the next tile behind a second barrier. All else in it
        must be free to move.
        """
        barriers, reads, writes = map(self.all_of, ("barrier", "read", "write"))
        if len(barriers) != 2:
            return f"barriers in an iteration: {len(barriers)}, where two are expected"
        if others := self.all_of("other"):
            return f"an iteration holds {self.ops[others[0]].name}, which may not be moved"
        if not (reads and writes and self.all_of("load")):
            return "an iteration has no reads, no writes or no loads"
        if min(writes) < barriers[1] or max(reads) > barriers[1]:
            return "the second barrier is not between an iteration's reads and its writes"
        return ""

    def ahead(self) -> list[ir.Operation]:
        """What can run an iteration earlier: the first barrier, reads of both operands in turn,
        loads."""
        chosen = [self.all_of("barrier")[0], *self._reads(), *self.all_of("load")]
        return [self.ops[i] for i in chosen]

    def products(self) -> list[ir.Operation]:
        """The products, those first whose fragments arrive first."""
        arrival = {one: i for i, one in enumerate(self._reads())}
        latest = {
            i: max((arrival.get(j, -1) for j in self._before(i)), default=-1)
            for i in self.all_of("product")
        }
        return [self.ops[i] for i in sorted(latest, key=lambda i: (latest[i], i))]

    def _reads(self) -> list[int]:
        """The reads, of the operands in turn."""
        buffers: dict[ir.Value, list[int]] = {}
        for i in self.all_of("read"):
            buffers.setdefault(root(self.ops[i].operands[0]), []).append(i)
        return _in_turn(list(buffers.values()))

    @cached_property
    def _values(self) -> list[set[int]]:
        """Operations that make each one's operands, or have used its registers as memory."""
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
            found.append(own)
        return found

    def _before(self, start: int) -> set[int]:
        """All operations that one needs the values of."""
        found: set[int] = set()
        waiting = [start]
        while waiting:
            new = self._values[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    def place(self, wanted: Iterable[int]) -> None:
        """Put operations next, each behind what it needs."""
        for i in wanted:
            if i not in self.placed:
                self.place(sorted(self._values[i]))
                self.placed[i] = None

    def order(self, multiplied: Sequence[ir.Operation]) -> list[tuple[ir.Operation, bool]]:
        """The operations of an iteration that reads ahead in their new order, and whether LLVM may
        move nothing across the start of each."""
        products = [self.number[op] for op in multiplied]
        writes, loads = self.all_of("write"), self.all_of("load")
        all_read, all_written = self.all_of("barrier")
        first, last = round(len(products) * FIRST), math.ceil(len(products) * LAST)
        fragments = sum(_dwords(self.ops[i]) for i in self.all_of("read"))
        # Nor where they take more registers than there are products, as on gfx950: other
        # instructions bind such iterations (586 cycles with 160 registers, 670 with 176).
        if fragments > min(MOST_FRAGMENTS, len(products)):
            last = 0
        transposed = [i for i in self._chain(writes) if i not in writes]
        self._spread(transposed, products[:first])
        self.place([all_read, *writes])
        reads = [all_written, *self._reads()]
        self._spread(self._chain(loads), products[first:], {len(products) - first - last: reads})
        self.place(reads)
        self.place(i for i, what in enumerate(self.kinds) if what != "fence")
        fenced = ("load", "product")
        return [(self.ops[i], self.kinds[i] in fenced) for i in self.placed]

    def _chain(self, wanted: Iterable[int]) -> list[int]:
        """Operations, each behind what it needs and is not yet placed."""
        chain: dict[int, None] = {}

        def add(i: int) -> None:
            if i not in self.placed and i not in chain:
                for j in sorted(self._values[i]):
                    add(j)
                chain[i] = None

        for i in wanted:
            add(i)
        return list(chain)

    def _spread(
        self, chain: list[int], products: list[int], due: Mapping[int, Sequence[int]] | None = None
    ) -> None:
        """Place a chain among products, evenly by what its operations cost; before a product of
        some number what is `due` there."""
        due, done = due or {}, 0

        def multiply(until: float) -> None:
            nonlocal done
            while done < len(products) and done <= until:
                self.place([*due.get(done, ()), products[done]])
                done += 1

        costs = [self._cost(i) for i in chain]
        total, spent = sum(costs) or 1.0, 0.0
        for i, cost in zip(chain, costs, strict=True):
            multiply(spent * len(products) / total)
            self.place([i])
            spent += cost
        multiply(len(products))

    def _cost(self, i: int) -> float:
        """Instructions of the vector, scalar or LDS unit that an operation about becomes."""
        op = self.ops[i]
        if op.name in _VECTOR_OPS:
            return max(1.0, _dwords(op))
        if op.name.startswith(("arith.", "affine.")) and op.name != "arith.constant":
            return 1.0
        return _LOAD_COST if self.kinds[i] == "load" else 0.0


def _dwords(op: ir.Operation) -> float:
    """Registers that an operation's result takes."""
    kind_of = op.results[0].type
    vector = isinstance(kind_of, ir.VectorType)
    element = kind_of.element_type if vector else kind_of
    count = math.prod(kind_of.shape) if vector else 1
    return count * int(getattr(element, "width", _DWORD_BITS)) / _DWORD_BITS


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
