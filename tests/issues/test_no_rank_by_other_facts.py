"""A GPU without facts of its own is refused, not ranked by another chip's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.errors import UnsupportedTarget
from conv_compiler.model.facts import rank_facts
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import choose
from conv_compiler.targets import TARGETS, find_target

PROBLEM = ConvProblem(n=2, k=32, c=32, image=(6, 6), filter=(3, 3))


@pytest.mark.parametrize("name", ["gfx942", "gfx1100", "sm_80"])
def test_a_row_without_pipes_is_refused_by_name(name):
    with pytest.raises(ValueError, match="target gfx940: pipes are missing: tilings are ranked by"):
        replace(find_target(name), name="gfx940", chip="gfx940", pipes=None)


def test_an_unknown_chip_is_refused_by_name():
    with pytest.raises(UnsupportedTarget, match="target gfx940: not in the table"):
        find_target("gfx940")


def test_what_a_choice_is_made_by_are_the_facts_of_the_row():
    """Tilings and splits of a chip follow from its own row, whatever another of its name has."""
    target = find_target("gfx942")
    half = replace(target, compute_units=target.compute_units // 8)
    assert rank_facts(target).units == 304
    assert rank_facts(half).units == 38
    assert choose(PROBLEM, half, "implicit_gemm")[0].split_k != 0


@pytest.mark.parametrize("name", [row.name for row in TARGETS.values() if row.backend == "cuda"])
def test_nvidia_is_ranked_by_facts_of_its_own(name):
    target = find_target(name)
    assert rank_facts(target).units == target.compute_units


def test_a_cpu_has_no_facts_of_a_gpu():
    with pytest.raises(UnsupportedTarget, match="target cpu: not modelled, for it is no GPU"):
        rank_facts(find_target("cpu"))
