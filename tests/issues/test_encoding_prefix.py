"""Where a CPU has AVX-VNNI beside AVX-512's, LLVM prints `{vex} vpdpwssd` for narrow tiles.

The count of matrix instructions missed those lines, and such i8 problems were refused.
"""

from __future__ import annotations

import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem


@pytest.mark.parametrize("c", [2, 3])
def test_narrow_tiles_of_i8_compile_for_sapphire_rapids(c):
    problem = ConvProblem(
        n=32, k=1, c=c, image=(7, 3), filter=(3, 2), dtype="i8", weight_dtype="i32"
    )
    artifact = compile(problem, "cpu-sapphirerapids")
    assert artifact.strategy.name == "cpu_dot"
    assert artifact.main_kernel.mma["vpdpwssd"] >= 1
