# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of `vector-kernel` while it is written: workgroups, chunks and register tiles.

`kernel_sums.py` keeps its sums. `tile_kernel.py` says what differs where sums are AMX tiles, and
`packing.py` what differs where operands are packed first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import tensor

from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.ir.loop_nest import Index, LoopNest
from conv_compiler.passes.cpu_kernel.addresses import Address
from conv_compiler.passes.cpu_kernel.copied_data import ChunkShape, Operand
from conv_compiler.passes.cpu_kernel.epilogues import Epilogue
from conv_compiler.passes.cpu_kernel.foralls import Piece, forall, slice_of
from conv_compiler.passes.cpu_kernel.indices import (
    at_most,
    constant,
    delinearized,
    divided,
    less,
    linearized,
    loops,
    plus,
    times,
)
from conv_compiler.passes.cpu_kernel.kernel_sums import VectorSums
from conv_compiler.passes.cpu_kernel.packed_copies import filled
from conv_compiler.passes.cpu_kernel.packed_operands import PackedOperand
from conv_compiler.passes.cpu_kernel.prefetch import LEAST_PRODUCTS, lines_of, request
from conv_compiler.passes.cpu_kernel.products import Product, product_of
from conv_compiler.passes.cpu_kernel.readers import Reader
from conv_compiler.passes.pair_products import PAIR

if TYPE_CHECKING:
    from conv_compiler.passes.cpu_kernel.options import KernelOptions


def summed_loops(nest: LoopNest) -> tuple[str, ...]:
    """The summed loops that are loops of the kernel."""
    return tuple(loop for loop in nest.reductions if loop != PAIR)


class Kernel(VectorSums):
    """The kernel of one contraction while it is written: sums in vectors."""

    def __init__(self, nest: LoopNest, options: KernelOptions, epilogue: Epilogue | None) -> None:
        self.epilogue = epilogue
        self.nest, self.options, self.summed = nest, options, summed_loops(nest)
        self.tile = dict(zip(nest.parallel, options.tile, strict=True))
        self.share = dict(zip(nest.parallel, options.share, strict=True))
        self.cache = dict(zip(self.summed, options.cache, strict=True))
        self.last = nest.parallel[-1]
        self.width = math.gcd(options.lanes, self.tile[self.last])
        self.element = ops.element_of(nest.op.results[0])
        # Iterations that a block of sums takes, and that one instruction sums.
        self.blocks, self.steps = {self.last: self.width}, dict.fromkeys(self.summed, 1)
        self.sums = ir.VectorType.get([self.width], self.element)
        self.product = self._product()
        self.operands = self._operands()

    def _product(self) -> Product:
        return product_of(self.options.instruction, self.sums)

    def _operands(self) -> list[PackedOperand]:
        nest = self.nest
        chunk = ChunkShape(
            ranges={**self.share, **self.cache},
            uneven=[p for p, tile in self.cache.items() if nest.sizes[p] % tile],
            summed=self.summed,
            product=self.product,
            reader=self.reader,
        )
        return [
            PackedOperand.of(
                Operand(value=value, index=index, lanes=lanes, reads=self.reads(index)), chunk
            )
            for value, index, lanes in zip(nest.operands, nest.indices, self.lanes, strict=False)
        ]

    @property
    def lanes(self) -> tuple[str, str]:
        """The loop that lies innermost in the copy of either operand, if it is one of its own."""
        return self.last, self.last

    def asks_ahead(self, copied: Sequence[PackedOperand]) -> bool:
        """Whether data of the next chunk are asked for while a chunk is multiplied."""
        products = math.prod((*self.share.values(), *self.cache.values())) // self.width
        return products >= LEAST_PRODUCTS * sum(lines_of(operand) for operand in copied)

    @property
    def reader(self) -> Reader:
        """How register tiles read copies."""
        return Reader(tile=self.tile, lanes=self.product.lanes)

    def reads(self, index: Index) -> int:
        """Register tiles that read the same elements of an operand."""
        others = (p for p in self.nest.parallel if not any(p in axis for axis in index))
        return math.prod(self.share[p] // self.tile[p] for p in others)

    def region(self) -> ir.Value:
        """The dispatch region that computes the result."""
        nest = self.nest
        shape = [nest.sizes[p] for p in nest.parallel]
        sizes = [self.share[p] for p in nest.parallel]
        grid = [whole // share for whole, share in zip(shape, sizes, strict=True)]
        inputs = self.epilogue.inputs() if self.epilogue else []
        region = dispatches.dispatch_region(ir.RankedTensorType.get(shape, self.element))
        dispatches.count_workgroups(region)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            out = tensor.EmptyOp(shape, self.element).result

            def workgroup(ids: list[ir.Value], out: ir.Value) -> Piece:
                at = delinearized(ids[0], grid)
                firsts = [times(i, size) for i, size in zip(at, sizes, strict=True)]
                piece = slice_of(out, firsts, sizes, sizes)
                first = dict(zip(nest.parallel, firsts, strict=True))
                made = self.workgroup(first, piece)
                if self.epilogue:
                    parts = [
                        self.epilogue.part_of(number, value, firsts, sizes)
                        for number, value in enumerate(inputs)
                    ]
                    made = self.epilogue.applied(made, parts)
                return made, firsts, sizes

            mapping = ["#iree_codegen.workgroup_mapping<x>"]
            result = forall((math.prod(grid),), out, mapping, workgroup)
            result.owner.operation.attributes[ROLE] = ir.StringAttr.get("contraction")
            dispatches.dispatch_return(result)
        found: ir.Value = region.results[0]
        return found

    def workgroup(self, first: Mapping[str, ir.Value], piece: ir.Value) -> ir.Value:
        """One workgroup's piece of the result."""
        chunks = [-(-self.nest.sizes[p] // self.cache[p]) for p in self.summed]
        tiles = [self.share[p] // self.tile[p] for p in self.nest.parallel]
        adds = math.prod(chunks) > 1
        copied = self.copied
        asked = copied if adds and self.asks_ahead(copied) else []
        self.asked = [(operand, Address(operand.data.value)) for operand in asked]
        if adds:
            piece = self.cleared(piece, tiles)

        def a_chunk(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            piece, *copies = values
            start = {p: times(i, self.cache[p]) for p, i in zip(self.summed, at, strict=True)}
            iterations = {p: self.iterations(p, start[p]) for p in self.summed}
            place = {**first, **start}
            copies = [
                filled(operand, copy, place, iterations)
                for operand, copy in zip(copied, copies, strict=True)
            ]
            sources, starts = self.sources(copies), self.starts(place)
            number = at_most(math.prod(chunks) - 1, plus(linearized(at, chunks), constant(1)))
            after = zip(self.summed, delinearized(number, chunks), strict=True)
            ahead = {**first, **{p: times(i, self.cache[p]) for p, i in after}}

            def a_tile(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
                if adds:
                    self.ask(ahead, linearized(at, tiles), math.prod(tiles))
                inside = self.inside(at)
                sums = self.kept(values[0], at) if adds else self.zeros()
                bases = [
                    plus(start, operand.base(inside))
                    for start, operand in zip(starts, self.operands, strict=True)
                ]
                sums = self.summed_up(sources, bases, iterations, sums)
                write = self.keep if adds else self.write
                return [write(values[0], at, sums)]

            return [*self.over_tiles(tiles, [piece], a_tile), *copies]

        copies = [operand.empty() for operand in copied]
        piece = loops(chunks, [piece, *copies], a_chunk)[0]
        return self.finished(piece, tiles) if adds else piece

    @property
    def copied(self) -> list[PackedOperand]:
        """The operands that a workgroup copies next to its stack, chunk by chunk."""
        return [operand for operand in self.operands if not operand.data.is_direct]

    def sources(self, copies: Sequence[ir.Value]) -> list[ir.Value]:
        """What each operand is read from: its copy, or the tensor."""
        made = iter(copies)
        return [
            operand.data.value if operand.data.is_direct else next(made)
            for operand in self.operands
        ]

    def starts(self, first: Mapping[str, ir.Value]) -> list[ir.Value]:
        """The element of each operand's source from which addresses count in a chunk."""
        return [operand.start(first) for operand in self.operands]

    def over_tiles(
        self,
        tiles: Sequence[int],
        values: list[ir.Value],
        body: Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """Loops over the register tiles of a workgroup, so many of each parallel loop."""
        return loops(tiles, values, body)

    def ask(self, ahead: Mapping[str, ir.Value], number: ir.Value, shares: int) -> None:
        """Ask the caches for share `number` of the data for the chunk that starts at `ahead`."""
        for operand, memory in self.asked:
            request(operand, memory, ahead, number, shares)

    def meanwhile(self, iteration: Sequence[ir.Value]) -> None:
        """What else is done in each innermost iteration of a chunk: nothing."""

    def iterations(self, loop: str, start: ir.Value) -> int | ir.Value:
        """Iterations of a summed loop in the chunk that begins at `start`."""
        tile, size = self.cache[loop], self.nest.sizes[loop]
        return tile if size % tile == 0 else at_most(tile, less(constant(size), start))

    def summed_up(
        self,
        sources: Sequence[ir.Value],
        bases: Sequence[ir.Value],
        iterations: Mapping[str, int | ir.Value],
        sums: list[ir.Value],
    ) -> list[ir.Value]:
        """The sums of a tile with the products of a chunk added.

        The operands begin at `bases` in what they are read from.
        """

        handles = [self.handle(source) for source in sources]

        def an_iteration(iteration: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            self.meanwhile(iteration)
            step = {p: times(i, self.steps[p]) for p, i in zip(self.summed, iteration, strict=True)}
            at = [o.base(step, base) for o, base in zip(self.operands, bases, strict=True)]

            @cache
            def factor(number: int, distance: int) -> ir.Value:
                return self.load(number, handles[number], at[number], distance)

            def factors(offsets: Mapping[str, int]) -> list[ir.Value]:
                return [factor(n, o.distance(offsets)) for n, o in enumerate(self.operands)]

            if self.loads_first:
                for offsets in self.offsets():
                    factors(offsets)
            sums = list(sums)
            for number, offsets in self.in_order():
                sums[number] = self.product.add(sums[number], *factors(offsets))
            return sums

        return loops([self.instructions(p, iterations[p]) for p in self.summed], sums, an_iteration)

    def in_order(self) -> list[tuple[int, dict[str, int]]]:
        """Each block of sums with its number, in the order in which products are added.

        The factors of the operand that has more of them come one after the other, or registers
        would have to hold them all.
        """
        blocks = list(enumerate(self.offsets()))
        distances = [[o.distance(offsets) for _, offsets in blocks] for o in self.operands]
        slowest = max(distances, key=lambda found: len(set(found)))
        return sorted(blocks, key=lambda block: slowest[block[0]])

    @property
    def loads_first(self) -> bool:
        """Whether all factors of an iteration are loaded before the first is multiplied."""
        return False

    def instructions(self, loop: str, iterations: int | ir.Value) -> int | ir.Value:
        """Instructions, one after the other, for so many iterations of a summed loop."""
        step = self.steps[loop]
        return iterations // step if isinstance(iterations, int) else divided(iterations, step)

    def handle(self, source: ir.Value) -> ir.Value:
        """What `load` reads: an operand's copy, or the operand itself."""
        return source

    def load(self, number: int, source: ir.Value, base: ir.Value, distance: int) -> ir.Value:
        """A factor of either operand, at a distance from an address."""
        return self.operands[number].vector(source, base, distance)
