"""The gradient of a bias: every layout and type, sizes that divide and some that do not."""

from __future__ import annotations

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import UnsupportedProblem, UnsupportedStrategy
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.layouts import LAYOUTS
from conv_compiler.runtime.kernel import load, run
from conv_compiler.verification.reference import plain, reference
from conv_compiler.verification.verify import inputs, verify_artifact
from tests.checks import check, check_special
from tests.turns import in_turn

TARGETS = ["cpu", "gfx942", "gfx1201", "gfx90a"]
ORDERS = list({row.output: row for row in LAYOUTS}.values())
SIZES = [
    {"n": 3, "g": 2, "k": 5, "image": (7, 9), "filter": (2, 2), "stride": (1, 2)},
    {"n": 8, "g": 1, "k": 64, "image": (16, 12), "filter": (1, 1)},
    {"n": 2, "g": 1, "k": 1, "image": (3, 5, 13), "filter": (1, 2, 1)},
    {"n": 1, "g": 3, "k": 2, "image": (67,), "filter": (1,)},
    {"n": 1, "g": 1, "k": 7, "image": (1,), "filter": (1,)},
]
TYPES = ["f16", "bf16", "f32", "i8", "f8E4M3FN", "f8E5M2FNUZ"]


def _problem(row, sizes, **fields):
    layout = row.spell(len(sizes["image"]))
    return ConvProblem(direction="bwd_bias", layout=layout, c=3, **sizes, **fields)


@pytest.mark.parametrize(
    ("sizes", "row", "target"),
    in_turn(SIZES, ORDERS, TARGETS),
    ids=lambda value: getattr(value, "output", None),
)
def test_layouts(row, sizes, target):
    assert check(_problem(row, sizes), target).tolerance.exact


@pytest.mark.parametrize(("dtype", "target"), in_turn(TYPES, ["cpu", "gfx942"]))
def test_types(dtype, target):
    check(_problem(ORDERS[0], SIZES[0], dtype=dtype), target)


def test_f64():
    check(_problem(ORDERS[0], SIZES[0], dtype="f64"), "cpu")


# Many partial sums of few channels take a level more.
LEVELS = {"n": 8, "g": 1, "k": 8, "image": (64, 60), "filter": (1, 1)}


@pytest.mark.parametrize(
    ("row", "target"),
    in_turn(ORDERS, ["gfx942", "gfx1201"]),
    ids=lambda value: getattr(value, "output", None),
)
def test_several_levels(row, target):
    report = check(_problem(row, LEVELS, dtype="f32"), target)
    assert len(report.artifact.kernels) == len(report.artifact.strategy.tiling.levels) >= 2


@pytest.mark.parametrize(
    ("op", "weight_dtype", "target"),
    in_turn(["bilinear(0.5,2)", "scale(0.25)>relu"], ["", "f32"], ["cpu", "gfx942"]),
)
def test_elementwise(op, weight_dtype, target):
    fields = {"elementwise": op, "dtype": "bf16", "weight_dtype": weight_dtype}
    check(_problem(ORDERS[1], SIZES[0], **fields), target)


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_an_op_of_the_gradient(target):
    check(_problem(ORDERS[0], SIZES[0], output_op="relu"), target)


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_what_is_not_finite_stays_in_its_channel(target):
    check_special(compile(_problem(ORDERS[2], SIZES[1]), target), target, seeds=(0,))


def test_a_planted_fault_is_found():
    """A kernel of another problem, whose sums miss an image, is wrong by the reference."""
    whole = _problem(ORDERS[0], SIZES[1])
    gradient = inputs(whole)[0]
    found = run(compile(whole.with_batch(7)), gradient[:7])
    assert not np.array_equal(found, reference(whole, gradient))


def test_the_definition():
    problem = _problem(ORDERS[0], SIZES[0])
    (gradient,) = inputs(problem)
    want = gradient.astype(np.float64).sum((0, 1, 2))
    assert np.array_equal(reference(problem, gradient), want)
    assert np.array_equal(plain(problem, gradient), want)


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_a_batch_of_none(target):
    problem = _problem(ORDERS[0], {**SIZES[0], "n": 0})
    kernel = load(compile(problem, target))
    assert not kernel(np.zeros(problem.output_shape, np.float16)).any()


def test_result_operand():
    problem = _problem(ORDERS[0], SIZES[0], result_operand=True)
    verify_artifact(compile(problem)).require()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"compute": "bf16"}, "multiplies nothing"),
        ({"dynamic_batch": True}, "dynamic batch: not built"),
        ({"input_op": "relu"}, "has no such operand"),
        ({"elementwise": "bias"}, "the result is a bias gradient"),
    ],
)
def test_refused(fields, message):
    with pytest.raises(UnsupportedProblem, match=message):
        _problem(ORDERS[0], SIZES[0], **fields)


def test_strategies_of_products_are_refused():
    with pytest.raises(UnsupportedStrategy, match="not for a bias on cpu; use channel_sums"):
        compile(_problem(ORDERS[0], SIZES[0]), strategy="cpu_lin")
    weight = ConvProblem(n=2, k=4, c=4, image=(5, 5), filter=(1, 1))
    with pytest.raises(UnsupportedStrategy, match="not for cpu"):
        compile(weight, strategy="channel_sums")
