"""Direct kernels by pairs of source channels, run: the problems of direct kernels, odd ones too."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

import conv_compiler as cc
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu.cpu_dot_direct import CPU_DOT_DIRECT
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from tests.checks import check
from tests.numerics.test_cpu_direct import DIRECTIONS, PROBLEMS
from tests.problems import small_images
from tests.turns import in_turn

NAME = CPU_DOT_DIRECT.name
MORE = {
    **PROBLEMS,
    "long_rows": ConvProblem(n=2, k=32, c=64, image=(7, 7), filter=(1, 1)),
    "two_sources": ConvProblem(n=1, k=16, c=2, image=(9, 21), filter=(3, 5), pad_low=(1, 2)),
}


def fits(problem):
    row = find_target("cpu")
    return not CPU_DOT_DIRECT.refusal(resolve(problem, row).wgrad, row)


@pytest.mark.parametrize(("name", "direction", "dtype"), in_turn(MORE, DIRECTIONS, ["bf16", "i8"]))
def test_integers_are_exact(name, direction, dtype):
    problem = replace(MORE[name], direction=direction, dtype=dtype, weight_dtype="")
    if not fits(problem):
        pytest.skip("not of this kind, or no pairs on this host")
    cc.verify(problem, "cpu", strategy=NAME, data="integers", budget=0).require()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"elementwise": "relu"},
        {"elementwise": "bias>relu"},
        {"kept_weight": True},
        {"dynamic_batch": True},
        {"weight_dtype": "f32", "direction": "bwd_data"},
    ],
    ids=str,
)
def test_random_data_ops_and_types(fields):
    problem = replace(MORE["long_rows"], direction="fwd", dtype="bf16", weight_dtype="")
    problem = replace(problem, **fields)
    if not fits(problem):
        pytest.skip("no pairs on this host")
    check(problem, strategy=NAME)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(problem=small_images([(2, 16, 1), (8, 12, 1), (4, 4, 2), (6, 20, 1), (16, 40, 1)], "bf16"))
def test_any_sizes(problem):
    if fits(problem):
        cc.verify(problem, "cpu", strategy=NAME, data="integers", budget=0).require()
