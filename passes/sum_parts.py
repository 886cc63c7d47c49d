# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Make one kernel of the sum of the parts, the placement of the weight and the epilogue.

Before:                                     After, in a dispatch region of its own:
    sum[g, m, ...] = sum over s of P            weight = sum over s of P[s, place of the weight]
    weight = sum[place of the weight]           weight = epilogue(weight)
    weight = epilogue(weight)

The sum runs over the weight's axes, in rising order of s: role `reduction`. Where a single part
holds the weight in its order, and there is no epilogue, no kernel is left but a view.

With `stores_result` the kernel of the contraction runs the epilogue and has the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.loop_nest import erase_if_dead
from conv_compiler.passes.implicit_gemm_parts.direct_store import Store, stored_axes, unfit
from conv_compiler.passes.implicit_gemm_parts.placed_sum import PlacedSum, find_placed_sum
from conv_compiler.passes.implicit_gemm_parts.split_k_reduction import (
    apply_epilogue,
    find_epilogue,
    reduce_extracted,
    reduce_parts,
)


@dataclass(frozen=True, kw_only=True)
class SumParts:
    """With `stores_result` the kernel of the contraction stores the result itself: for one part,
    whole tiles, and columns that are side by side in the result."""

    name: ClassVar[str] = "sum-parts"
    stores_result: bool = False

    def apply(self, module: ir.Module) -> None:
        """Rewrite the sum; UnsupportedStrategy if no sum of parts is placed in a weight."""
        with module.context, ir.Location.unknown():
            found = find_placed_sum(module)
            epilogue = find_epilogue(found.placement)
            last = epilogue or found.placement
            with ir.InsertionPoint(last):
                weight = (_stored if self.stores_result else _summed)(found, epilogue)
            last.results[0].replace_all_uses_with(weight)
            erase_if_dead(last)
            found.erase_sum()


def _summed(found: PlacedSum, epilogue: ir.Operation | None) -> ir.Value:
    """The weight of a kernel that adds the parts, or a mere view of P."""
    if epilogue is None and found.is_view:
        return ops.merge_axes(found.view_of_parts(), 0, 2)
    region = dispatches.dispatch_region((epilogue or found.placement).results[0].type)
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        if found.is_extracted:
            weight = reduce_extracted(found.partials, found.place, found.shape)
        else:
            weight = reduce_parts(found.view_of_parts(), found.read, found.shape)
        if epilogue is not None:
            weight = apply_epilogue(epilogue, weight)
        dispatches.dispatch_return(weight)
    result: ir.Value = region.results[0]
    return result


def _stored(found: PlacedSum, epilogue: ir.Operation | None) -> ir.Value:
    """The weight of the contraction's own kernel."""
    if not found.is_whole:
        raise unfit()
    store = Store(
        epilogue=epilogue,
        result=ir.RankedTensorType((epilogue or found.placement).results[0].type),
        axes=stored_axes(found.sizes, found.taps_outside),
    )
    operands = store.operands()
    region = dispatches.retyped(found.partials.owner, store.type)
    end = region.regions[0].blocks[0].operations[-1].operation
    with ir.InsertionPoint(end):
        end.operands[0] = store.apply(end.operands[0], operands)
    return store.whole(region.results[0])
