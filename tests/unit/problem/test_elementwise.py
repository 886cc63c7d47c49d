"""Elementwise ops: what each is, how it is written, and how far a kernel may be off."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from conv_compiler.cli import main
from conv_compiler.errors import InvalidArray, UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.elementwise import ELEMENTWISE, parse
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import exact_sums, plain, reference
from conv_compiler.verification.tolerance import (
    Tolerance,
    after_elementwise,
    after_operand_ops,
    tolerance,
)
from conv_compiler.verification.verify import compare
from tests.problems import elementwise_texts

PROBLEM = ConvProblem(n=2, g=2, k=3, c=2, image=(5, 4), filter=(3, 2), layout="NHWC_KYXC_NHWK")
# Each op by hand, of one number.
BY_HAND = {
    "scale": lambda x, s: s * x,
    "bilinear": lambda x, d, alpha, beta: alpha * x + beta * d,
    "add": lambda x, d: d + x,
    "bias": lambda x, b: b + x,
    "scale_by": lambda x, f: f * x,
    "divide_by": lambda x, f: x / f,
    "scale_add": lambda x, d, s: d + s * x,
    "relu": lambda x: x if x > 0 else 0.0,
    "clamp": lambda x, low, high: min(max(x, low), high),
    "leaky_relu": lambda x, s: x if x > 0 else s * x,
    "tanh": math.tanh,
    "swish": lambda x, s: x * (math.exp(s * x) / (math.exp(s * x) + 1) if s * x < 700 else 1),
    "sigmoid": lambda x: math.exp(x) / (math.exp(x) + 1),
}
NUMBERS = st.floats(-100, 100, width=32)
FACTORS = NUMBERS.filter(lambda number: abs(number) > 2**-10)


@pytest.mark.parametrize("name", ELEMENTWISE)
@given(x=NUMBERS, d=NUMBERS, values=st.tuples(NUMBERS, NUMBERS))
def test_every_op_is_the_one_by_hand(name, x, d, values):
    row = ELEMENTWISE[name]
    values = values[: len(row.parameters)]
    text = f"{name}({','.join(map(repr, values))})" if values else name
    assume(d or name != "divide_by")
    operands = (x, d) if row.takes_d else (x,)
    found = parse(text).on_arrays(*(np.array([one]) for one in operands))
    assert found[0] == pytest.approx(BY_HAND[name](*operands, *values))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (" bilinear( 0.50 , 2.0 ) ", "bilinear(0.5,2)"),
        ("scale(0.1)", "scale(0.1)"),
        ("scale(1e-3)", "scale(0.001)"),
        ("scale_add(-16777216):f32", "scale_add(-16777216):f32"),
        ("add:f32", "add:f32"),
        ("relu", "relu"),
        ("scale( 2 ) > add:f32 > relu", "scale(2)>add:f32>relu"),
    ],
)
def test_one_way_to_write_it(given, text):
    assert str(parse(given)) == text
    assert parse(text).text == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_parameters_are_the_f32_that_kernels_hold(value):
    (step,) = parse(f"scale({value!r})").steps
    (found,) = step.values
    assert struct.pack("f", found) == struct.pack("f", value)
    assert parse(parse(f"scale({value!r})").text).steps[0].values == (found,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gelu", r"elementwise gelu: not in the table; did you mean relu\? known: scale\(s\), "),
        ("scale(", r"elementwise scale\(: not in the table"),
        ("scale", r"elementwise scale: not 1 finite f32 numbers; write scale\(s\)"),
        ("scale(1,2)", "not 1 finite f32 numbers"),
        ("scale(two)", "not 1 finite f32 numbers"),
        ("scale(1e39)", "not 1 finite f32 numbers"),
        ("scale(nan)", "not 1 finite f32 numbers"),
        ("relu(1)", "not 0 finite f32 numbers; write relu"),
        ("relu>gelu", r"elementwise relu>gelu: not in the table; did you mean relu\?"),
        ("relu>", "elementwise relu>: not in the table; known"),
        ("add>scale(2)>bilinear(1,2)", "two of its ops take d, and there is one d; leave one out"),
        (
            "relu>bias",
            "an element for each channel of an image, and the result is a weight gradient",
        ),
        ("relu:f32", "has no tensor d that could be f32"),
        ("scale_by:f32", "its number is of the type ops are computed in, not f32; write scale_by"),
        ("scale_by>add", "two of its ops take d"),
        ("add:i8", "d is the result's f16 or f32; leave i8 out"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(UnsupportedProblem, match=message):
        replace(PROBLEM, elementwise=text)


@given(elementwise_texts())
def test_a_problem_keeps_it(text):
    problem = replace(PROBLEM, elementwise=parse(text))
    assert ConvProblem.from_json(json.loads(json.dumps(problem.to_json()))) == problem
    assert problem == replace(PROBLEM, elementwise=text)
    assert problem.name.startswith(PROBLEM.name + "_")
    assert problem.takes_d == (problem.bytes > PROBLEM.bytes)


@given(elementwise_texts(), st.sampled_from(["f16", "i8"]))
def test_the_definition_is_the_op_on_the_sums(text, dtype):
    problem = replace(PROBLEM, elementwise=text, dtype=dtype, weight_dtype="")
    operands = inputs(problem)
    found = reference(problem, *operands)
    assert np.array_equal(found, plain(problem, *operands))
    sums = exact_sums(problem, *operands[:2]).astype(np.float64)
    want = problem.fused.on_arrays(sums, *(d.astype(np.float64) for d in operands[2:]))
    assert np.array_equal(found, np.rint(want) if dtype == "i8" else want)


def test_integers_saturate_after_it():
    problem = replace(PROBLEM, elementwise="scale(1000)", dtype="i8", weight_dtype="i8")
    found = reference(problem, *inputs(problem))
    assert found.max() == 127
    assert found.min() == -128


def test_d_is_asked_for():
    image, gradient, d = inputs(replace(PROBLEM, elementwise="add"))
    with pytest.raises(InvalidArray, match=r"d None: not the problem's; give \(6, 3, 2, 2\)"):
        reference(replace(PROBLEM, elementwise="add"), image, gradient)
    with pytest.raises(InvalidArray, match="leave it out"):
        reference(PROBLEM, image, gradient, d)
    with pytest.raises(InvalidArray, match=r"d \(2,\): not the problem's"):
        reference(replace(PROBLEM, elementwise="add"), image, gradient, np.zeros(2))


def test_ops_follow_one_another():
    d = np.array([1.0, -9.0, 0.5])
    found = parse("scale(2)>add>relu>scale(0.5)").on_arrays(np.array([3.0, 4.0, -1.0]), d)
    assert found.tolist() == [3.5, 0.0, 0.0]


@given(elementwise_texts(), st.lists(NUMBERS, min_size=1), st.data())
def test_a_chain_is_held_to_roundings_of_its_size(text, numbers, data):
    """In f32 it is within the tolerance of what it is in float64."""
    problem = replace(PROBLEM, elementwise=text, weight_dtype="f32")
    x = np.array(numbers)
    factors = FACTORS if problem.takes_d and problem.fused.d_per == "call" else NUMBERS
    d = np.array([data.draw(factors) for _ in numbers]) if problem.takes_d else None
    allowed = after_elementwise(problem, Tolerance(relative=0.0, absolute=0.0), x, d)
    want = problem.fused.on_arrays(x, d)
    narrow = [None if one is None else one.astype(np.float32) for one in (x, d)]
    got = problem.fused.on_arrays(*narrow).astype(np.float64)
    assert (abs(got - want) <= allowed.relative * abs(want) + allowed.absolute).all()


@pytest.mark.parametrize(
    ("direction", "layout", "shape", "axes"),
    [
        ("fwd", "NHWC", (6,), (3,)),
        ("fwd", "NCHW", (6,), (1,)),
        ("fwd", "GNHWC_GKYXC_GNHWK", (2, 3), (0, 4)),
        ("bwd_data", "NGCHW_GKYXC_NGKHW", (2, 2), (1, 2)),
        ("bwd_data", "NHWC", (4,), (3,)),
    ],
)
def test_a_bias_is_added_to_its_channel(direction, layout, shape, axes):
    problem = replace(PROBLEM, direction=direction, layout=layout, elementwise="bias>relu")
    assert problem.d_shape == shape
    first, second, b = inputs(problem)
    plain_sums = plain(replace(problem, elementwise=""), first, second)
    others = tuple(i for i in range(plain_sums.ndim) if i not in axes)
    want = np.maximum(plain_sums + np.expand_dims(b.astype(np.float64), others), 0)
    assert np.array_equal(plain(problem, first, second, b), want)
    assert problem.bytes == replace(problem, elementwise="").bytes + 2 * b.size


@pytest.mark.parametrize("direction", ["fwd", "bwd_data", "bwd_weight", "bwd_bias"])
@pytest.mark.parametrize(("name", "power"), [("scale_by", 1), ("divide_by", -1)])
def test_a_number_for_all_elements(direction, name, power):
    problem = replace(PROBLEM, direction=direction, elementwise=f"{name}>relu")
    assert (problem.d_shape, problem.d_type.name) == ((), "f32")
    *operands, d = inputs(problem)
    assert d.shape == ()
    if direction != "bwd_bias":
        sums = plain(replace(problem, elementwise=""), *operands)
        assert np.array_equal(plain(problem, *operands, d), np.maximum(sums * float(d) ** power, 0))
        with pytest.raises(InvalidArray, match=r"d \(1,\): not the problem's; give \(\)"):
            plain(problem, *operands, d.reshape(1))
    assert problem.bytes == replace(problem, elementwise="").bytes + 4


def test_a_number_of_f64_is_f64():
    problem = replace(PROBLEM, dtype="f64", weight_dtype="f64", elementwise="scale_by")
    assert problem.d_type.name == "f64"


def test_an_exact_op_is_held_to_equality():
    problem = replace(PROBLEM, elementwise="bilinear(0.5,-2)")
    image, gradient, d = inputs(problem)
    sums = exact_sums(problem, image, gradient)
    assert after_elementwise(problem, Tolerance(), sums, d).exact


def test_a_rounding_op_has_its_own_tolerance():
    problem = replace(PROBLEM, elementwise="scale(0.1)", weight_dtype="f32")
    sums = np.array([3.0, -7.0, 0.0])
    (s,) = problem.fused.steps[0].values
    allowed = after_elementwise(problem, Tolerance(), sums)
    assert allowed.relative == 2.0**-24
    assert allowed.absolute == pytest.approx(8 * 2.0**-24 * np.abs(sums) * s)
    allowed = after_elementwise(problem, Tolerance(absolute=0.5), sums)
    assert allowed.absolute == pytest.approx(0.5 * s + 8 * 2.0**-24 * np.abs(sums) * s)


@pytest.mark.parametrize(
    "wrong", ["scale(2.001)", "bilinear(2,0.999):f32", "scale_add(-2)", "relu"]
)
def test_another_op_is_found(wrong):
    """The tolerance of random data is too narrow for an op that is a little off."""
    right = replace(PROBLEM, elementwise="scale_add(2)", weight_dtype="f32")
    image, gradient, d = inputs(right, "random")
    want = reference(right, image, gradient, d)
    other = replace(right, elementwise=wrong)
    got = reference(other, image, gradient, *([d] if other.takes_d else []))
    sums = exact_sums(right, image, gradient)
    allowed = after_elementwise(right, tolerance(right), sums, d)
    assert compare(right, want.astype(np.float32), want, allowed).wrong == 0
    assert compare(right, got.astype(np.float32), want, allowed).wrong > want.size // 2


def test_from_files(tmp_path, capfd):
    """d on the command line: used where the op takes one, asked for and refused by name."""
    problem = ConvProblem(n=1, k=2, c=3, image=(4,), filter=(3,), elementwise="bilinear(2,-1)")
    arrays = dict(zip(("input", "d-output", "d"), inputs(problem), strict=True))
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    words = ["run", "-n", "1", "-k", "2", "-c", "3", "--image", "4", "--filter", "3"]
    words += ["--elementwise", "bilinear(2, -1)", "-o", str(tmp_path / "w.npy")]
    words += [w for name in ("input", "d-output") for w in (f"--{name}", f"{tmp_path}/{name}.npy")]
    assert main(words) == 2
    assert "d: not given; this kernel takes input, d_output, d" in capfd.readouterr().err
    assert main([*words, "--d", f"{tmp_path}/d.npy"]) == 0
    want = reference(problem, *arrays.values()).astype(np.float16)
    assert np.array_equal(np.load(tmp_path / "w.npy"), want)


def test_a_name_for_files():
    names = {
        replace(PROBLEM, elementwise=text).name.removeprefix(PROBLEM.name)
        for text in (
            *("scale(-2)", "scale(2)", "bilinear(0.5,2)", "bilinear(0.5,2):f32", "add:f32"),
            "scale(2)>add>relu",
        )
    }
    assert names == {
        "_scale--2",
        "_scale-2",
        "_bilinear-0.5-2",
        "_bilinear-0.5-2-f32",
        "_add-f32",
        "_scale-2-add-relu",
    }


def test_operands_go_through_their_ops_first():
    """In f32 and rounded: 0.3 of an odd number is no f16."""
    problem = replace(PROBLEM, input_op="scale(0.3)", output_op="relu")
    image, gradient = inputs(problem, "random")
    op = (image.astype(np.float32) * np.float32(0.3)).astype(np.float16)
    want = plain(PROBLEM, op, np.maximum(gradient, 0))
    assert np.array_equal(plain(problem, image, gradient), want)
    assert np.allclose(reference(problem, image, gradient), want, rtol=1e-12)
    assert not np.array_equal(want, plain(PROBLEM, image, np.maximum(gradient, 0)) * 0.3)


def test_integers_of_an_operand_op_saturate():
    problem = replace(PROBLEM, dtype="i8", weight_dtype="i32", input_op="scale(100)")
    image = np.full(problem.input_shape, -3, np.int8)
    gradient = np.ones(problem.output_shape, np.int8)
    assert plain(problem, image, gradient).max() == -128 * PROBLEM.gemm_k


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"input_op": "scale(2)>relu"}, r"input op scale\(2\)>relu: not for operands; use scale"),
        ({"input_op": "sigmoid"}, "input op sigmoid: not for operands; use scale or relu"),
        ({"weight_op": "relu"}, "weight op relu: of the result, not of an operand"),
        ({"output_op": "wat"}, "elementwise wat: not in the table"),
        ({"direction": "fwd", "output_op": "relu"}, "output op relu: of the result"),
    ],
)
def test_operand_ops_that_are_refused(fields, reason):
    with pytest.raises(UnsupportedProblem, match=reason):
        replace(PROBLEM, **fields)


def test_what_an_op_makes_small_or_of_one_sign_is_held_to_its_sums():
    """The tolerance is in step with the sums: a tenth of them, or those that only grow."""
    image, gradient = inputs(PROBLEM, "random")
    plain_figure = tolerance(PROBLEM).absolute

    def figure(**ops):
        problem = replace(PROBLEM, **ops)
        return after_operand_ops(problem, tolerance(problem), image, gradient).absolute

    tenth = figure(input_op="scale(0.1)")
    assert 0.05 * plain_figure < tenth < 0.12 * plain_figure
    rising = figure(input_op="relu", output_op="relu")
    mean = 1 / 16  # of the products of what relu leaves of [-1, 1)
    expected = plain_figure * (1 + math.sqrt(PROBLEM.gemm_k) * mean)
    assert rising == pytest.approx(expected, rel=0.15)


def test_an_operand_op_that_is_left_out_is_found():
    """What the kernel of one problem gives is no answer to the other."""
    problem = replace(PROBLEM, output_op="scale(0.3)")
    image, gradient = inputs(problem, "random")
    sums = exact_sums(PROBLEM, image, gradient)
    allowed = after_operand_ops(problem, tolerance(problem), image, gradient)
    want = reference(problem, image, gradient)
    found = compare(problem, sums.astype(np.float16), want, allowed)
    assert found.wrong > found.elements / 2
    right = compare(problem, want.astype(np.float16), want, allowed)
    assert right.wrong == 0
