"""A batch of 0 is a problem: weight gradients of zeros, and empty results of other directions.

Frameworks meet it at the end of a data set. It was refused.
"""

from __future__ import annotations

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import UnsupportedProblem, UnsupportedStrategy
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.runtime.kernel import load, run
from conv_compiler.verification.verify import verify
from tests.turns import in_turn

SIZES = {"g": 2, "k": 3, "c": 4, "image": (5, 5), "filter": (3, 3)}
NONE = ConvProblem(n=0, **SIZES)
DEVICES = {"cpu": None, "gfx942": "vgpu", "gfx1100": "vgpu"}


@pytest.mark.parametrize(
    ("target", "direction", "layout", "elementwise"),
    in_turn(DEVICES, DIRECTIONS, ["NHWGC_GKYXC_NHWGK", "NCHW_KCYX_NKHW"], ["", "bilinear(0.5,2)"]),
)
def test_it_is_right(target, direction, layout, elementwise):
    problem = ConvProblem(n=0, **SIZES, direction=direction, layout=layout, elementwise=elementwise)
    report = verify(problem, target, device=DEVICES[target]).require()
    assert report.strategy == "zeros - split_k=1"


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_a_kernel_for_any_batch_takes_it(target, direction):
    problem = ConvProblem(n=2, **SIZES, direction=direction, dynamic_batch=True)
    asked = problem.called_with(0)
    operands = [np.ones(shape, np.float16) for shape in asked.operand_shapes]
    kernel = load(compile(problem, target), DEVICES[target])
    assert np.array_equal(kernel(*operands), np.zeros(asked.result_shape, np.float16))
    placed = [kernel.put(array) for array in operands]
    assert tuple(kernel(*placed).shape) == asked.result_shape


def test_what_cannot_be_asked_of_it():
    with pytest.raises(UnsupportedStrategy, match=r"batch 0: .* has no products to schedule"):
        compile(NONE, "gfx942", "implicit_gemm")
    with pytest.raises(UnsupportedProblem, match="n 0: not a size; use an integer from 1"):
        ConvProblem(n=0, **SIZES, dynamic_batch=True)


def test_an_explicit_split_is_one():
    assert compile(NONE, "cpu", split_k=4).strategy.split_k == 1
    assert not run(compile(NONE), *(np.zeros(s, np.float16) for s in NONE.operand_shapes)).any()
