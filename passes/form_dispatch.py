# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give the contraction a dispatch of its own, in which it stays the op its tiles were made for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.ir import dispatches
from conv_compiler.ir.loop_nest import find_nests
from conv_compiler.passes.cpu_kernel.epilogues import find_epilogue


@dataclass(frozen=True, kw_only=True)
class FormDispatch:
    """Wrap the contraction, the fill of its result and an elementwise op on it that would be a
    kernel of its own in a `flow.dispatch.region`.

    The output gradient becomes operand 0, so that the compiler sees no convolution. IREE 3.13
    rebuilds a depthwise one with a batch and drops its tag, and crashes on one cut into parts.
    """

    name: ClassVar[str] = "form-dispatch"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place."""
        for nest in find_nests(module):
            with nest.op.location:
                _swap_operands(nest.op)
                _wrap(nest.op)


def _swap_operands(op: ir.Operation) -> None:
    """Exchange operands 0 and 1 of a product, which is the same either way."""
    image, gradient, *out = ir.ArrayAttr(op.attributes["indexing_maps"])
    op.attributes["indexing_maps"] = ir.ArrayAttr.get([gradient, image, *out])
    op.operands[0], op.operands[1] = op.operands[1], op.operands[0]
    # The body widens both before it multiplies, so its arguments need but change their types.
    first, second, *_ = op.regions[0].blocks[0].arguments
    types = second.type, first.type
    for argument, type in zip((first, second), types, strict=True):
        argument.set_type(type)


def _wrap(op: ir.Operation) -> None:
    epilogue = find_epilogue(op.results[0])
    with ir.InsertionPoint(op):
        inputs = epilogue.inputs() if epilogue else []
        region = dispatches.dispatch_region(op.results[0].type)
    op.results[0].replace_all_uses_with(region.results[0])
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        end = dispatches.dispatch_return(op.results[0])
    op.move_before(end)
    if epilogue:
        with ir.InsertionPoint(end):
            end.operands[0] = epilogue.applied(op.results[0], inputs)
        epilogue.replace(region.results[0])
    for value in list(op.operands)[2:]:
        value.owner.move_before(op)
