"""8-bit floats on targets without instructions for them: what is multiplied in their place."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.dtypes import DTYPES, WIDER

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem import ConvProblem
    from conv_compiler.targets import Target


def is_emulated(problem: ConvProblem, target: Target) -> bool:
    """Whether a problem multiplies 8-bit floats that the target has no instruction for."""
    return problem.operand_type.is_f8 and not target.mma_for(*problem.operand_dtypes)


def multiplied(problem: ConvProblem, target: Target) -> tuple[str, str]:
    """Types of the GEMM's operands on a target: of the output gradient, of the input."""
    a, b = problem.operand_dtypes
    return (WIDER, WIDER) if is_emulated(problem, target) else (a, b)


@lru_cache(maxsize=64)
def operand_bytes(problem: ConvProblem, target: Target) -> int:
    """Size of an element of either."""
    return DTYPES[multiplied(problem, target)[1]].bytes


def emulation_passes(problem: ConvProblem, target: Target, mma: str = "") -> tuple[Pass, ...]:
    """What makes the payload multiply bf16, before all other passes, unless by an `mma` of 8 bits.

    Vector code is emulated everywhere: IREE 3.13 has no vector product of two types.
    """
    from conv_compiler.passes.emulate_f8 import EmulateF8

    native = not problem.operand_type.is_f8 or (mma and not is_emulated(problem, target))
    return () if native else (EmulateF8(),)
