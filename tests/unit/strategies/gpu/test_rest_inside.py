# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Channels that fill no tiles of gemm_k: their masks take registers on CDNA."""

from __future__ import annotations

from dataclasses import replace

from conv_compiler.problem.canonical import equivalent_wgrad
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.instruction_counts import mma_of, mma_vgprs
from conv_compiler.strategies.gpu.tail_masking import has_rest_inside
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target

WHOLE = ConvProblem(
    n=32, k=2368, c=256, image=(25, 25), filter=(3, 3), pad_low=(1, 1), pad_high=(1, 1),
    direction="bwd_data",
)  # fmt: skip
REST = replace(WHOLE, k=2376)


def _vgprs(problem: ConvProblem, chip: str, tiling) -> int:
    target = find_target(chip)
    return mma_vgprs(equivalent_wgrad(problem), target, tiling, mma_of(target, tiling))


def test_masked_loads_are_held_twice_on_cdna():
    for chip, more in (("gfx950", True), ("gfx1201", False)):
        first, *_ = choose(WHOLE, find_target(chip), "implicit_gemm")
        tiling = replace(first.tiling, loads_to_lds=False)
        roles = equivalent_wgrad(REST)
        assert has_rest_inside(roles, find_target(chip), tiling)
        assert not has_rest_inside(equivalent_wgrad(WHOLE), find_target(chip), tiling)
        assert (_vgprs(REST, chip, tiling) > _vgprs(WHOLE, chip, tiling)) == more


def test_gfx950_loads_to_lds_instead():
    """RetinaNet's layer of 2376 channels: such loads hold nothing in registers."""
    first, *_ = choose(REST, find_target("gfx950"))
    assert first.tiling.loads_to_lds
