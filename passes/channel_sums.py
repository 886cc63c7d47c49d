# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cut the sums of a bias's gradient into levels, each a kernel of its own.

Before:                                After, a dispatch region a level:
    sums[kept] = sum over images and       partial[part, kept, inner] = sum over the middle
                 pixels of d                                            of d[...]
                                           sums[kept] = sum over part and inner of partial[...]

`problem/channel_sums.py` says what the parts and the inner elements are for. Every sum runs in one
order, and so does the sum of the parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ROLE, SUM_ROLES, ops_with_role
from conv_compiler.ir.loop_nest import erase_if_dead
from conv_compiler.ir.views import reshaped
from conv_compiler.passes.implicit_gemm_parts.split_k_reduction import (
    apply_epilogue,
    find_epilogue,
)
from conv_compiler.problem.channel_sums import Axis, LevelLoops, cuts_of, levels_of


@dataclass(frozen=True, kw_only=True)
class ChannelSums:
    """Option `levels`: of each level the parts and the inner elements of each summed axis, in turn.

    The role of a level is a row of `ir.attributes.SUM_ROLES`. The last one runs the epilogue.
    """

    levels: tuple[tuple[int, ...], ...]

    name: ClassVar[str] = "channel-sums"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the sums; UnsupportedStrategy where the payload has none."""
        with module.context, ir.Location.unknown():
            found = list(ops_with_role(module, SUM_ROLES[0]))
            if len(found) != 1:
                raise UnsupportedStrategy(
                    f"channel-sums: {len(found)} ops of role {SUM_ROLES[0]}; run it once, on the "
                    "payload of a bias's gradient"
                )
            (sums,) = found
            epilogue = find_epilogue(sums)
            last = epilogue or sums
            with ir.InsertionPoint(last):
                value = sums.operands[0]
                for role, (level, is_last) in zip(
                    SUM_ROLES, levels_of(_axes_of(sums), cuts_of(self.levels)), strict=False
                ):
                    value = _level(value, level, role, epilogue if is_last else None)
                value = reshaped(value, ops.shape_of(last.results[0]))
            last.results[0].replace_all_uses_with(value)
            erase_if_dead(last)


def _axes_of(sums: ir.Operation) -> list[Axis]:
    """The axes of the tensor that is summed: the op's first loops are those of the kept ones."""
    kept = len(ops.shape_of(sums.results[0]))
    loops = ops.read_axes(sums, 0)
    sizes = ops.shape_of(sums.operands[0])
    return [Axis(size=size, kept=loop < kept) for size, loop in zip(sizes, loops, strict=True)]


def _level(
    value: ir.Value, level: LevelLoops, role: str, epilogue: ir.Operation | None
) -> ir.Value:
    """The sums of a level as a tensor of its result's axes; its epilogue wants the kept ones."""
    value = reshaped(value, [loop.size for loop in level.loops])
    wide = _accumulator(value)
    region = dispatches.dispatch_region(
        epilogue.results[0].type if epilogue else ir.RankedTensorType.get(level.parallel, wide)
    )
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        made = _sums(value, level, wide, role)
        dispatches.dispatch_return(apply_epilogue(epilogue, made) if epilogue else made)
    result: ir.Value = region.results[0]
    return reshaped(result, [axis.size for axis in level.result])


def _sums(value: ir.Value, level: LevelLoops, wide: ir.Type, role: str) -> ir.Value:
    shape = level.parallel
    count = len(shape)
    loops = [ir.AffineDimExpr.get(i) for i in range(len(level.loops))]
    kept, summed = iter(loops[:count]), iter(loops[count:])
    read = [next(kept) if loop.kept else next(summed) for loop in level.loops]
    return ops.generic(
        [value],
        ops.filled(shape, wide),
        [read, loops[:count]],
        len(loops),
        len(loops) - count,
        lambda x, total: ops.add(total, ops.convert(x, wide)),
        {ROLE: ir.StringAttr.get(role)},
    )


def _accumulator(value: ir.Value) -> ir.Type:
    """The type that elements of a tensor are summed in."""
    type = ops.element_of(value)
    if isinstance(type, ir.IntegerType):
        return ir.IntegerType.get_signless(32)
    return type if ops.bits_of(type) > 32 else ir.F32Type.get()
