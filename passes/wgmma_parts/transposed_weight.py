# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel in front of a data gradient of 8-bit types: its weight, lying along gemm_k.

Wave groups take 8-bit operands along gemm_k alone, and a weight has its result channels adjacent.
A thread reads a piece of source channels, 16 of them, and writes it. Adjacent threads have adjacent
result channels, so that they read whole lines of memory.
"""

from __future__ import annotations

import math

from iree.compiler import ir
from iree.compiler.dialects import arith, gpu

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import (
    below,
    both,
    cut,
    in_32_bits,
    inside,
    linear,
)
from conv_compiler.passes.wgmma_parts.executable import dispatched, workgroup_id
from conv_compiler.passes.wgmma_parts.padded_channels import ROLE, THREADS
from conv_compiler.passes.wgmma_parts.pixel_sizes import PixelSizes
from conv_compiler.passes.wgmma_parts.stores import load_vector, or_zero, store_vector, where
from conv_compiler.problem.weight_steps import WeightSteps


def along_sources(module: ir.Module, weight: ir.Value, sizes: PixelSizes) -> ir.Value:
    """The weight as [group, result channel, tap, source channel], source channels in whole pieces
    with zeros behind."""
    size, taps = sizes.piece, math.prod(sizes.taps)
    pieces = -(-sizes.sources // size)
    extents = (sizes.groups, pieces, taps, sizes.results)
    total = math.prod(extents)
    steps = WeightSteps(*sizes.weight_steps)
    shape = [sizes.groups, sizes.results, taps, pieces * size]
    type = ir.RankedTensorType.get(shape, ops.element_of(weight))

    def body(memory: list[ir.Value], out: ir.Value) -> None:
        thread = in_32_bits(gpu.ThreadIdOp(gpu.Dimension.x).result)
        at = linear(in_32_bits(workgroup_id(0)), THREADS, thread)
        exists = below(at, total) if total % THREADS else None
        group, piece, tap, result = cut(at, extents)
        start = linear(group, steps.group, linear(tap, steps.tap, linear(result, steps.result)))
        with where(exists):
            found = []
            for behind in range(size):
                source = linear(piece, size, behind)
                last = (pieces - 1) * size + behind
                has = below(source, sizes.sources) if last >= sizes.sources else None
                place = inside(linear(source, steps.source, start), both(has))
                found += [or_zero(one, has) for one in load_vector(memory[0], place, 1)]
            row = arith.AddIOp(linear(group, sizes.results), result).result
            line = linear(row, taps, tap)
            store_vector(found, out, linear(line, pieces * size, linear(piece, size)))

    grid = (-(-total // THREADS), 1, 1)
    return dispatched(module, "transposed_weight", ROLE, grid, [weight], type, body)
