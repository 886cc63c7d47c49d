# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views of tensors in any other shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import tensor

from conv_compiler.ir import ops


def reshaped(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The view of any other shape with as many elements."""
    rank = len(ops.shape_of(value))
    if ops.shape_of(value) == list(shape):
        return value
    if rank != 1:
        flat = [math.prod(ops.shape_of(value))]
        if rank:
            value = ops.merge_axes(value, 0, rank)
        else:
            value = tensor.ExpandShapeOp(
                ir.RankedTensorType.get(flat, ops.element_of(value)),
                value,
                ir.ArrayAttr.get([]),
                [],
                ir.DenseI64ArrayAttr.get(flat),
            ).result
    return ops.split_axis(value, 0, shape)
