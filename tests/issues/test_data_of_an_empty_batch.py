# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`verify` of an empty batch with every kind of data: it looked for the largest of no numbers, and
for a place among none, and ended in a traceback."""

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.inputs import DATA
from conv_compiler.verification.verify import verify

KINDS = {
    "f16": {"dtype": "f16"},
    "f8": {"dtype": "f8E4M3FN"},
    "mx": {"dtype": "f8E4M3FN", "block_scales": "mx"},
    "packed": {"dtype": "f4E2M1FN", "block_scales": "mx"},
    "bf16x3": {"dtype": "f32", "weight_dtype": "f32", "compute": "bf16x3"},
    "i8": {"dtype": "i8"},
}


@pytest.mark.parametrize("direction", ["fwd", "bwd_data", "bwd_weight"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data(kind, direction):
    problem = ConvProblem(
        n=0, k=32, c=32, image=(5, 5), filter=(1, 1), direction=direction, **KINDS[kind]
    )
    for data in DATA:
        verify(problem, "cpu", data=data, budget=0.0).require()
