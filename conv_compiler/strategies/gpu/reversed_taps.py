# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the matrix kernel of a data gradient reads the weight as it lies, the last tap first.

Else a kernel in front of it arranges the weight (`build/bwd_data.py`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_data import only_reverses_taps
from conv_compiler.build.bwd_weight import OUTPUT_LOOPS
from conv_compiler.problem.canonical import data_gradient_of
from conv_compiler.targets.f8 import is_emulated

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Target


def reads_reversed(problem: ConvProblem, target: Target, tiling: GpuTiling) -> bool:
    """Whether the kernel needs no arranged weight.

    The taps are pixels of the roles. They are the outside loops and one axis of the weight. The
    weight is multiplied as it is.
    """
    of = data_gradient_of(problem)
    if of is None or math.prod(of.filter) == 1 or not only_reverses_taps(of):
        return False
    is_plain = tiling.mma and not tiling.taps_in_rows and tiling.merged_groups == 1
    is_changed = of.weight_op or of.terms or of.operand_type != of.data_type
    are_outside = tiling.outside == OUTPUT_LOOPS[-problem.ndim :]
    if target.backend != "rocm" or is_changed or is_emulated(of, target):
        return False
    return bool(is_plain) and are_outside
