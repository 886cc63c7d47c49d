# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A forward pass or data gradient replaced by kernels: from the operands as the program has them to
the result in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import erase_if_dead, find_nests
from conv_compiler.passes.depthwise_parts.operands import find_operand, find_result
from conv_compiler.passes.wgmma_parts.stores import Extra, only_rounds


class Replaced(NamedTuple):
    """What is replaced: source and weight, the result's type and that of its sums, the op on the
    sums unless it only rounds them, and the tensors that the op reads beside them."""

    operands: list[ir.Value]
    type: ir.RankedTensorType
    accumulator: ir.Type
    epilogue: ir.Operation | None
    extra: list[Extra]

    @property
    def tensors(self) -> list[ir.Value]:
        """Those that the op reads beside the sums."""
        return [one.tensor for one in self.extra]


def rewrite(
    module: ir.Module, name: str, channels: int, write: Callable[[Replaced], ir.Value]
) -> None:
    """Replace the contraction of a module, and what brings its operands and its result into their
    places, by what `write` makes at the place of the result.

    `channels` is how many elements of a pixel are adjacent in the result, 0 where these are not all
    channels: then there must be no bias. Raises UnsupportedStrategy, in the name of a pass, if
    there is one, if there is not one contraction, or if ops are applied to its operands.
    """
    with module.context, ir.Location.unknown():
        nests = find_nests(module)
        if len(nests) != 1:
            raise UnsupportedStrategy(f"module: {len(nests)} contractions; give it as it was built")
        op = nests[0].op
        result = find_result(op.results[0])
        operands = [find_operand(operand) for operand in list(op.operands)[:2]]
        if any(_changes(step) for one in operands for step in one.steps):
            raise UnsupportedStrategy(f"{name}: operands have ops; use another strategy")
        epilogue = result.epilogue
        if epilogue is not None and only_rounds(epilogue):
            epilogue = None
        last = result.value.owner
        with ir.InsertionPoint(last):
            extra = result.extra() if epilogue is not None else []
            if not channels and any(one.per == "channel" for one in extra):
                raise UnsupportedStrategy(
                    f"{name}: a bias is added where channels of groups lie apart; use another "
                    "strategy"
                )
            made = write(
                Replaced(
                    operands=[one.tensor for one in operands],
                    type=ir.RankedTensorType(result.value.type),
                    accumulator=ops.element_of(op.results[0]),
                    epilogue=epilogue,
                    extra=[
                        Extra(one.tensor, one.per, channels if one.per == "channel" else 0)
                        for one in extra
                    ],
                )
            )
        result.value.replace_all_uses_with(made)
        erase_if_dead(last)


def _changes(step: ir.Operation) -> bool:
    """Whether an op on an operand's elements does more than to copy them."""
    return [op.operation.name for op in step.regions[0].blocks[0]] != ["linalg.yield"]
