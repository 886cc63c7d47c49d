# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes that make a payload multiply bf16 where a target has no 8-bit floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.targets.f8 import is_emulated

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def emulation_passes(problem: ConvProblem, target: Target, mma: str = "") -> tuple[Pass, ...]:
    """What makes the payload multiply bf16, before all other passes, unless by an `mma` of 8 bits.

    Vector code is emulated everywhere: IREE 3.13 has no vector product of two types.
    """
    from conv_compiler.passes.emulate_f8 import EmulateF8

    native = not problem.operand_type.is_f8 or (mma and not is_emulated(problem, target))
    return () if native else (EmulateF8(),)
