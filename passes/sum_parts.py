# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Make one kernel of the sum of the parts, the placement of the weight and the epilogue.

Before:                                     After, in a dispatch region of its own:
    sum[g, m, ...] = sum over s of P            weight = sum over s of P[s, place of the weight]
    weight = sum[place of the weight]           weight = epilogue(weight)
    weight = epilogue(weight)

The sum runs over the weight's axes, in rising order of s: role `reduction`. Where a single part
holds the weight in its order, and there is no epilogue, no kernel is left but a view.

With `stores_result` the kernel of the contraction runs the epilogue and has the result. With
`parts_as_stored` it stores P in the order of the result's axes, which the sum then reads and writes
in whole lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.loop_nest import erase_if_dead
from conv_compiler.passes.implicit_gemm_parts.direct_store import (
    Store,
    StoredAxes,
    in_stored_order,
    stored_axes,
    unfit,
)
from conv_compiler.passes.implicit_gemm_parts.placed_sum import PlacedSum, find_placed_sum
from conv_compiler.passes.implicit_gemm_parts.split_k_reduction import (
    apply_epilogue,
    find_epilogue,
    reduce_extracted,
    reduce_parts,
)
from conv_compiler.passes.implicit_gemm_parts.stored_phases import moves_behind


@dataclass(frozen=True, kw_only=True)
class SumParts:
    """Options: what the kernel of the contraction stores, P itself where both are false.

    `stores_result`: the result, for one part; of a rest of the tiles nothing is stored.
    `parts_as_stored`: P in the order of the result. Both need columns that are side by side in the
    result, and exclude each other. `channels_outside` tells that P's axis t are channels, not taps.
    `stores_phases`: the result with the phases of a strided data gradient in their places.
    """

    name: ClassVar[str] = "sum-parts"
    stores_result: bool = False
    parts_as_stored: bool = False
    channels_outside: bool = False
    stores_phases: bool = False

    def apply(self, module: ir.Module) -> None:
        """Rewrite the sum; UnsupportedStrategy if no sum of parts is placed in a weight."""
        with module.context, ir.Location.unknown():
            found = find_placed_sum(module)
            epilogue = find_epilogue(found.placement)
            last = epilogue or found.placement
            moves = moves_behind(last.results[0]) if self.stores_phases else []
            if self.stores_phases and not moves:
                raise unfit()
            with ir.InsertionPoint(last):
                if self.stores_result:
                    weight = _stored(found, epilogue, self.channels_outside, moves)
                else:
                    axes = _axes(found, self.channels_outside) if self.parts_as_stored else None
                    weight = _summed(found, epilogue, axes)
            end = (moves or [last])[-1]
            end.results[0].replace_all_uses_with(weight)
            erase_if_dead(end)
            found.erase_sum()


def _axes(found: PlacedSum, channels_outside: bool) -> StoredAxes:
    """The axes of P in the order of the result; UnsupportedStrategy if it is extracted from P."""
    if found.extracts:
        raise unfit()
    taps_outside = found.taps_outside and not channels_outside
    return stored_axes(found.sizes, taps_outside, channels_outside)


def _summed(found: PlacedSum, epilogue: ir.Operation | None, axes: StoredAxes | None) -> ir.Value:
    """The weight of a kernel that adds the parts, which lie by `axes`, or a mere view of P."""
    if epilogue is None and found.is_view:
        return ops.merge_axes(found.view_of_parts(), 0, 2)
    parts = _parts_as_stored(found, axes) if axes else None
    region = dispatches.dispatch_region((epilogue or found.placement).results[0].type)
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        if axes is not None and parts is not None:
            weight = _in_order(found, axes, parts)
        elif found.is_extracted:
            weight = reduce_extracted(found.partials, found.place, found.shape)
        else:
            weight = reduce_parts(found.view_of_parts(), found.read, found.shape)
        if epilogue is not None:
            weight = apply_epilogue(epilogue, weight)
        dispatches.dispatch_return(weight)
    result: ir.Value = region.results[0]
    return result


def _parts_as_stored(found: PlacedSum, axes: StoredAxes) -> ir.Value:
    """P with its axes in the order of the result, of the contraction's kernel."""
    partials = found.partials
    shape = axes.by_name(ops.shape_of(partials))
    type = ir.RankedTensorType.get(shape, ops.element_of(partials))
    region = dispatches.retyped(partials.owner, type)
    end = region.regions[0].blocks[0].operations[-1].operation
    with ir.InsertionPoint(end):
        end.operands[0] = in_stored_order(end.operands[0], axes)
    result: ir.Value = region.results[0]
    return result


def _in_order(found: PlacedSum, axes: StoredAxes, parts: ir.Value) -> ir.Value:
    """The weight as the sum of parts that have its axes in their order."""
    sizes = found.sizes
    value = ops.leading(parts, [ops.shape_of(parts)[0], *axes.extents])
    for axis, loops in reversed(list(enumerate(axes.loops, start=1))):
        value = ops.split_axis(value, axis, [sizes[loop] for loop in loops])
    return reduce_parts(value, range(len(found.shape)), found.shape)


def _stored(
    found: PlacedSum,
    epilogue: ir.Operation | None,
    channels_outside: bool,
    moves: Sequence[ir.Operation],
) -> ir.Value:
    """The weight of the contraction's own kernel, or what the ops `moves` make of it.

    Where it leaves a rest out, an op that keeps the sums' type is a kernel behind it, so that what
    the scripts find follows from the types.
    """
    partials = found.partials
    if found.extracts or ops.shape_of(partials)[0] > 1:
        raise unfit()
    axes = _axes(found, channels_outside)
    if moves and epilogue and len(epilogue.operands) > 2:
        raise unfit()  # what it reads beside the sums is not moved
    store = _store_of(found, epilogue, axes, moves)
    apart = None
    if epilogue and store.is_masked(partials) and _keeps_type(found, epilogue):
        if moves:
            raise unfit()
        apart, store = epilogue, _store_of(found, None, axes)
    operands = store.operands(partials)
    region = dispatches.retyped(partials.owner, store.type)
    end = region.regions[0].blocks[0].operations[-1].operation
    with ir.InsertionPoint(end):
        end.operands[0] = store.apply(end.operands[0], operands)
    weight = store.whole(region.results[0])
    return apply_epilogue(apart, weight) if apart else weight


def _store_of(
    found: PlacedSum,
    epilogue: ir.Operation | None,
    axes: StoredAxes,
    moves: Sequence[ir.Operation] = (),
) -> Store:
    last = moves[-1] if moves else epilogue or found.placement
    type = ir.RankedTensorType(last.results[0].type)
    return Store(epilogue=epilogue, result=type, axes=axes, moves=moves)


def _keeps_type(found: PlacedSum, epilogue: ir.Operation) -> bool:
    kept, made = (ops.element_of(op.results[0]) for op in (found.placement, epilogue))
    return str(kept) == str(made)
