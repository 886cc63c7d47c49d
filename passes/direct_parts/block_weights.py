# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of kernels with pixels in the lanes: those of a block of result channels lie one behind
another, and each is multiplied in all lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import vector

from conv_compiler.passes.direct_parts.neighbours import NeighbourPacking
from conv_compiler.passes.direct_parts.packing import Axis, Packing, loaded
from conv_compiler.targets.host import PAIR_INSTRUCTIONS

if TYPE_CHECKING:
    from conv_compiler.passes.cpu_kernel.products import Product
    from conv_compiler.passes.depthwise_parts.operands import Operand
    from conv_compiler.problem.convolution_sizes import ConvolutionSizes


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """As many weights lie one behind another as a block has result channels."""

    lanes: int
    tail: int = 0


def packing_of_blocks(
    sizes: ConvolutionSizes,
    block: int,
    instruction: str,
    weight: Operand,
    element: ir.Type,
    taps: Sequence[Axis] = (),
) -> Packing:
    """[group, block | taps, source, row], the adjacent source channels of a product together.

    `element` is the type of sums; with an `instruction` of pairs the weights are of its own.
    """
    group, result, _, source = sizes.weight_steps
    outer = [Axis(sizes.groups, group), Axis(sizes.results // block, block * result)]
    inner = [*taps, Axis(sizes.sources, source), Axis(1, 0)]
    rows = _Rows(lanes=block)
    if row := PAIR_INSTRUCTIONS.get(instruction):
        element = ir.Type.parse(row.element)
        return NeighbourPacking(rows, weight, element, outer, inner, result, neighbours=2)
    return Packing(rows, weight, element, outer, inner, result)


def factor_in_all_lanes(packed: ir.Value, at: ir.Value, product: Product, lanes: int) -> ir.Value:
    """A weight of the product, of one source channel or of several adjacent ones, in all lanes."""
    weight = loaded(packed, at, product.factors)
    if product.factors > 1:
        weight = vector.BitCastOp(ir.VectorType.get([1], product.element), weight).result
    return in_lanes(weight, lanes)


def in_lanes(one: ir.Value, lanes: int) -> ir.Value:
    """A vector of one element, in all lanes."""
    scalar = vector.ExtractOp(one, [], [0]).result
    return vector.BroadcastOp(ir.VectorType.get([lanes], scalar.type), scalar).result
