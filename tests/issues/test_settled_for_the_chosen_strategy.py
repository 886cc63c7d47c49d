"""f16 gradients on gfx90a are computed in bf16 by matrix instructions, and in f16 by vector code.

The problem is settled again when the strategy is known: vector code flushes no denormals, so a
choice that ends there must not keep the type that a matrix instruction would have needed.
"""

from __future__ import annotations

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import decide
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

PROBLEM = ConvProblem(n=2, k=8, c=8, image=(6, 6), filter=(3, 3))


@pytest.mark.parametrize(("strategy", "compute"), [("implicit_gemm", "bf16"), ("vector_gemm", "")])
def test_the_type_follows_the_strategy(strategy: str, compute: str) -> None:
    choice = decide(resolve(PROBLEM, find_target("gfx90a")), strategy)
    assert choice.problem.asked.compute == compute
    assert choice.problem.wgrad.compute == compute
    assert choice.problem.stated == PROBLEM
