"""Kernels for CPUs by name, run on this host where it has what they need."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.runtime.kernel import run
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.targets.host import host_architecture, host_flags
from conv_compiler.verification.inputs import inputs
from tests.checks import check
from tests.problems import for_drawn, problems_with_split

PROBLEM = ConvProblem(
    n=5, g=2, k=6, c=5, image=(9, 8), filter=(3, 2), stride=(2, 1), pad_low=(1, 0), dtype="f32"
)
# The kernel chosen for PROBLEM on a CPU with AVX2.
CHOSEN = {"bwd_weight": "cpu_packed", "bwd_data": "cpu_direct", "fwd": "cpu_direct"}
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
    assert check(problem, target).strategy.startswith(CHOSEN[direction] + " ")
    assert check(problem, target, strategy="cpu_packed").strategy.startswith("cpu_packed ")


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


ON_ONE_CORE = """
import os, sys
import numpy as np

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from conv_compiler.runtime.kernel import run

artifact, *operands = sys.argv[1:]
np.save(sys.stdout.buffer, run(artifact, *map(np.load, operands)))
"""


@pytest.mark.parametrize("split_k", [1, 5])
@pytest.mark.parametrize("target", cpus("cpu-x86-64-v3", "cpu-neoverse-n1"))
def test_one_core_gives_the_bits_of_all(target, split_k, tmp_path):
    """Of an artifact for a CPU by name, which takes no number from the host."""
    problem = replace(PROBLEM, n=16, k=48, c=40)
    artifact = compile(problem, target, split_k=split_k)
    names = [tmp_path / f"{number}.npy" for number in range(2)]
    operands = inputs(problem, "random")
    for name, operand in zip(names, operands, strict=True):
        np.save(name, operand)
    words = [sys.executable, "-c", ON_ONE_CORE, artifact.vmfb, *names]
    found = subprocess.run(list(map(str, words)), check=True, capture_output=True).stdout
    assert np.array_equal(np.load(io.BytesIO(found)), run(artifact, *operands))
