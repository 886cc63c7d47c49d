"""A copy that is one row, of data or all zeros, took its room on the stack twice.

Found by random problems: the kernel was refused by the compiler's limit for stack allocations.
"""

from __future__ import annotations

from conv_compiler.problem.conv_problem import ConvProblem
from tests.checks import check


def test_one_copy_for_two_branches():
    sizes = {"n": 8, "g": 5, "k": 2, "c": 48, "image": (39,), "filter": (4,)}
    problem = ConvProblem(**sizes, pad_low=(1,), pad_high=(3,), dtype="f16", weight_dtype="f32")
    check(problem, split_k=9, strategy="cpu_packed")
