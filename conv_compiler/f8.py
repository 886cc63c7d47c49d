"""8-bit floats on targets without instructions for them: the compiler's emulation, mended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.targets import BACKENDS

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem import ConvProblem
    from conv_compiler.targets import Target


def is_emulated(problem: ConvProblem, target: Target) -> bool:
    """Whether the target widens the problem's data in integer arithmetic."""
    return problem.data_type.is_f8 and not target.mma_for(problem.dtype)


def can_compile(problem: ConvProblem, target: Target) -> bool:
    """Whether the backend has a way to widen the problem's data at all."""
    return not is_emulated(problem, target) or BACKENDS[target.backend].f8_flags is not None


def emulation_flags(problem: ConvProblem, target: Target) -> tuple[str, ...]:
    """Compiler flags for it."""
    return BACKENDS[target.backend].f8_flags or () if is_emulated(problem, target) else ()


def emulation_passes(problem: ConvProblem, target: Target) -> tuple[Pass, ...]:
    """What has to be mended of it, after all other passes."""
    from conv_compiler.passes.keep_f8_nan import KeepF8Nan

    wrong = is_emulated(problem, target) and problem.dtype == "f8E4M3FN"
    return (KeepF8Nan(),) if wrong else ()
