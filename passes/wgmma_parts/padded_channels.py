# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel in front of the products: a tensor whose channels are rounded up to whole pieces.

Copies to LDS are of 16 bytes, which eight channels of 16-bit types have, and four of f32. A thread
writes a piece, with zeros for what is no channel.
"""

from __future__ import annotations

import math

from iree.compiler import ir
from iree.compiler.dialects import gpu

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
from conv_compiler.passes.wgmma_parts.sizes import rounded_up
from conv_compiler.passes.wgmma_parts.stores import load_vector, or_zero, store_vector, where

# The kernel's role, by which it gets its configuration, and the threads of a workgroup.
ROLE, THREADS = "padded-channels", 256


def with_whole_pieces(
    module: ir.Module, value: ir.Value, channels: int, name: str, size: int
) -> ir.Value:
    """A tensor with the channels of each group rounded up, which its last axis has alone or beside
    those of other groups; the tensor itself where they are whole. `name` is the kernel's, `size`
    the channels of a piece."""
    if channels % size == 0:
        return value
    *outer, last = ops.shape_of(value)
    pieces = rounded_up(channels, size) // size
    rows = math.prod(outer) * last // channels
    shape = [*outer, last // channels * pieces * size]
    type = ir.RankedTensorType.get(shape, ops.element_of(value))
    grid = (-(-rows * pieces // THREADS), 1, 1)
    width = math.gcd(channels, size)

    def body(memory: list[ir.Value], out: ir.Value) -> None:
        thread = in_32_bits(gpu.ThreadIdOp(gpu.Dimension.x).result)
        at = linear(in_32_bits(workgroup_id(0)), THREADS, thread)
        exists = below(at, rows * pieces) if rows * pieces % THREADS else None
        row, piece = cut(at, [rows, pieces])
        with where(exists):
            found: list[ir.Value] = []
            for first in range(0, size, width):
                channel = linear(piece, size, first)
                last = (pieces - 1) * size + first
                has = below(channel, channels) if last >= channels else None
                place = inside(linear(row, channels, channel), both(has))
                found += [or_zero(one, has) for one in load_vector(memory[0], place, width)]
            store_vector(found, out, linear(at, size))

    return dispatched(module, name, ROLE, grid, [value], type, body)
