"""Fused elementwise ops in random problems, on the CPU and on every virtual chip."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import InvalidArray
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.elementwise import ELEMENTWISE
from conv_compiler.runtime.kernel import load, run
from conv_compiler.verification.verify import verify
from tests.checks import check, configured_roles
from tests.problems import for_drawn, of_any_kind
from tests.turns import in_turn

# On small integers with the parameters of `test_every_op`.
EXACT = (
    *("scale", "bilinear", "add", "scale_add", "bias", "scale_by", "divide_by"),
    *("relu", "clamp", "leaky_relu"),
)
# CK's example of MultipleD, smaller: 3D, grouped, padded.
PROBLEM = ConvProblem(
    n=2, g=2, k=24, c=16, image=(3, 5, 4), filter=(3, 3, 3), pad_low=(1, 1, 1), dtype="bf16"
)


# The two chips take turns by default.
EVERY_OP = [
    pytest.param(
        name,
        target,
        split_k,
        id=f"{name}-{target}-{split_k}",
        marks=[pytest.mark.slow] if turn is not None and (i + j) % 2 != turn else [],
    )
    for i, name in enumerate(ELEMENTWISE)
    for j, split_k in enumerate((1, 3))
    for target, turn in (("cpu", None), ("gfx942", 0), ("gfx1100", 1))
]


@pytest.mark.parametrize(("name", "target", "split_k"), EVERY_OP)
def test_every_op(name, target, split_k):
    values = ",".join(["0.5", "-3"][: len(ELEMENTWISE[name].parameters)])
    text = f"{name}({values})" if values else name
    direction = "fwd" if ELEMENTWISE[name].d_per == "channel" else "bwd_weight"
    report = check(replace(PROBLEM, elementwise=text, direction=direction), target, split_k)
    assert report.tolerance.exact == (name in EXACT)


@pytest.mark.parametrize("split_k", [1, 3])
@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_ops_one_after_another(target, split_k):
    """A residual block's: exact on integers, and no kernel more than one op has."""
    problem = replace(PROBLEM, direction="fwd", elementwise="scale(0.5)>add>leaky_relu(-2)")
    report = check(problem, target, split_k)
    assert report.tolerance.exact
    one = configured_roles(replace(problem, elementwise="add"), target, split_k=split_k)
    assert configured_roles(problem, target, split_k=split_k) == one


# With their layouts: where a bias meets each way to store a result.
BIASED = {
    "dense": {"k": 64, "c": 64, "g": 1, "layout": "NHWC"},
    "channels first": {"k": 64, "c": 64, "g": 1, "layout": "NCHW"},
    "a rest": {"k": 20, "c": 36, "g": 1},
    "groups": {"k": 16, "c": 8, "g": 2, "layout": "GNHWC_GKYXC_GNHWK"},
    "small groups": {"k": 4, "c": 4, "g": 8, "layout": "NHWC"},
    "depthwise": {"k": 1, "c": 1, "g": 32},
    "one channel": {"k": 1, "c": 1, "g": 1},
    "batch of any size": {"k": 6, "c": 5, "g": 2, "layout": "NHWC", "dynamic_batch": True},
    "f32": {"k": 6, "c": 5, "g": 1, "dtype": "f32"},
}


@pytest.mark.parametrize(
    ("name", "stride", "direction", "target"),
    in_turn(BIASED, [1, 2], ["fwd", "bwd_data"], ["cpu", "gfx942", "gfx1100"]),
)
def test_bias(name, stride, direction, target):
    """On its channel, and for no kernel more than an op with a whole tensor takes; where channels
    fill the tiles, than one without."""
    problem = ConvProblem(
        n=2, image=(5, 6), filter=(3, 3), pad_low=1, stride=stride, direction=direction,
        elementwise="scale(0.5)>bias:f32>relu", **BIASED[name],
    )  # fmt: skip
    check(problem, target, 1)
    kernels = [
        len(configured_roles(replace(problem, elementwise=text), target, None, 1))
        for text in (problem.elementwise, "relu" if name == "dense" else "add")
    ]
    assert kernels[0] <= kernels[1]


@pytest.mark.parametrize("text", ["scale(0.02)>tanh", "scale(1e-5)>tanh>scale(1e5)", "tanh"])
def test_tanh_of_f64_has_all_its_digits(text):
    """Near 0, far from it, and on both sides of where the formula changes."""
    problem = ConvProblem(
        n=2, k=8, c=8, image=(5, 6), filter=(3, 3), dtype="f64", elementwise=text, direction="fwd"
    )
    report = check(problem, "cpu")
    assert not report.tolerance.exact
    assert np.max(report.tolerance.absolute) < 1e-9


@pytest.mark.parametrize(
    ("weight", "op", "most"), [("i8", "scale(1000)", 127), ("i32", "scale(1073741824)", 2**31 - 1)]
)
@pytest.mark.parametrize("split_k", [1, 3])
@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_integers_saturate(target, split_k, weight, op, most):
    """Sums of both signs, each beyond what the weight's type holds."""
    problem = ConvProblem(
        n=4, k=32, c=32, image=(4,), filter=(1,), dtype="i8", weight_dtype=weight, elementwise=op
    )
    kernel = load(compile(problem, target, split_k=split_k), None if target == "cpu" else "vgpu")
    image = np.full(problem.input_shape, 2, np.int8)
    signs = np.resize(np.array([1, -1], np.int8), problem.output_shape)  # one sign a channel
    found = kernel(image, signs)
    want = np.where(signs.reshape(-1, problem.k)[0] > 0, most, -most - 1)
    np.testing.assert_array_equal(found.reshape(problem.k, -1), np.tile(want[:, None], problem.c))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "i8"])
@pytest.mark.parametrize("split_k", [1, 3])
def test_it_takes_no_kernel_of_its_own(dtype, split_k):
    """The op rides on the kernel that sums the parts or rounds the sums."""
    plain = replace(PROBLEM, dtype=dtype, weight_dtype="i8" if dtype == "i8" else dtype)
    fused = replace(plain, elementwise="bilinear(0.5,2):f32")
    report = verify(fused, "gfx942", split_k=split_k, budget=0.0).require()
    assert len(report.artifact.kernels) == 2
    assert len(configured_roles(plain, "gfx942", split_k=split_k)) == 2


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_80", "cpu"])
@pytest.mark.parametrize("split_k", [1, 3])
def test_kernels_are_counted_before_there_is_code(target, split_k):
    kernels = compile(PROBLEM, target, split_k=split_k).kernels
    found = configured_roles(PROBLEM, target, split_k=split_k)
    assert sorted(found) == sorted(kernel.role for kernel in kernels)


@pytest.mark.parametrize(
    ("target", "examples"),
    [
        ("gfx942", 5),
        ("sm_80", 5),
        pytest.param("gfx942", 100, marks=pytest.mark.slow),
        pytest.param("gfx1201", 100, marks=pytest.mark.slow),
        pytest.param("sm_80", 100, marks=pytest.mark.slow),
    ],
)
def test_it_takes_no_kernel_whatever_the_problem(target, examples):
    """Weight gradients of any kind in one part: no kernel more with the op than without."""

    @for_drawn(of_any_kind("bwd_weight"), examples, "no kernel more")
    def check_count(drawn):
        problem = drawn[0]
        # Sums of chunks that are the result need no kernel behind them, and an op behind all does.
        if problem.dynamic_batch and problem.result_type == problem.accumulator_type:
            return
        kernels = [
            len(configured_roles(replace(problem, elementwise=text), target, None, 1))
            for text in ("", problem.elementwise or "scale(0.5)")
        ]
        assert kernels[1] <= kernels[0], problem.name


@pytest.mark.parametrize(
    ("types", "text", "fields"),
    in_turn(
        [("f32", "f32"), ("bf16", "bf16"), ("bf16", "f32")],
        ["relu", "bilinear(0.5,2)", "add:f32"],
        [{"g": 2, "c": 16}, {"g": 2, "c": 15}, {"c": 16, "layout": "NHWC_KYXC_NHWK"}],
    ),
    ids=str,
)
def test_no_kernel_more_on_the_cpu(types, text, fields):
    dtype, weight_dtype = types
    sizes = {"n": 4, "k": 16, "image": (9, 8), "filter": (3, 3), "pad_low": (1, 1), **fields}
    plain = ConvProblem(**sizes, dtype=dtype, weight_dtype=weight_dtype)
    with_op = check(replace(plain, elementwise=text), "cpu", 1).artifact
    assert len(with_op.kernels) == len(configured_roles(plain, "cpu", None, 1))


@pytest.mark.parametrize(
    ("name", "direction", "target"),
    in_turn(BIASED, ["fwd", "bwd_data", "bwd_weight"], ["cpu", "gfx942", "gfx1100"]),
)
def test_a_number_that_is_an_operand(name, direction, target):
    """It meets each way to store a result, for no kernel more than a constant takes."""
    problem = ConvProblem(
        n=2, image=(5, 6), filter=(3, 3), pad_low=1, direction=direction,
        elementwise="scale_by>relu", **BIASED[name],
    )  # fmt: skip
    artifact = check(problem, target, 1).artifact
    constant = configured_roles(replace(problem, elementwise="scale(3)>relu"), target, None, 1)
    assert len(artifact.kernels) <= len(constant)


@pytest.mark.parametrize("direction", ["bwd_bias", "bwd_data"])
@pytest.mark.parametrize("pad_mode", ["", "reflect"])
def test_a_number_of_bias_gradients_and_behind_pads(direction, pad_mode):
    problem = ConvProblem(
        n=2, k=6, c=5, image=(5, 6), filter=(3, 3), pad_low=1, stride=2, pad_mode=pad_mode,
        direction=direction, elementwise="divide_by>leaky_relu(-2)",
    )  # fmt: skip
    assert check(problem, "cpu").tolerance.exact


def test_a_number_is_given_in_any_form_of_numpy():
    problem = ConvProblem(
        n=2, k=6, c=5, image=(5, 6), filter=(3, 3), dtype="f32", elementwise="scale_by"
    )
    artifact = compile(problem, "cpu")
    image = np.ones(problem.input_shape, np.float32)
    gradient = np.ones(problem.output_shape, np.float32)
    want = np.full(problem.result_shape, 0.5 * problem.gemm_k, np.float32)
    for number in (np.float32(0.5), np.array(0.5, np.float32), np.full(3, 0.5, np.float32)[1]):
        np.testing.assert_array_equal(run(artifact, image, gradient, d=number), want)
    for number, message in (
        (np.ones(1, np.float32), r"d \(1,\): not the kernel's shape; give \(\)"),
        (np.float64(0.5), "d float64: not the kernel's type; give float32"),
        (0.5, "d float: not an array of numpy"),
    ):
        with pytest.raises(InvalidArray, match=message):
            run(artifact, image, gradient, d=number)
