# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which of the tilings that tie at the boost clock is taken."""

from dataclasses import replace

import pytest

from conv_compiler.model.under_load import under_load
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import tie_break
from conv_compiler.strategies.gpu.cost import predict
from conv_compiler.strategies.gpu.cost_constants import TIE_BREAK
from conv_compiler.strategies.gpu.implicit_gemm import mma_candidates
from conv_compiler.strategies.gpu.tie_break import prefer_under_load
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

# ResNet-50's layer1.0.conv3 and its data gradient: memory binds tiles of any depth alike.
POINTWISE = ConvProblem(n=32, k=256, c=64, image=(56, 56), filter=(1, 1), direction="fwd")


def ranked(problem, target):
    """The equivalent weight gradient and its candidates, fastest at the boost clock first."""
    wgrad = resolve(problem, target).wgrad
    every = mma_candidates(wgrad, target)
    return wgrad, tuple(sorted(every, key=lambda one: seconds(wgrad, target, one)))


def seconds(wgrad, target, one):
    return predict(wgrad, target, one.tiling, one.split_k)


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("direction", ["fwd", "bwd_data"])
def test_of_equals_the_fastest_under_load_is_taken(chip, direction):
    target = find_target(chip)
    wgrad, before = ranked(replace(POINTWISE, direction=direction, compute="f16"), target)
    after = prefer_under_load(wgrad, target, before)
    assert sorted(map(repr, after)) == sorted(map(repr, before))
    limit = (1 + TIE_BREAK.equal_share) * seconds(wgrad, target, before[0])
    assert seconds(wgrad, target, after[0]) <= limit
    loaded = under_load(target, "f16")
    equal = [one for one in before if seconds(wgrad, target, one) <= limit]
    assert seconds(wgrad, loaded, after[0]) == min(seconds(wgrad, loaded, one) for one in equal)


def test_load_is_that_of_the_operands_type(monkeypatch):
    """Each type runs at a clock of its own; a type without one would run at that of no matrix."""
    asked = []
    monkeypatch.setattr(tie_break, "under_load", lambda target, dtype: asked.append(dtype))
    problem = replace(POINTWISE, dtype="bf16", weight_dtype="", compute="f8E4M3FNUZ,f8E4M3FNUZ")
    wgrad, before = ranked(problem, find_target("gfx942"))
    assert prefer_under_load(wgrad, find_target("gfx942"), before) == before
    assert asked == ["f8"]


def test_a_deeper_tile_reads_whole_lines():
    target = find_target("gfx90a")
    wgrad, before = ranked(replace(POINTWISE, compute="f16"), target)
    after = prefer_under_load(wgrad, target, before)
    assert (before[0].tiling.workgroup[2], after[0].tiling.workgroup[2]) == (16, 32)


@pytest.mark.parametrize(
    ("problem", "chip"),
    [(POINTWISE, "gfx1100"), (replace(POINTWISE, filter=(3, 3), pad_low=(1, 1)), "gfx942")],
)
def test_elsewhere_the_order_stays(problem, chip):
    target = find_target(chip)
    wgrad, before = ranked(problem, target)
    assert prefer_under_load(wgrad, target, before) == before
