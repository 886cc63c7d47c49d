"""Kernels for CPUs by name, run on this host where it has what they need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.targets.host import host_architecture, host_flags
from tests.checks import check
from tests.problems import for_drawn, problems_with_split

PROBLEM = ConvProblem(
    n=5, g=2, k=6, c=5, image=(9, 8), filter=(3, 2), stride=(2, 1), pad_low=(1, 0), dtype="f32"
)
KINDS = {
    "even": {"n": 4, "g": 1, "k": 16, "c": 32, "stride": 1},
    "depthwise": {"g": 37, "k": 1, "c": 1},
    "channels first": {"layout": "NGCHW_GKCYX_NGKHW"},
    "3D": {"image": (5, 6, 7), "filter": (2, 3, 1), "stride": 1, "pad_low": 1},
    "elementwise": {"elementwise": "bilinear(0.5,2)"},
}


def _can_run(row) -> bool:
    needs = row.processor
    return needs.architecture == host_architecture() and set(needs.extensions) <= host_flags()


def cpus(*names):
    """Parameters: the targets, skipped where this host lacks what one needs."""
    return [
        pytest.param(
            name,
            marks=pytest.mark.skipif(not _can_run(find_target(name)), reason=f"no {name} here"),
        )
        for name in names
    ]


EVERY = cpus(*(row.name for row in TARGETS.values() if row.processor))


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "f16"])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("target", cpus("cpu-x86-64-v3"))
def test_directions(target, direction, dtype):
    problem = replace(PROBLEM, direction=direction, dtype=dtype, weight_dtype="")
    assert check(problem, target).strategy.startswith("cpu_packed ")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", cpus("cpu-x86-64", "cpu-x86-64-v3"))
def test_kinds(target, kind):
    check(replace(PROBLEM, **{"pad_high": (), "dilation": (), **KINDS[kind]}), target)


@pytest.mark.parametrize("dtype", ["bf16", "i8", "f16", "f64"])
@pytest.mark.parametrize("target", cpus("cpu-x86-64"))
def test_types_without_vectors_of_them(target, dtype):
    check(replace(PROBLEM, dtype=dtype, weight_dtype=""), target)


@pytest.mark.parametrize("dtype", ["bf16", "i8"])
@pytest.mark.parametrize("target", cpus("cpu-znver4@3", "cpu-sapphirerapids@3"))
def test_pairs(target, dtype):
    report = check(replace(PROBLEM, dtype=dtype, weight_dtype=""), target, split_k=3)
    assert report.strategy.startswith("cpu_dot ")


@pytest.mark.slow
@pytest.mark.parametrize("target", EVERY)
def test_many_random_problems(target):
    @for_drawn(problems_with_split(), 60, f"named {target}")
    def run(drawn):
        problem, split_k = drawn
        check(problem, target, split_k)
