# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The weight of a data gradient with its taps in reverse order, read where it lies.

A kernel in front of the GEMM arranges the weight (`build/bwd_data.py`). Where it only reverses the
taps, one op in the GEMM's own kernel does so. `passes/take_reversed.py` and
`passes/read_reversed.py` make reads of other places of it.

It is no slice with a step of -1: IREE 3.13 loses that step
(docs/upstream/iree-whole-slices-backwards.md).
"""

from __future__ import annotations

import math

from iree.compiler import ir
from iree.compiler.dialects import tensor

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import REVERSED
from conv_compiler.ir.slices import COLLAPSE

_EXTRACT = "tensor.extract"


def reversed_weight(arranged: ir.Value) -> ir.Value:
    """The arranged weight [g, k, taps..., c], all its taps one axis in between.

    Raises UnsupportedStrategy for a tensor that is made otherwise.
    """
    weight = _weight(arranged)
    taps = ops.shape_of(weight)[2:-1]
    value = ops.merge_axes(weight, 2, len(taps))
    shape = ops.shape_of(value)
    group, k, tap, channel = (ir.AffineDimExpr.get(axis) for axis in range(len(shape)))
    empty = tensor.EmptyOp(shape, ops.element_of(value)).result
    last = ir.AffineConstantExpr.get(math.prod(taps) - 1)
    turned = ops.generic(
        [value],
        empty,
        [[group, k, last - tap, channel], [group, k, tap, channel]],
        len(shape),
        0,
        lambda element, _: element,
        {REVERSED: ir.UnitAttr.get()},
    )
    return ops.split_axis(turned, 2, taps)


def _weight(arranged: ir.Value) -> ir.Value:
    """The weight that a region arranges."""
    maker = _maker(arranged)
    while maker is not None and maker.name == COLLAPSE:
        maker = _maker(maker.operands[0])
    if maker is not None and maker.name == dispatches.REGION:
        for op in maker.regions[0].blocks[0]:
            if REVERSED in op.operation.attributes:
                body = op.operation.regions[0].blocks[0]
                (extract,) = (one.operation for one in body if one.operation.name == _EXTRACT)
                weight: ir.Value = extract.operands[0]
                return weight
    raise UnsupportedStrategy(
        "weight read with its taps reversed: something else arranges or converts it; leave it out"
    )


def _maker(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation
