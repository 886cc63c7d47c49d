"""A stored sum found its address by 64-bit divisions: 42 vector instructions each, twice the time.

The linear index into the collapsed buffer was folded back into an index a dimension and from that
into a linear one again; `expand-strided-metadata` in time leaves nothing to fold.
"""

import re

import pytest

from conv_compiler.compiler.stages import stage_texts
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

PROBLEMS = (
    ConvProblem(n=32, k=128, c=128, image=(28, 28), filter=(3, 3), pad_low=(1, 1)),
    ConvProblem(n=16, k=64, c=96, image=(9, 11), filter=(3, 2), dtype="i8"),
)
# An offset to add, now and then a register to move; gfx950's largest tile has 4.6.
MOST_VALU_A_STORE = 5


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_a_store_costs_a_few_instructions(chip, problem, tmp_path):
    target = find_target(chip)
    strategy = choose(problem, target, strategy="implicit_gemm", split_k=4)[0]
    text = stage_texts(resolve(problem, target, strategy.mma), strategy, tmp_path)["isa"]
    kernels = re.findall(r"^main_dispatch_\w+:(.*?)^\s+s_endpgm", text, re.DOTALL | re.MULTILINE)
    (main,) = (one for one in kernels if re.search(r"v_(?:mfma|wmma)_", one))
    end = re.split(r"v_(?:mfma|wmma)_", main)[-1]
    stores = len(re.findall(r"^\s+buffer_store", end, re.MULTILINE))
    assert stores >= 4
    assert len(re.findall(r"^\s+v_", end, re.MULTILINE)) < MOST_VALU_A_STORE * stores
