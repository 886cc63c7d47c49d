"""An AMD chip without a row of facts is refused, not ranked with NVIDIA's rough numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.errors import UnsupportedTarget
from conv_compiler.model.facts import rank_facts
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target

UNKNOWN = replace(find_target("gfx942"), name="gfx940", chip="gfx940")
PROBLEM = ConvProblem(n=2, k=32, c=32, image=(6, 6), filter=(3, 3))


def test_it_is_refused_by_name():
    with pytest.raises(UnsupportedTarget, match="target gfx940: not modelled, for its chip has no"):
        rank_facts(UNKNOWN)
    for strategy in ("implicit_gemm", "vector_gemm", None):
        with pytest.raises(UnsupportedTarget, match="gfx940"):
            choose(PROBLEM, UNKNOWN, strategy)


def test_nvidia_is_ranked_by_facts_of_its_own():
    target = find_target("sm_80")
    assert rank_facts(target).units == target.compute_units
