"""Problem to payload: linalg on tensors, the same for every target."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_data import build_bwd_data
from conv_compiler.build.bwd_weight import build_bwd_weight
from conv_compiler.build.fwd import build_fwd
from conv_compiler.problem import STATED_DIRECTION

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.problem import ConvProblem

# direction -> its result, from the operands as the user holds them.
BUILDERS: MappingProxyType[str, Callable[..., ir.Value]] = MappingProxyType(
    {"bwd_data": build_bwd_data, "bwd_weight": build_bwd_weight, "fwd": build_fwd}
)


def build(problem: ConvProblem) -> ir.Module:
    """The payload module of a problem, in the MLIR context in force.

    Its one function `@main` takes the operands as the user holds them, then d where the problem's
    elementwise op takes it, and returns the result. The contraction is one linalg.generic tagged
    `conv_compiler.role = "contraction"`, whose loops are named, outermost first, by the array
    `conv_compiler.loops`; those of other directions as in `conv_compiler.directions`.
    """
    from iree.compiler import ir
    from iree.compiler.dialects import func

    from conv_compiler.build import ops

    module = ir.Module.create(ir.Location.unknown())
    with ir.InsertionPoint(module.body), ir.Location.unknown():
        data = ops.element_type(problem.data_type)
        types = [ir.RankedTensorType.get(shape, data) for shape in problem.operand_shapes]
        if problem.takes_d:
            d_type = ops.element_type(problem.d_type)
            types.append(ir.RankedTensorType.get(problem.result_shape, d_type))

        def main(*operands: ir.Value) -> ir.Value:
            return BUILDERS[problem.direction](problem, *operands)

        func.FuncOp.from_py_func(*types)(main)
        reflection = {STATED_DIRECTION: ir.StringAttr.get(problem.direction)}
        module.body.operations[0].attributes["iree.reflection"] = ir.DictAttr.get(reflection)
    module.operation.verify()
    return module
