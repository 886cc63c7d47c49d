"""A copy that IREE adds for a result slice spills scalar registers: every tile was refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

import conv_compiler as cc
from conv_compiler.artifacts.kernel_facts import KernelFacts
from conv_compiler.compiler.proofs import prove
from conv_compiler.errors import OutOfRegisters
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

CHIP = "gfx1201"
PROBLEM = cc.ConvProblem(
    n=5, g=24, k=64, c=32, image=(5,), filter=(3,), stride=(5,), layout="NWC_KXC_NWK", dtype="i8",
    weight_dtype="i8", direction="bwd_data", dynamic_batch=True, result_operand=True,
    input_within=(5, 5, 771),
)  # fmt: skip


def test_the_problem_is_computed():
    assert cc.verify(PROBLEM, CHIP, data="integers").passed


@pytest.mark.parametrize(
    ("role", "scalars", "vectors", "scratch", "refused"),
    [
        ("other", 2, 0, 0, False),
        ("other", 2, 0, 8, True),
        ("other", 0, 1, 0, True),
        ("contraction", 2, 0, 0, True),
        ("reduction", 0, 1, 0, True),
        ("reduction", 0, 0, 4, True),
    ],
)
def test_kernels_of_ours_spill_nothing_and_others_no_vectors(
    role, scalars, vectors, scratch, refused
):
    problem = replace(PROBLEM, dynamic_batch=False, result_operand=False, input_within=())
    one = choose(problem, find_target(CHIP), "vector_gemm")[0]
    kernel = KernelFacts(
        name="a",
        role=role,
        spills=scalars + vectors,
        vector_spills=vectors,
        scratch_bytes=scratch,
    )
    resolved = resolve(problem, find_target(CHIP), one.mma)
    if refused:
        with pytest.raises(OutOfRegisters):
            prove(resolved, one, [kernel])
    else:
        prove(resolved, one, [kernel])
