"""Problem to payload: linalg on tensors, the same for every target."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import build_bwd_weight

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.problem import ConvProblem

BUILDERS: MappingProxyType[str, Callable[[ConvProblem], None]] = MappingProxyType(
    {"bwd_weight": build_bwd_weight}
)


def build(problem: ConvProblem) -> ir.Module:
    """The payload module of a problem, in the MLIR context in force.

    Its one function `@main` takes the tensors as the user holds them and returns the gradient. The
    contraction is one linalg.generic tagged `conv_compiler.role = "contraction"`, whose loops are
    named, outermost first, by the array `conv_compiler.loops`.
    """
    from iree.compiler import ir

    module = ir.Module.create(ir.Location.unknown())
    with ir.InsertionPoint(module.body), ir.Location.unknown():
        BUILDERS[problem.direction](problem)
    module.operation.verify()
    return module
