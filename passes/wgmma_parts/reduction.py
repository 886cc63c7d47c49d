# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel that adds the parts of a weight that lie in its own order, and rounds the sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, gpu, scf

from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import erase_if_dead
from conv_compiler.passes.depthwise_parts.arithmetic import below, cut, in_32_bits, linear, number
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction, find_contraction
from conv_compiler.passes.implicit_gemm_parts.split_k_reduction import find_epilogue
from conv_compiler.passes.wgmma_parts.executable import dispatched, shared, workgroup_id
from conv_compiler.passes.wgmma_parts.stores import (
    QUAD,
    Extra,
    Line,
    in_memory,
    load_vector,
    only_rounds,
    or_zero,
    store_vector,
    where,
)

KERNEL = "parts_sum"
# Parts that a thread reads before it adds the first.
IN_FLIGHT = 8


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """How a workgroup's `threads` share its work: `slices` of the parts, one after another, and in
    each as many threads as are left, with four adjacent weights each, or what divides their number.

    Each thread adds the parts of its slice in rising order, and by way of LDS the sums of the
    slices are added in theirs.
    """

    threads: int
    slices: int

    def result(
        self,
        module: ir.Module,
        parts: ir.Value,
        type: ir.RankedTensorType,
        op: ir.Operation | None = None,
        extra: Sequence[Extra] = (),
    ) -> ir.Value:
        """The result: the sum of P[s, result's axes] over s, in its type, after an op on the sums
        and other tensors."""
        total = math.prod(type.shape)
        wide = math.gcd(quad(total), *(one.channels for one in extra))
        grid = (-(-total // (wide * self.across)), 1, 1)

        def body(memory: list[ir.Value], out: ir.Value) -> None:
            line = Line(out=out, op=op, extra=in_memory(extra, memory[1:]))
            self._write(memory[0], line, ops.shape_of(parts)[0], total, wide)

        inputs = [parts, *(one.tensor for one in extra)]
        return dispatched(module, KERNEL, "reduction", grid, inputs, type, body)

    @property
    def across(self) -> int:
        """Threads side by side along the weights."""
        return self.threads // self.slices

    def _write(self, parts: ir.Value, line: Line, count: int, total: int, wide: int) -> None:
        thread = in_32_bits(gpu.ThreadIdOp(gpu.Dimension.x).result)
        slice, lane = cut(thread, [self.slices, self.across])
        at = linear(linear(in_32_bits(workgroup_id(0)), self.across, lane), wide)
        exists = below(at, total) if total % (wide * self.across) else None
        if exists is not None:
            at = arith.SelectOp(exists, at, number(0)).result
        sums = self._sums(parts, at, slice, count, total, wide)
        if self.slices > 1:
            lds = shared(self.threads * wide, element=str(sums[0].type))
            store_vector(sums, lds, linear(thread, wide))
            gpu.BarrierOp()
            is_first = below(thread, self.across)
            exists = is_first if exists is None else arith.AndIOp(exists, is_first).result
        with where(exists):
            for later in range(1, self.slices):
                place = linear(lane, wide, later * self.across * wide)
                sums = _added(sums, load_vector(lds, place, wide))
            line.store(sums, at)

    def _sums(
        self, parts: ir.Value, at: ir.Value, slice: ir.Value, count: int, total: int, wide: int
    ) -> list[ir.Value]:
        """The sums of a thread's slice."""
        own = -(-count // self.slices)
        is_even = own * self.slices == count
        first = linear(slice, own)

        def added(sums: list[ir.Value], start: ir.Value, several: int) -> list[ir.Value]:
            read = []
            for behind in range(several):
                part = linear(start, 1, behind)
                exists = None if is_even else below(part, count)
                if exists is not None:
                    part = arith.SelectOp(exists, part, number(0)).result
                found = load_vector(parts, linear(part, total, at), wide)
                read.append([or_zero(one, exists) for one in found])
            for one in read:
                sums = _added(sums, one)
            return sums

        zeros = [ops.zero(ir.MemRefType(parts.type).element_type)] * wide
        whole = own // IN_FLIGHT
        bounds = [number(bound) for bound in (0, whole, 1)]
        loop = scf.ForOp(*bounds, zeros)
        with ir.InsertionPoint(loop.body):
            start = linear(loop.induction_variable, IN_FLIGHT, first)
            scf.YieldOp(added(list(loop.inner_iter_args), start, IN_FLIGHT))
        return added(list(loop.results), linear(first, 1, whole * IN_FLIGHT), own % IN_FLIGHT)


def replace_weight(
    module: ir.Module,
    parts: int,
    reduction: Reduction,
    kernel: Callable[[Contraction, ir.RankedTensorType], ir.Value],
) -> None:
    """Replace the weight gradient of a module by a kernel, and by `reduction` of its parts where
    there are several.

    `kernel` makes what has the type: P[s, weight's axes], or the weight. An epilogue that only
    rounds is part of the kernels; another one is left behind them. UnsupportedStrategy where there
    is not one contraction.
    """
    with module.context, ir.Location.unknown():
        conv = find_contraction(module)
        epilogue = find_epilogue(conv.op)
        last = epilogue if epilogue and only_rounds(epilogue) else conv.op
        type = ir.RankedTensorType(last.results[0].type)
        with ir.InsertionPoint(last):
            if parts == 1:
                weight = kernel(conv, type)
            else:
                partials = ir.RankedTensorType.get([parts, *type.shape], conv.accumulator)
                weight = reduction.result(module, kernel(conv, partials), type)
        last.results[0].replace_all_uses_with(weight)
        erase_if_dead(last)


def quad(total: int) -> int:
    """Adjacent weights of a thread: so many that all threads have as many."""
    return math.gcd(total, QUAD)


def _added(a: list[ir.Value], b: list[ir.Value]) -> list[ir.Value]:
    return [ops.add(x, y) for x, y in zip(a, b, strict=True)]
