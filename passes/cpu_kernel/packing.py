# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands that kernels of their own pack, because workgroups would copy the same again and again.

A workgroup of such a kernel fills the copy that all workgroups of one share read for one chunk
(`packed_copies.py`). The copies follow one another in a tensor of one axis. While a chunk is
multiplied, the caches are asked for the next one, which another core may have packed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import tensor

from conv_compiler.ir import dispatches
from conv_compiler.ir.attributes import ROLE
from conv_compiler.ir.loop_nest import Index
from conv_compiler.passes.cpu_kernel.addresses import Address
from conv_compiler.passes.cpu_kernel.amx_ops import address_of, element_address
from conv_compiler.passes.cpu_kernel.foralls import Piece, forall, slice_of
from conv_compiler.passes.cpu_kernel.indices import (
    constant,
    delinearized,
    divided,
    linearized,
    plus,
    times,
)
from conv_compiler.passes.cpu_kernel.kernel import Kernel
from conv_compiler.passes.cpu_kernel.packed_copies import filled
from conv_compiler.passes.cpu_kernel.prefetch import MOST_LINES, SECOND_CACHE, ask
from conv_compiler.passes.cpu_kernel.tile_kernel import TileKernel
from conv_compiler.targets.host import TILE_ROWS
from conv_compiler.targets.limits import LINE_BYTES, MOST_READS

if TYPE_CHECKING:
    from conv_compiler.passes.cpu_kernel.packed_operands import PackedOperand


class PacksFirst(Kernel):
    """What kernels have in common whose operands others pack."""

    def reads(self, index: Index) -> int:
        """More than any operand that is read where it lies."""
        return MOST_READS + 1

    @property
    def copied(self) -> list[PackedOperand]:
        """None by this kernel."""
        return []

    def region(self) -> ir.Value:
        """The dispatch region that computes the result, behind those that pack its operands."""
        self.packings = [Packing(self, operand) for operand in self.operands]
        self.packed = [packing.region() for packing in self.packings]
        return super().region()

    def sources(self, copies: Sequence[ir.Value]) -> list[ir.Value]:
        """The packed operands."""
        return self.packed

    def starts(self, first: Mapping[str, ir.Value]) -> list[ir.Value]:
        """Where the copy for a chunk begins in each of them."""
        return [packing.start(first) for packing in self.packings]


class PackedVectorKernel(PacksFirst):
    """The kernel of one contraction while it is written: sums in vectors, operands packed first.

    Cores read what is packed one line after another, and need not be asked to.
    """


class PackedTileKernel(PacksFirst, TileKernel):
    """The kernel of one contraction while it is written: AMX sums, operands packed first."""

    lines: Sequence[tuple[ir.Value, int]] = ()

    def ask(self, ahead: Mapping[str, ir.Value], number: ir.Value, shares: int) -> None:
        """Find which lines of the next chunk's copies a register tile asks for.

        That is a first address, and a number of lines in each iteration.
        """
        iterations = math.prod(self.cache[p] // self.steps[p] for p in self.summed)
        self.lines = []
        for packing, packed in zip(self.packings, self.packed, strict=True):
            run = -(-packing.length // (TILE_ROWS * shares * iterations))
            start = plus(packing.start(ahead), times(number, run * iterations * TILE_ROWS))
            self.lines.append((element_address(address_of(packed), start), run))

    def meanwhile(self, iteration: Sequence[ir.Value]) -> None:
        """Ask the second cache for them, where they are few beside those that are multiplied."""
        number = linearized(iteration, [self.cache[p] // self.steps[p] for p in self.summed])
        for address, run in self.lines:
            for line in range(run if run <= MOST_LINES else 0):
                place = plus(times(number, run * LINE_BYTES), constant(line * LINE_BYTES))
                ask(plus(address, place), SECOND_CACHE)


class Packing:
    """All copies of an operand: one for each share of its parallel loops and each chunk."""

    def __init__(self, kernel: Kernel, operand: PackedOperand) -> None:
        self.kernel, self.operand = kernel, operand
        sizes = {**kernel.share, **kernel.cache}
        self.sizes = {
            loop: size
            for loop, size in sizes.items()
            if any(loop in axis for axis in operand.data.index)
        }
        self.counts = [-(-kernel.nest.sizes[loop] // size) for loop, size in self.sizes.items()]
        # Whole lines of the cache.
        lanes = operand.product.lanes
        self.length = -(-operand.layout.length // lanes) * lanes

    def start(self, first: Mapping[str, ir.Value]) -> ir.Value:
        """The first element of the copy for tiles that start at iteration `first` of each loop."""
        at = [divided(first[loop], size) for loop, size in self.sizes.items()]
        return times(linearized(at, self.counts), self.length)

    def region(self) -> ir.Value:
        """The dispatch region that packs the operand."""
        operand, kernel, copies = self.operand, self.kernel, math.prod(self.counts)
        shape = [copies * self.length]
        region = dispatches.dispatch_region(ir.RankedTensorType.get(shape, operand.product.element))
        dispatches.count_workgroups(region)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            out = tensor.EmptyOp(shape, operand.product.element).result

            def workgroup(ids: list[ir.Value], out: ir.Value) -> Piece:
                at = delinearized(ids[0], self.counts)
                first = {
                    loop: times(i, size)
                    for i, (loop, size) in zip(at, self.sizes.items(), strict=True)
                }
                iterations = {
                    p: kernel.iterations(p, first[p]) for p in kernel.summed if p in first
                }
                offset = times(ids[0], self.length)
                piece = slice_of(out, [offset], [self.length], [self.length])
                memory = Address(operand.data.value)
                return filled(operand, piece, first, iterations, memory), [offset], [self.length]

            result = forall((copies,), out, ["#iree_codegen.workgroup_mapping<x>"], workgroup)
            result.owner.operation.attributes[ROLE] = ir.StringAttr.get("packing")
            dispatches.dispatch_return(result)
        found: ir.Value = region.results[0]
        return found
