# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A user's own schedule: what it replaced, and the check that it kept the main loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.errors import CompileFailed, ConvError, StrategyNotApplied
from conv_compiler.strategies.gpu.loop_order import iterations

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.schedule import Schedule
    from conv_compiler.strategies.strategy import GpuTiling, Strategy

# The entry that fails where a user's script left the kernel without its main loop, and what the
# transform interpreter says then.
LOOP_CHECK = "entry_loop_check"
_NO_LOOP = "expected parameter to be greater than 0, got 0"


def is_checked(problem: ConvProblem, tiling: GpuTiling, strategy: Strategy) -> bool:
    """Whether a kernel must have a main loop that a script could lose: the script is the user's,
    and the loop has more than one iteration, or it is gone."""
    return bool(strategy.script) and iterations(problem, tiling, strategy.split_k) > 1


def refusal(error: CompileFailed, strategy: Strategy, schedule: Schedule) -> ConvError:
    """What a failed compilation is: a main loop that the user's script lost, or itself."""
    if not strategy.script or _NO_LOOP not in str(error):
        return error
    return StrategyNotApplied(
        f"schedule: of @{', @'.join(schedule.replaced)} the kernel has no main loop, where "
        f"{strategy.text} has one; tile the contraction along gemm_k"
    )
