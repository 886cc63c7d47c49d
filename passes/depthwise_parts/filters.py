# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A thread's weights, as `depthwise_pixels` reads them: from any layout, in few loads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import linear
from conv_compiler.problem.weight_steps import pieces

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.options import PixelOptions

# What one load instruction brings a lane.
_LOAD_BYTES = 16


def load(tensor: ir.Value, at: ir.Value, count: int) -> ir.Value:
    """The vector of `count` elements at an element's address."""
    element = ops.element_of(tensor)
    type = ir.VectorType.get([count], element)
    at = arith.IndexCastOp(ir.IndexType.get(), at).result
    map = ir.AffineMap.get_identity(1)
    return vector.TransferReadOp(type, tensor, [at], map, ops.zero(element), [True]).result


class Weights:
    """Some weights at constant distances from a thread's first one, loaded.

    `first` is the address of that one, a multiple of `aligned` elements.
    """

    def __init__(
        self, tensor: ir.Value, first: ir.Value, aligned: int, distances: Sequence[int]
    ) -> None:
        element = ops.element_of(tensor)
        most = _LOAD_BYTES * 8 // element.width
        self.found: dict[int, tuple[ir.Value, int]] = {}
        for distance, size in pieces(distances, aligned, most):
            piece = load(tensor, linear(first, 1, distance), size)
            self.found.update((distance + at, (piece, at)) for at in range(size))

    def gathered(self, distances: Sequence[int]) -> ir.Value:
        """Some of them in a vector."""
        pieces = [self.found[distance] for distance in distances]
        whole, type = pieces[0][0], ir.VectorType(pieces[0][0].type)
        if pieces == [(whole, at) for at in range(type.shape[0])]:
            return whole
        elements = [vector.ExtractOp(piece, [], [at]).result for piece, at in pieces]
        type = ir.VectorType.get([len(elements)], type.element_type)
        return vector.FromElementsOp(type, elements).result


def loaded(
    options: PixelOptions,
    tensor: ir.Value,
    first: ir.Value,
    aligned: int,
    results: Sequence[int],
    sources: int,
) -> tuple[Weights, list[list[list[list[int]]]]]:
    """The weights of a thread, and their distances by tap, group, result channel and source
    channel: those of `results` of each group, and of so many `sources`."""
    group, result, tap, source = options.weight_steps
    distances = [
        [
            [
                [one * group + i * result + at * tap + c * source for c in range(sources)]
                for i in results
            ]
            for one in range(options.groups_of_thread)
        ]
        for at in range(math.prod(options.filter))
    ]
    flat = [d for of_tap in distances for of_group in of_tap for row in of_group for d in row]
    return Weights(tensor, first, aligned, flat), distances
