"""The machine code of the AMD chips, executed on the virtual GPU and compared with the reference.

By default each chip gets a sample of Composable Kernel's cases, at a batch size reduced so that one
takes about a second; the rest is marked slow. Random problems are in test_random.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conv_compiler.problem.canonical import summed_products
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.verify import verify
from tests.checks import check
from tests.chips import EXECUTED, each
from tests.turns import in_turn

CK = json.loads((Path(__file__).parent.parent / "data" / "ck_bwd_weight.json").read_text())
MOST_FLOPS, FEWER_FLOPS = 2**29, 2**25
# One case in so many is run by default. No multiple of the number of split factors: all are met.
SAMPLE = 95


def ck_problems(most_flops):
    """Every problem of every typed test, at a batch reduced to so many operations."""
    for typed in CK["types"]:
        types = {name: value for name, value in typed.items() if name != "ndim"}
        for values in CK["problems"][str(typed["ndim"])]:
            problem = ConvProblem.from_json({**values, **types})
            while problem.flops > most_flops and problem.n > 1:
                problem = problem.with_batch(problem.n // 2)
            yield problem


def ck_cases():
    """Every (chip, type, problem) with a split factor in turn; most are slow."""
    cases, turn = [], 0
    for chip in EXECUTED:
        for problem in ck_problems(MOST_FLOPS):
            split_k = CK["split_k"][turn % len(CK["split_k"])]
            marks = [pytest.mark.slow] if turn % SAMPLE else []
            turn += 1
            name = f"{chip}-{problem.name}-{split_k}"
            cases.append(pytest.param(problem, chip, split_k, id=name, marks=marks))
    return cases


@pytest.mark.parametrize(("problem", "chip", "split_k"), ck_cases())
def test_composable_kernel(problem, chip, split_k):
    check(problem, chip, split_k, device="vgpu")


@pytest.mark.slow
@pytest.mark.parametrize("split_k", CK["split_k"])
@pytest.mark.parametrize("chip", each(EXECUTED))
def test_composable_kernel_with_every_split(chip, split_k):
    """All problems at one split factor, of fewer images; a problem of less gemm_k has fewer."""
    for problem in ck_problems(FEWER_FLOPS):
        check(problem, chip, min(split_k, summed_products(problem)), device="vgpu")


@pytest.mark.parametrize(
    ("chip", "strategy", "c"), in_turn(each(EXECUTED), ["implicit_gemm", "vector_gemm"], [8, 5])
)
def test_the_checks_find_nothing_in_our_kernels(chip, strategy, c):
    problem = ConvProblem(n=2, g=2, k=7, c=c, image=(9, 10), filter=(3, 3), pad_low=(1, 1))
    verify(problem, chip, strategy, 3, device="vgpu-checked", budget=0.0).require()
