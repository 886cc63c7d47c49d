# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bring the operands of a kernel's main loop to LDS without registers, several iterations ahead.

Before and after, with three buffers in LDS:

    for i                                for i in 0, 1: load tile i to buffer i
      registers = load tile i            for i
      registers = zero where no pixel      wait until tile i is there; barrier
      barrier; LDS = registers             fragments = buffer i mod 3
      barrier; fragments = LDS             load tile i + 2 to buffer (i + 2) mod 3
      sums += products                     sums += products
                                         the last two iterations, which load nothing

A load writes 16 bytes a lane, side by side from the place of the wave's first lane. Threads must
share a tile in the order of LDS, and its rows have no padding. What is no pixel is read from behind
the operand, where a buffer instruction gives zeros. One barrier an iteration is enough: a buffer is
written an iteration after it was read.

Runs in the place of IREE's software pipelining, on a kernel whose copies are vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import arith, memref, scf

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.main_loop.copied_pieces import Piece, linear, pieces_of
from conv_compiler.passes.main_loop.loop_ops import (
    BARRIER,
    FENCE,
    kind,
    main_loops,
    operation,
)
from conv_compiler.passes.main_loop.row_tiles import constant, written

# Part of an iteration's products that comes before its barrier.
FIRST = 1 / 4
_GATHER, _MARK, _WAIT = "amdgpu.gather_to_lds", "rocdl.asyncmark", "rocdl.wait.asyncmark"


@dataclass(frozen=True, kw_only=True)
class LoadToLds:
    """`buffers` of LDS for each operand: tiles that are loaded or multiplied at a time."""

    buffers: int

    name: ClassVar[str] = "load-to-lds"

    def apply(self, module: ir.Module) -> None:
        """Rewrite every main loop of the module in place, before it is pipelined.

        Raises UnsupportedStrategy for loops of too few iterations or of other copies.
        """
        with module.context, ir.Location.unknown():
            for loop in list(main_loops(module.operation)):
                _Loop(loop, self.buffers).rewrite()


class _Loop:
    """A main loop and what its iterations load and multiply."""

    def __init__(self, loop: ir.Operation, buffers: int) -> None:
        self.loop, self.buffers = loop, buffers
        self.block = loop.regions[0].blocks[0]
        *ops, self.end = (one.operation for one in self.block.operations)
        self.ops: list[ir.Operation] = ops
        self.lower, self.upper, self.step = map(written, list(loop.operands)[:3])
        self.number = self.block.arguments[0]
        self.sums = list(self.block.arguments)[1:]
        self.pieces = pieces_of(ops)
        self.addresses = self._behind(
            value
            for piece in self.pieces
            for value in (*list(piece.read.operands)[1:-1], *piece.tests)
        )
        behind = self._behind(self.end.operands)
        self.multiplied = [op for op in behind if kind(op) == "product"]
        # What products take, but for sums: read from LDS an iteration ahead.
        fragments = dict.fromkeys(v for op in self.multiplied for v in list(op.operands)[:2])
        self.fragments = list(fragments)
        self.reads = self._behind(self.fragments)
        self.others = [op for op in behind if op not in {*self.multiplied, *self.reads}]
        self._check()

    def _behind(self, values: object) -> list[ir.Operation]:
        """The operations of an iteration that some values come from, in order."""
        number = {op: i for i, op in enumerate(self.ops)}
        found: set[int] = set()
        waiting = list(values)  # type: ignore[call-overload]
        while waiting:
            value = waiting.pop()
            if not isinstance(value.owner, ir.OpView | ir.Operation):
                continue
            at = number.get(operation(value.owner))
            if at is not None and at not in found:
                found.add(at)
                waiting += list(self.ops[at].operands)
        return [self.ops[i] for i in sorted(found)]

    def _check(self) -> None:
        """Refuse what this rewrite would make wrong."""
        if None in (self.lower, self.upper, self.step):
            raise UnsupportedStrategy("main loop: bounds that are computed; use another form")
        if self.count < self.buffers:
            raise UnsupportedStrategy(
                f"main loop of {self.count} iterations: fewer than {self.buffers} buffers of LDS; "
                "use fewer parts"
            )
        if not self.pieces:
            raise UnsupportedStrategy("main loop: copies nothing to LDS; use another form")
        if wrong := next((op for op in self.addresses if kind(op) != "value"), None):
            raise UnsupportedStrategy(f"address of a load: hangs on {wrong.name}; use another form")

    @property
    def unrolled(self) -> int:
        """Iterations of a round: whole turns of the buffers, and of two sets of fragments."""
        return math.lcm(2, self.buffers)

    @property
    def count(self) -> int:
        """Iterations."""
        assert self.lower is not None and self.upper is not None and self.step is not None
        return -(-(self.upper - self.lower) // self.step)

    def rewrite(self) -> None:
        """Replace the loop by first loads, one that loads ahead, and its last iterations."""
        lower, _, step, *inits = self.loop.operands
        index = ir.IndexType.get()
        with ir.InsertionPoint(self.loop):
            self.tiles = self._buffers()
            self.starts = [self._start(piece) for piece in self.pieces]
            self.sources = {
                one: _flat(one) for one in dict.fromkeys(p.read.operands[0] for p in self.pieces)
            }
            for tile in range(self.buffers):
                for load in self._loads(self._number(tile), constant(index, tile)):
                    load()
                _barrier()
            _wait(self.buffers - 1)
            fragments = self._read(self._number(0), constant(index, 0))
            sums, tile = list(inits), 0
            if rounds := (self.count - self.buffers) // self.unrolled:
                tile = rounds * self.unrolled
                stride = constant(index, self.unrolled * self._step)
                new = scf.ForOp(lower, self._number(tile), stride, [*sums, *fragments])
                number, *carried = new.body.arguments
                with ir.InsertionPoint(new.body):
                    sums, fragments = carried[: len(inits)], carried[len(inits) :]
                    for i in range(self.unrolled):
                        sums, fragments = self._iteration(i, self.count, number, sums, fragments)
                    scf.YieldOp([*sums, *fragments])
                sums, fragments = list(new.results)[: len(inits)], list(new.results)[len(inits) :]
            for i in range(tile, self.count):
                sums, fragments = self._iteration(
                    i, self.count - i - 1, self._number(0), sums, fragments
                )
        for old, result in zip(self.loop.results, sums, strict=True):
            old.replace_all_uses_with(result)
        self.loop.erase()
        for tile in self.tiles:
            _erase_unused(tile)

    def _number(self, tile: int) -> ir.Value:
        """The number that the loop gives an iteration."""
        assert self.lower is not None
        return constant(ir.IndexType.get(), self.lower + tile * self._step)

    @property
    def _step(self) -> int:
        assert self.step is not None
        return self.step

    def _iteration(self, i, behind, first, sums, fragments):  # type: ignore[no-untyped-def]
        """Iteration `i` behind one of number `first`, its fragments in registers, with so many
        `behind` it. It reads the fragments of the next one and loads the tile of a later one;
        returns its sums and what it has read."""

        def number(ahead: int) -> ir.Value:
            more = constant(ir.IndexType.get(), (i + ahead) * self._step)
            return arith.AddIOp(first, more).result

        def buffer(ahead: int) -> ir.Value:
            return constant(ir.IndexType.get(), (i + ahead) % self.buffers)

        known = {self.number: number(0), **dict(zip(self.sums, sums, strict=True))}
        known |= dict(zip(self.fragments, fragments, strict=True))
        made = _copies(self.others, known)
        products = len(self.multiplied)
        before = round(products * FIRST) if behind else products
        for op in self.multiplied[:before]:
            made = _copies([op], made)
            _fence()
        following: list[ir.Value] = []
        if behind:
            _wait(min(behind - 1, self.buffers - 2))
            following = self._read(number(1), buffer(1))
            _fence()
        rest, loads = self.multiplied[before:], list[Callable[[], None]]()
        if behind >= self.buffers:
            loads = self._loads(number(self.buffers), buffer(self.buffers))
        for place, op in enumerate(rest):
            for load in loads[_share(place, rest, loads) : _share(place + 1, rest, loads)]:
                load()
                _fence()
            made = _copies([op], made)
            _fence()
        return [made.get(one, one) for one in self.end.operands], following

    def _read(self, number: ir.Value, buffer: ir.Value) -> list[ir.Value]:
        """The fragments of an iteration, from the buffer that holds its tile."""
        known = {self.number: number}
        for tile, several in self.tiles.items():
            known[tile] = _view(several, buffer, ir.MemRefType(tile.type))
        made = _copies(self.reads, known)
        return [made[one] for one in self.fragments]

    def _buffers(self) -> dict[ir.Value, ir.Value]:
        """Several buffers in place of each tile of LDS."""
        found = {}
        for tile in dict.fromkeys(piece.tile for piece in self.pieces):
            one = ir.MemRefType(tile.type)
            if one.layout != ir.AffineMapAttr.get(ir.AffineMap.get_identity(one.rank)):
                raise UnsupportedStrategy(f"LDS of type {one}: has padding; use another form")
            several = ir.MemRefType.get(
                [self.buffers, *one.shape], one.element_type, memory_space=one.memory_space
            )
            with ir.InsertionPoint(operation(tile.owner)):
                found[tile] = memref.AllocOp(several, [], []).result
        return found

    def _start(self, piece: Piece) -> ir.Value:
        """Where the first lane of a wave writes a piece, in elements from the start of its tile."""
        i32 = ir.IntegerType.get_signless(32)
        at = linear(piece.at, ir.MemRefType(piece.tile.type).shape)
        number = arith.IndexCastUIOp(i32, at).result
        first = ir.Operation.create("rocdl.readfirstlane", results=[i32], operands=[number])
        found: ir.Value = arith.IndexCastUIOp(ir.IndexType.get(), first.results[0]).result
        return found

    def _loads(self, number: ir.Value, buffer: ir.Value) -> list[Callable[[], None]]:
        """What loads the tile of an iteration to a buffer, piece by piece."""
        made: dict[ir.Value, ir.Value] = {self.number: number}
        done: set[ir.Operation] = set()

        def load(place: int) -> None:
            piece, start = self.pieces[place], self.starts[place]
            needed = self._behind((*list(piece.read.operands)[1:-1], *piece.tests))
            new = [op for op in needed if op not in done]
            done.update(new)
            made.update(_copies(new, made))
            self._gather(piece, start, made, buffer)
            if place == len(self.pieces) - 1:
                ir.Operation.create(_MARK)

        return [partial(load, place) for place in range(len(self.pieces))]

    def _gather(
        self, piece: Piece, start: ir.Value, made: Mapping[ir.Value, ir.Value], buffer: ir.Value
    ) -> None:
        """Load a piece; what is no pixel lies behind its operand, where it is zero."""
        source = ir.MemRefType(piece.read.operands[0].type)
        indices = [made.get(one, one) for one in list(piece.read.operands)[1:-1]]
        at = linear(indices, source.shape)
        outside = constant(ir.IndexType.get(), math.prod(source.shape))
        for test in piece.tests:
            at = arith.SelectOp(made.get(test, test), at, outside).result
        zero = constant(ir.IndexType.get(), 0)
        place = [buffer, *([zero] * (ir.MemRefType(piece.tile.type).rank - 1)), start]
        ir.Operation.create(
            _GATHER,
            operands=[self.sources[piece.read.operands[0]], at, self.tiles[piece.tile], *place],
            attributes={
                "transferType": ir.TypeAttr.get(piece.read.results[0].type),
                "async": ir.UnitAttr.get(),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, len(place)]),
            },
        )


def _share(place: int, products: Sequence[object], loads: Sequence[object]) -> int:
    """How many loads come before a product, where these are spread evenly."""
    return place * len(loads) // len(products)


def _fence() -> None:
    """Have LLVM move nothing across."""
    (sample,) = ir.Module.parse(f"{FENCE} allow = none").body.operations
    ir.Operation.create(FENCE, attributes={"opts": sample.attributes["opts"]})


def _erase_unused(tile: ir.Value) -> None:
    """Erase a tile of LDS that nothing reads any more, and what frees it."""
    for use in list(tile.uses):
        user = operation(use.owner)
        if user.name == "memref.subview":
            _erase_unused(user.results[0])
        elif user.name == "memref.dealloc":
            user.erase()
    if not list(tile.uses):
        operation(tile.owner).erase()


def _wait(left: int) -> None:
    """Wait until no more than some tiles are on their way, for all waves."""
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(16), left)
    ir.Operation.create(_WAIT, attributes={"count": count})
    _barrier()


def _barrier() -> None:
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    ir.Operation.create(BARRIER, attributes={"address_spaces": ir.ArrayAttr.get([space])})


def _copies(
    ops: Sequence[ir.Operation], known: Mapping[ir.Value, ir.Value]
) -> dict[ir.Value, ir.Value]:
    """Copy operations to here; what stands for each value, those known included."""
    made = dict(known)
    for op in ops:
        copy = op.clone()
        for place, value in enumerate(copy.operands):
            if value in made:
                copy.operands[place] = made[value]
        made.update(zip(op.results, copy.results, strict=True))
    return made


def _view(several: ir.Value, buffer: ir.Value, one: ir.MemRefType) -> ir.Value:
    """One of several buffers, as a tile."""
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    strides = [math.prod(one.shape[i + 1 :]) for i in range(one.rank)]
    layout = ir.StridedLayoutAttr.get(dynamic, strides)
    found: ir.Value = ir.Operation.create(
        "memref.subview",
        results=[
            ir.MemRefType.get(
                one.shape, one.element_type, layout=layout, memory_space=one.memory_space
            )
        ],
        operands=[several, buffer],
        attributes={
            "static_offsets": ir.DenseI64ArrayAttr.get([dynamic, *[0] * one.rank]),
            "static_sizes": ir.DenseI64ArrayAttr.get([1, *one.shape]),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * (one.rank + 1)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, 0]),
        },
    ).results[0]
    return found


def _flat(source: ir.Value) -> ir.Value:
    """An operand as a row of elements."""
    kind_of = ir.MemRefType(source.type)
    if not kind_of.has_static_shape or kind_of.layout != ir.AffineMapAttr.get(
        ir.AffineMap.get_identity(kind_of.rank)
    ):
        raise UnsupportedStrategy(f"operand of type {kind_of}: has holes; use another form")
    if kind_of.rank == 1:
        return source
    flat = ir.MemRefType.get(
        [math.prod(kind_of.shape)], kind_of.element_type, memory_space=kind_of.memory_space
    )
    index = ir.IntegerType.get_signless(64)
    axes = ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(index, i) for i in range(kind_of.rank)])]
    )
    found: ir.Value = ir.Operation.create(
        "memref.collapse_shape", results=[flat], operands=[source], attributes={"reassociation": axes}
    ).results[0]
    return found
