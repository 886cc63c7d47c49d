# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ask the caches for what will be copied next, while sums of what was copied before are made.

A copy reads its operand once, from memory or a cache that cores share, and nothing is multiplied
meanwhile. Asked for a chunk ahead, the data are in the core's second cache by then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from iree.compiler import ir

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.addresses import Address, pointer
from conv_compiler.passes.cpu_kernel.indices import (
    at_least,
    at_most,
    constant,
    delinearized,
    less,
    loops,
    plus,
    times,
)
from conv_compiler.passes.cpu_kernel.packed_operands import PackedOperand
from conv_compiler.targets.limits import LINE_BYTES

# Lines of a row that are asked for one after another: more are shared out.
MOST_LINES = 8
# Products of vectors for each line that is asked for, at least: of fewer, asking takes its time.
LEAST_PRODUCTS = 16
# For which cache, as LLVM's locality of 0 to 3.
FIRST_CACHE, SECOND_CACHE = 3, 2


def lines_of(operand: PackedOperand) -> int:
    """Lines of memory that a copy is read from, or few more."""
    rows = math.prod(operand.data.extents) // operand.data.row_elements
    return operand.parts * rows * _row_lines(operand)


def request(
    operand: PackedOperand,
    memory: Address,
    first: Mapping[str, ir.Value],
    number: ir.Value,
    shares: int,
) -> None:
    """Ask for share `number` of what a copy for tiles that start at iteration `first` reads.

    Addresses outside of the tensor are asked for, too, where the copy has zeros: that does nothing.
    """
    o = operand
    axes = [axis for axis in range(len(o.data.extents)) if axis not in o.data.row_axes]
    lines = _row_lines(o)
    run = min(lines, MOST_LINES)
    sizes = [*(o.data.extents[axis] for axis in axes), -(-lines // run)]
    share = -(-math.prod(sizes) // shares)
    left = at_least(0, less(constant(math.prod(sizes)), times(number, share)))

    def a_run(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        *rows, piece = delinearized(plus(times(number, share), at[0]), sizes)
        shifts = dict(zip(axes, rows, strict=True))
        for partner in range(o.parts):
            start = plus(
                memory.of(o.element(first, shifts, partner)), times(piece, run * LINE_BYTES)
            )
            for line in range(run):
                ask(plus(start, constant(line * LINE_BYTES)), FIRST_CACHE)
        return values

    loops([at_most(share, left)], [], a_run)


def _row_lines(operand: PackedOperand) -> int:
    bits = operand.data.row_elements * ops.element_of(operand.data.value).width
    return int(-(-bits // (8 * LINE_BYTES)))


def ask(address: ir.Value, cache: int) -> None:
    """Ask a cache for the line of an address, which will be read."""
    i32 = ir.IntegerType.get_signless(32)
    request = {"rw": 0, "hint": cache, "cache": 1}  # of `llvm.intr.prefetch`: a read of data
    ir.Operation.create(
        "llvm.intr.prefetch",
        operands=[pointer(address)],
        attributes={name: ir.IntegerAttr.get(i32, value) for name, value in request.items()},
    )
