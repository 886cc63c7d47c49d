# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which of the tilings that tie at the boost clock is taken."""

from dataclasses import replace

import pytest

from conv_compiler.model.under_load import under_load
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import load_gain
from conv_compiler.strategies.gpu.cost import is_behind_memory, l2_bytes, predict
from conv_compiler.strategies.gpu.cost_constants import TIE_BREAK
from conv_compiler.strategies.gpu.implicit_gemm import mma_candidates
from conv_compiler.strategies.gpu.tie_break import prefer_few_lines, prefer_under_load
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
    monkeypatch.setattr(load_gain, "under_load", lambda target, dtype: asked.append(dtype))
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


# ResNet-50's layer2.0.conv3: two iterations of whole lines, or four of half lines.
HALF_LINES = ConvProblem(n=32, k=512, c=128, image=(28, 28), filter=(1, 1), direction="fwd")


def test_on_rdna_fewer_lines_win_where_memory_binds():
    target = find_target("gfx1100")
    wgrad, before = ranked(HALF_LINES, target)
    assert is_behind_memory(wgrad, target, before[0].tiling, before[0].split_k)
    after = prefer_few_lines(wgrad, target, before)
    assert sorted(map(repr, after)) == sorted(map(repr, before))
    limit = (1 + TIE_BREAK.equal_share) * seconds(wgrad, target, before[0])
    equal = [one for one in before if seconds(wgrad, target, one) <= limit]
    read = {one: l2_bytes(wgrad, target, one.tiling, one.split_k) for one in equal}
    assert read[after[0]] == min(read.values()) < read[before[0]]


@pytest.mark.parametrize(
    ("problem", "chip"),
    [
        # Units bind 3x3 filters, and L2 of gfx1201 is idle.
        (replace(HALF_LINES, filter=(3, 3), pad_low=(1, 1)), "gfx1100"),
        (HALF_LINES, "gfx1201"),
        (HALF_LINES, "gfx942"),
        (replace(HALF_LINES, direction="bwd_weight"), "gfx1100"),
    ],
)
def test_fewer_lines_win_nowhere_else(problem, chip):
    target = find_target(chip)
    wgrad, before = ranked(problem, target)
    assert prefer_few_lines(wgrad, target, before) == before
