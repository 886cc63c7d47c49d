"""`vgpu-checked` reported an uninitialised register in a kernel that was right.

A lane mask that lives over a loop (does a window's tap lie in the image, with a batch and channels
that fill no tile) begins as LLVM's `s_andn2_b64` of an unwritten register and EXEC. All lanes run,
so nothing of that register is used.
"""

from __future__ import annotations

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.verification.verify import verify

PROBLEM = ConvProblem(
    n=34, k=128, c=120, image=(5, 4), filter=(3, 3), pad_low=(1, 1), pad_high=(1, 1)
)


def test_masks_kept_over_a_loop_are_no_finding():
    strategy = choose(PROBLEM, find_target("gfx942"), StrategyRequest(tile=(128, 128, 32)), 3)[0]
    assert verify(PROBLEM, "gfx942", strategy, device="vgpu-checked").passed
