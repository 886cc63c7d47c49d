"""relu made 0 of NaN on every AMD chip, of results and of operands.

Of `arith.maximumf` IREE 3.13 makes AMD's maximum, which is the other number where one is NaN; of a
comparison and a choice it makes these. Found by `verify --data special`.
"""

from __future__ import annotations

import numpy as np
import pytest

import conv_compiler
from conv_compiler import ConvProblem
from conv_compiler.runtime.kernel import load
from tests.turns import in_turn


@pytest.mark.parametrize(
    ("target", "dtype", "where"),
    in_turn(["cpu", "gfx942", "gfx1201"], ["f16", "f32", "f8E5M2"], ["elementwise", "input_op"]),
)
def test_nan_stays(target: str, dtype: str, where: str) -> None:
    problem = ConvProblem(
        n=1, k=1, c=4, image=(1,), filter=(1,), dtype=dtype, weight_dtype="f32", **{where: "relu"}
    )
    image = np.array([np.nan, 1, -1, -np.inf]).astype(problem.data_type.to_numpy())
    ones = np.ones(problem.output_shape, image.dtype)
    kernel = load(conv_compiler.compile(problem, target), "cpu" if target == "cpu" else "vgpu")
    found = kernel(image.reshape(problem.input_shape), ones).reshape(-1)
    np.testing.assert_array_equal(found, [np.nan, 1, 0, 0])
