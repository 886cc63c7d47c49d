# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bring the operands of a kernel's main loop to LDS without registers, several iterations ahead.

Before and after, with three buffers in LDS:

    for i                                load tiles 0, 1, 2 to buffers 0, 1, 2
      registers = load tile i            wait for tile 0; fragments = buffer 0
      registers = zero where no pixel    for i
      barrier; LDS = registers             the first products of the fragments
      barrier; fragments = LDS             wait for tile i + 1; barrier
      sums += products                     next fragments = buffer (i + 1) mod 3
                                           the other products, among them:
                                               load tile i + 3 to buffer i mod 3
                                         the last three iterations, which load nothing

A load writes 16 bytes a lane, side by side from the place of the wave's first lane. So threads must
share a tile in the order of LDS, and its rows have no padding. What is no pixel is read from behind
the operand, where a buffer instruction gives zeros. One barrier an iteration is enough: behind it
all waves have the fragments of tile i, and its buffer is free.

The loop holds whole turns of the buffers, whose places are constants then. Runs in the place of
IREE's software pipelining, on a kernel whose copies are vectors. Scheduling barriers
(`amdgpu.sched_barrier`) hold LLVM to the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith, scf

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.main_loop.copied_pieces import pieces_of
from conv_compiler.passes.main_loop.lds_buffers import Buffers, barrier, fence, mark, wait
from conv_compiler.passes.main_loop.loop_ops import TRANSPOSED, kind, main_loops, operation, root
from conv_compiler.passes.main_loop.row_tiles import constant, written
from conv_compiler.passes.main_loop.split_reads import split_reads
from conv_compiler.passes.main_loop.turned_rows import turn_reads, turned_threads

# Part of an iteration's products that comes before its barrier: what is read behind it has the
# others' time to arrive.
FIRST = 1 / 4


@dataclass(frozen=True, kw_only=True)
class LoadToLds:
    """`buffers` of LDS for each operand, two or more: tiles that are loaded or multiplied at a
    time. With `turned`, the pieces of a row of LDS change places (`turned_rows.py`), but in tiles
    that are read transposed."""

    buffers: int
    turned: bool = False

    name: ClassVar[str] = "load-to-lds"

    def apply(self, module: ir.Module) -> None:
        """Rewrite every main loop of the module in place, before it is pipelined.

        Raises UnsupportedStrategy for loops of too few iterations or of other copies.
        """
        with module.context, ir.Location.unknown():
            for loop in list(main_loops(module.operation)):
                if self.turned:
                    split_reads(loop)
                    turn_reads(loop)
                _Loop(loop, self.buffers, turned=self.turned).rewrite()


class _State(NamedTuple):
    """What an iteration hands to the next one: sums, and fragments of the next tile."""

    sums: list[ir.Value]
    fragments: list[ir.Value]


class _Loop:
    """A main loop, and what its iterations load, read and multiply."""

    def __init__(self, loop: ir.Operation, buffers: int, *, turned: bool) -> None:
        self.loop, self.count = loop, buffers
        block = loop.regions[0].blocks[0]
        *ops, self.end = (one.operation for one in block.operations)
        self.ops: list[ir.Operation] = ops
        self.number, *self.sums = block.arguments
        self.lower, self.step, self.iterations = self._bounds()
        self.pieces = pieces_of(ops)
        behind = self._behind(self.end.operands)
        self.products = [op for op in behind if kind(op) == "product"]
        # What products take, but for sums: read from LDS an iteration ahead.
        self.fragments = list(
            dict.fromkeys(value for op in self.products for value in list(op.operands)[:2])
        )
        self.reads = self._behind(self.fragments)
        self._check(behind)
        reads = [op for op in self.reads if kind(op) == "read" and op.name != TRANSPOSED]
        straight = {root(op.operands[0]) for op in reads}
        self.turned = [turned and piece.tile in straight for piece in self.pieces]
        moved = [piece for piece, one in zip(self.pieces, self.turned, strict=True) if one]
        self.moved = turned_threads(loop, moved) if moved else {}

    def _bounds(self) -> tuple[int, int, int]:
        """The first number, the step, and the iterations."""
        lower, upper, step = map(written, list(self.loop.operands)[:3])
        if lower is None or upper is None or step is None:
            raise UnsupportedStrategy("main loop: bounds that are computed; use another form")
        count = -(-(upper - lower) // step)
        if count < self.count:
            raise UnsupportedStrategy(
                f"main loop of {count} iterations: fewer than {self.count} buffers of LDS; "
                "use fewer parts"
            )
        return lower, step, count

    def _check(self, behind: Sequence[ir.Operation]) -> None:
        """Refuse what this rewrite would make wrong."""
        if not self.pieces:
            raise UnsupportedStrategy("main loop: copies nothing to LDS; use another form")
        addresses = [op for piece in self.pieces for op in self._behind(piece.needs)]
        wrong = [op for op in addresses if kind(op) != "value"]
        expected = {*self.reads, *self.products}
        wrong += [op for op in behind if op not in expected]
        wrong += [op for op in self.reads if kind(op) not in ("read", "value")]
        if wrong:
            raise UnsupportedStrategy(
                f"main loop: {wrong[0].name} is more than a copy or a product; use another form"
            )

    def _behind(self, values: Iterable[ir.Value]) -> list[ir.Operation]:
        """The operations of an iteration that some values come from, in order."""
        number = {op: i for i, op in enumerate(self.ops)}
        found: set[int] = set()
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if not isinstance(value.owner, ir.OpView | ir.Operation):
                continue
            at = number.get(operation(value.owner))
            if at is not None and at not in found:
                found.add(at)
                waiting += list(self.ops[at].operands)
        return [self.ops[i] for i in sorted(found)]

    def rewrite(self) -> None:
        """Replace the loop by first loads, one that loads ahead, and its last iterations."""
        _, _, _, *sums = self.loop.operands
        turn = math.lcm(2, self.count)  # of the buffers, and of two sets of fragments
        whole = (self.iterations - self.count) // turn * turn
        with ir.InsertionPoint(self.loop):
            start = constant(ir.IndexType.get(), self.lower)
            self.buffers = Buffers(self.pieces, self.count)
            for tile in range(self.count):
                for load in self._loads(self._ahead(start, tile), tile):
                    load()
                barrier()  # cache lines of a tile serve all waves before the next one's come
            wait(self.count - 1)
            state = _State(sums, self._read(start, 0))
            if whole:
                state = self._rounds(start, whole, turn, state)
            for i in range(whole, self.iterations):
                state = self._iteration(start, i, self.iterations - 1 - i, state)
        for old, new in zip(self.loop.results, state.sums, strict=True):
            old.replace_all_uses_with(new)
        self.loop.erase()
        self.buffers.free_tiles()

    def _rounds(self, start: ir.Value, whole: int, turn: int, state: _State) -> _State:
        """A loop of so many iterations, a turn of them at a time."""
        index, sums = ir.IndexType.get(), len(state.sums)
        end = constant(index, self.lower + whole * self.step)
        step = constant(index, turn * self.step)
        new = scf.ForOp(start, end, step, [*state.sums, *state.fragments])
        first, *carried = new.body.arguments
        with ir.InsertionPoint(new.body):
            own = _State(carried[:sums], carried[sums:])
            for i in range(turn):
                own = self._iteration(first, i, self.iterations, own)
            scf.YieldOp([*own.sums, *own.fragments])
        results = list(new.results)
        return _State(results[:sums], results[sums:])

    def _iteration(self, first: ir.Value, i: int, left: int, state: _State) -> _State:
        """Iteration `i` from one of number `first` on, with so many `left` behind it.

        It reads the fragments of the next one and loads a later tile, where there are such.
        """
        made = dict(zip(self.sums, state.sums, strict=True))
        made |= dict(zip(self.fragments, state.fragments, strict=True))
        before = round(len(self.products) * FIRST) if left else len(self.products)
        for op in self.products[:before]:
            _copy(op, made)
            fence()
        following: list[ir.Value] = []
        if left:
            wait(min(left - 1, self.count - 2))
            following = self._read(self._ahead(first, i + 1), i + 1)
            fence()
        loads: list[Callable[[], None]] = []
        if left >= self.count:
            loads = self._loads(self._ahead(first, i + self.count), i + self.count)
        rest = self.products[before:]
        for place, op in enumerate(rest):
            for step in loads[_share(place, rest, loads) : _share(place + 1, rest, loads)]:
                step()
            _copy(op, made)
            fence()
        return _State([made.get(one, one) for one in self.end.operands], following)

    def _ahead(self, first: ir.Value, iterations: int) -> ir.Value:
        """The number of an iteration so many behind that of number `first`."""
        more = constant(ir.IndexType.get(), iterations * self.step)
        found: ir.Value = arith.AddIOp(first, more).result
        return found

    def _read(self, number: ir.Value, tile: int) -> list[ir.Value]:
        """The fragments of an iteration, from the buffer that holds its tile."""
        made = {self.number: number, **self.buffers.views(tile)}
        for op in self.reads:
            _copy(op, made)
        return [made[one] for one in self.fragments]

    def _loads(self, number: ir.Value, tile: int) -> list[Callable[[], None]]:
        """The steps that load the tile of an iteration to its buffer: addresses, and loads."""
        ways = [{**known, self.number: number} for known in ({}, self.moved)]
        steps: list[Callable[[], None]] = []
        planned: set[tuple[ir.Operation, bool]] = set()

        def load(place: int, made: Mapping[ir.Value, ir.Value]) -> None:
            self.buffers.load(place, tile, made)
            fence()

        for place, (piece, turned) in enumerate(zip(self.pieces, self.turned, strict=True)):
            new = [op for op in self._behind(piece.needs) if (op, turned) not in planned]
            planned.update((op, turned) for op in new)
            steps += [partial(_copy, op, ways[turned]) for op in new]
            steps.append(partial(load, place, ways[turned]))
        return [*steps, mark]


def _share(place: int, products: Sequence[object], steps: Sequence[object]) -> int:
    """How many steps come before a product, where these are spread evenly."""
    return place * len(steps) // len(products)


def _copy(op: ir.Operation, made: dict[ir.Value, ir.Value]) -> None:
    """Copy an operation to here; `made` has what stands for values, and gets its results."""
    copy = op.clone()
    _exchange(copy, made)
    made.update(zip(op.results, copy.results, strict=True))


def _exchange(op: ir.Operation, made: Mapping[ir.Value, ir.Value]) -> None:
    for place, value in enumerate(op.operands):
        if value in made:
            op.operands[place] = made[value]
