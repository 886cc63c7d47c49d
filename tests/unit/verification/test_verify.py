"""The judge is judged: data is exact, tolerances hold, wrong kernels are caught."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from conv_compiler.cli import build_parser
from conv_compiler.errors import InvalidArray, Mismatch, UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.dtypes import TYPE_PAIRS
from conv_compiler.verification.inputs import (
    DATA,
    is_exact,
    tiny_operand,
    trials_of,
    without_denormals,
)
from conv_compiler.verification.reference import reference
from conv_compiler.verification.special import compare_special, may_spread
from conv_compiler.verification.tolerance import Tolerance, after_denormals, tolerance
from conv_compiler.verification.verify import compare, inputs, verify
from tests.problems import problems

PROBLEM = ConvProblem(n=4, g=2, k=8, c=4, image=(9, 9), filter=(3, 3), pad_low=(1, 1))


def typed(dtype, weight_dtype="", **sizes):
    values = {"dtype": dtype, "weight_dtype": weight_dtype, **sizes}
    return ConvProblem.from_json({**PROBLEM.to_json(), **values})


@settings(max_examples=100, deadline=None)
@given(problems())
def test_inputs_have_the_problems_shapes_and_are_exact(problem):
    for data in DATA:
        image, gradient = inputs(problem, data, seed=3)
        assert (image.shape, gradient.shape) == (problem.input_shape, problem.output_shape)
        assert image.dtype == gradient.dtype == problem.data_type.to_numpy()
        again = inputs(problem, data, seed=3)
        assert np.array_equal(image, again[0])
        assert np.array_equal(gradient, again[1])
    image, gradient = (array.astype(np.float64) for array in inputs(problem))
    assert np.array_equal(image, np.rint(image))
    assert is_exact(problem, image, gradient)


def test_seeds_differ():
    image, _ = inputs(PROBLEM, "random", seed=0)
    assert not np.array_equal(image, inputs(PROBLEM, "random", seed=1)[0])


@pytest.mark.parametrize(("dtype", "weight_dtype"), TYPE_PAIRS)
def test_integer_sums_fit_the_weight_type(dtype, weight_dtype):
    problem = typed(dtype, weight_dtype, image=[40, 40], n=8)
    want = reference(problem, *inputs(problem))
    assert np.abs(want).max() > 10
    rounded = want.astype(problem.result_type.to_numpy()).astype(np.float64)
    if problem.result_type.is_f8:  # of whole numbers it has but a few; most are in its range
        assert np.mean(np.abs(want) < problem.result_type.largest) > 0.9
        assert np.max(np.abs(rounded - want) / np.maximum(np.abs(want), 1)) <= 2**-3
    else:
        assert np.mean(rounded == want) > 0.9


def test_very_long_sums_get_sparse_integers():
    problem = ConvProblem(n=1, k=1, c=1, image=(2**25,), filter=(1,), dtype="f32")
    image, gradient = inputs(problem)
    assert is_exact(problem, image, gradient)
    assert 0 < np.mean(gradient != 0) < 0.5


def test_integers_that_would_not_be_exact_are_refused(monkeypatch):
    monkeypatch.setattr("conv_compiler.verification.inputs.is_exact", lambda *_: False)
    with pytest.raises(UnsupportedProblem, match="would not be exact in f32; use random data"):
        inputs(PROBLEM)


def test_is_exact_sees_one_long_channel():
    problem = ConvProblem(n=1, k=2, c=1, image=(2**20,), filter=(1,), dtype="f32")
    image = np.full(problem.input_shape, 4, np.float32)
    gradient = np.zeros(problem.output_shape, np.float32)
    gradient[..., 1] = 4
    assert is_exact(problem, image, gradient)  # 2**20 * 16 = 2**24
    image[0] = 5
    assert not is_exact(problem, image, gradient)


def test_unknown_data():
    with pytest.raises(
        InvalidArray, match="data ones: not in the table; known: integers, random, denormal"
    ):
        inputs(PROBLEM, "ones")


def test_tolerance_by_hand():
    short = typed("bf16", image=[1, 1], n=4)
    assert short.gemm_k == 4
    assert tolerance(short) == Tolerance(relative=2.0**-8, absolute=2.0**-24 * 4 * 2)
    long = typed("f16", "f32", image=[32, 32], n=16)
    assert long.gemm_k == 2**14
    assert tolerance(long) == Tolerance(relative=2.0**-24, absolute=2.0**-24 * 8 * 2**14)


@pytest.mark.parametrize(("dtype", "data"), [("f16", "integers"), ("i8", "random")])
def test_integers_must_be_equal(dtype, data):
    assert tolerance(typed(dtype), data).exact


@pytest.mark.parametrize("gemm_k", [1, 7, 100, 4096, 30000])
@pytest.mark.parametrize("parts", [1, 5])
def test_tolerance_holds_for_f32_sums_in_any_order(gemm_k, parts):
    problem = ConvProblem(n=1, k=16, c=64, image=(gemm_k,), filter=(1,), dtype="f32")
    image, gradient = inputs(problem, "random")
    columns, rows = image.reshape(gemm_k, 64), gradient.reshape(gemm_k, 16)
    partial = np.zeros((parts, 16, 64), np.float32)
    for i in range(gemm_k):
        partial[i % parts] += np.outer(rows[i], columns[i])
    got = partial.sum(axis=0, dtype=np.float32).reshape(problem.weight_shape)
    found = compare(problem, got, reference(problem, image, gradient), tolerance(problem))
    assert found.wrong == 0


@pytest.mark.parametrize("rounding", [np.float16, "bf16"])
def test_sums_kept_in_16_bits_are_caught(rounding):
    problem = ConvProblem(n=1, k=16, c=64, image=(1000,), filter=(1,), weight_dtype="f32")
    narrow = typed(rounding).data_type.to_numpy() if rounding == "bf16" else rounding
    image, gradient = inputs(problem, "random")
    columns, rows = (a.reshape(1000, -1).astype(np.float32) for a in (image, gradient))
    got = np.zeros((16, 64), np.float32)
    for i in range(1000):
        got = (got + np.outer(rows[i], columns[i])).astype(narrow).astype(np.float32)
    want = reference(problem, image, gradient)
    found = compare(problem, got.reshape(want.shape), want, tolerance(problem))
    assert found.wrong > 0


def test_two_parts_rounded_to_bf16_are_caught():
    problem = ConvProblem(n=2, k=16, c=64, image=(500,), filter=(1,), weight_dtype="f32")
    image, gradient = inputs(problem, "random")
    half = problem.with_batch(1)
    bf16 = typed("bf16").data_type.to_numpy()
    parts = [reference(half, image[i : i + 1], gradient[i : i + 1]).astype(bf16) for i in (0, 1)]
    got = parts[0].astype(np.float32) + parts[1].astype(np.float32)
    found = compare(problem, got, reference(problem, image, gradient), tolerance(problem))
    assert found.wrong > 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1.0])
def test_one_wrong_weight_is_found_and_named(bad):
    want = reference(PROBLEM, *inputs(PROBLEM))
    got = want.astype(np.float16)
    assert compare(PROBLEM, got, want, Tolerance()).wrong == 0
    got[1, 2, 0, 1, 3] += np.float16(bad)
    found = compare(PROBLEM, got, want, Tolerance())
    assert found.wrong == 1
    assert found.worst.startswith("[1, 2, 0, 1, 3] is ")


def test_compare_refuses_another_type_or_shape():
    want = reference(PROBLEM, *inputs(PROBLEM))
    with pytest.raises(InvalidArray, match="float64: not the problem's"):
        compare(PROBLEM, want, want, Tolerance())
    with pytest.raises(InvalidArray, match="expected"):
        compare(PROBLEM, want[0].astype(np.float16), want, Tolerance())


@pytest.fixture(scope="module")
def report():
    return verify(PROBLEM, budget=0.01)


def test_a_right_kernel(report):
    assert report.passed
    assert report.require() is report
    assert report.device == "cpu"
    assert report.tolerance.exact
    assert report.gflops > 0
    assert "right (exact)" in report.text
    assert "\n" not in report.text


def test_random_data_and_no_timing():
    report = verify(PROBLEM, data="random", budget=0.0)
    assert report.passed
    assert report.seconds == report.gflops == 0.0
    assert 0 < report.comparison.max_error < 0.1


def test_json_is_plain(report):
    values = json.loads(json.dumps(report.to_json()))
    assert values["passed"] is True
    assert values["wrong"] == 0
    assert ConvProblem.from_json(values["problem"]) == PROBLEM
    assert values["tolerance"] == {"relative": 0.0, "absolute": 0.0}


def test_a_wrong_kernel_raises_on_request(report):
    wrong = replace(report.comparison, wrong=3, worst="[0] is 1.0, expected 2.0")
    bad = replace(report, comparison=wrong)
    assert not bad.passed
    with pytest.raises(Mismatch, match=r"WRONG: 3 of \d+ elements, worst \[0\] is 1.0, expected 2"):
        bad.require()


def test_runs_that_differ_raise_on_request(report):
    with pytest.raises(Mismatch, match=r"2 runs differ in 5 of \d+ elements"):
        replace(report, drifting=5).require()


def test_a_kernel_that_changes_its_mind_is_found(monkeypatch):
    from conv_compiler.runtime import kernel as runtime

    calls = iter(range(10))
    honest = runtime.Kernel.__call__

    def drifting(self, *operands):
        result = runtime.to_numpy(honest(self, *operands))
        result.flat[0] += next(calls)
        return self.put(result)

    monkeypatch.setattr(runtime.Kernel, "__call__", drifting)
    report = verify(PROBLEM, runs=3, budget=0.0)
    assert report.drifting == 1
    assert report.comparison.wrong == 0


def test_a_kernel_wrong_in_one_of_its_batches_is_found_and_named(monkeypatch):
    from conv_compiler.runtime import kernel as runtime

    honest = runtime.Kernel.__call__

    def wrong_for_nine(self, *operands):
        result = runtime.to_numpy(honest(self, *operands))
        result.flat[3] += operands[0].shape[0] == 9
        return self.put(result)

    monkeypatch.setattr(runtime.Kernel, "__call__", wrong_for_nine)
    report = verify(replace(PROBLEM, dynamic_batch=True), budget=0.0)
    assert report.batches == (1, 4, 9)
    assert report.comparison.wrong == 1
    assert report.comparison.elements == 3 * PROBLEM.g * PROBLEM.k * PROBLEM.c * 9
    with pytest.raises(Mismatch, match="in a batch of 9"):
        report.require()


@pytest.mark.parametrize("data", DATA)
def test_the_command_knows_all_data(data):
    words = ["verify", "-n", "1", "--data", data]
    assert build_parser("verify").parse_args(words).data == data


def special(problem, number, value, at=0):
    """(operands, those of integers alone, the definition's result in the result's type)."""
    plain = inputs(problem, "special")
    operands = [array.copy() for array in plain]
    operands[number].reshape(-1)[at] = value
    with np.errstate(all="ignore"):
        want = reference(problem, *operands).astype(problem.result_type.to_numpy())
    return tuple(operands), plain, want


def judged(problem, got, operands, plain):
    return compare_special(problem, got, operands, plain)[0].wrong


@pytest.mark.parametrize("direction", ["bwd_weight", "bwd_data", "fwd"])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.0**15])
def test_special_values_that_are_lost_or_get_about_are_found(direction, number, value):
    problem = replace(PROBLEM, direction=direction)
    operands, plain, want = special(problem, number, value)
    assert judged(problem, want, operands, plain) == 0
    away = ~np.isfinite(want)
    assert away.any()
    lost = np.where(away, np.float16(0), want)
    assert judged(problem, lost, operands, plain) == away.sum()
    saturated = np.where(np.isinf(want), np.copysign(np.float16(65504), want), want)
    assert judged(problem, saturated, operands, plain) == np.isinf(want).sum()
    assert judged(problem, np.where(np.isinf(want), -want, want), operands, plain) == (
        np.isinf(want).sum()
    )
    spread = may_spread(problem, *operands)
    assert spread.any() == (not np.isfinite(value))
    assert not spread.all()
    everywhere = np.full_like(want, np.nan)
    if np.isfinite(value):
        assert judged(problem, everywhere, operands, plain) == want.size
    else:
        assert judged(problem, everywhere, operands, plain) == (~spread).sum()
        # Outside numbers count as ever, inside too where they are numbers.
        off = want + np.isfinite(want).astype(np.float16)
        assert judged(problem, off, operands, plain) == np.isfinite(want).sum()


def test_what_one_op_makes_too_large_may_be_nan_behind_the_next():
    """-1.5e38 is -4.5e38 behind `leaky_relu(3)`, -infinity in f32, of which `swish` makes NaN."""
    problem = typed("f32", elementwise="leaky_relu(3)>swish(3)")
    operands, plain, want = special(problem, 0, np.float32(1.5e38))
    sums = reference(replace(problem, elementwise=""), *operands)
    large = np.abs(sums) > 1e38
    assert (sums < -1e38).any()
    assert judged(problem, np.where(large, np.float32("nan"), want), operands, plain) == 0
    everywhere = np.full_like(want, np.nan)
    assert judged(problem, everywhere, operands, plain) == (~large).sum()


def test_what_is_not_finite_stays_in_its_image_group_and_channel():
    problem = replace(PROBLEM, direction="bwd_data", stride=(2, 2))
    operands, _, _ = special(problem, 0, np.nan)  # d_output[n 0, pixel 0, group 0, k 0]
    spread = may_spread(problem, *operands)
    assert spread[0, :, :, 0].all()
    assert spread.sum() == spread[0, :, :, 0].size
    operands, _, _ = special(problem, 1, np.inf)  # weight[g 0, k 0, tap 0, c 0]
    spread = may_spread(problem, *operands)
    assert spread[..., 0, 0].all()
    assert spread.sum() == spread[..., 0, 0].size


def test_special_data_have_one_special_number_each():
    kinds = set()
    for trial in range(trials_of("special", PROBLEM)):
        plain = inputs(PROBLEM, "special", 5)
        for number, (array, before) in enumerate(
            zip(inputs(PROBLEM, "special", 5, trial), plain, strict=True)
        ):
            changed = array[~(array == before)]
            assert changed.size <= 1
            kinds |= {(number, str(abs(x))) for x in changed.tolist()}
    assert kinds == {(n, x) for n in (0, 1) for x in ("nan", "inf", "32768.0")}


@pytest.mark.parametrize(("dtype", "least"), [("f16", 2.0**-14), ("bf16", 2.0**-126)])
def test_denormal_data_are(dtype, least):
    image, gradient = inputs(typed(dtype, image=[40, 40]), "denormal")
    sizes = np.abs(gradient.astype(np.float64))
    assert 0.5 < np.mean(sizes < least) < 0.8
    assert sizes.max() <= 256 * least
    assert np.abs(image.astype(np.float64)).max() > 0.9


@pytest.mark.parametrize("direction", ["bwd_weight", "bwd_data", "fwd"])
@pytest.mark.parametrize("weight_dtype", ["f16", "f32"])
def test_flushed_f16_denormals_are_called_wrong(direction, weight_dtype):
    """Also of a gradient that is small all over, which comes out with an rms error of 0.7."""
    problem = replace(PROBLEM, direction=direction, weight_dtype=weight_dtype, k=16, c=16)
    drawn = inputs(problem, "denormal")
    rng = np.random.default_rng(0)
    small = list(inputs(problem, "random"))
    number = tiny_operand(problem)
    small[number] = (4e-5 * rng.standard_normal(small[number].shape)).astype(np.float16)
    for operands in (drawn, small):
        want = reference(problem, *operands)
        flushed = [without_denormals(problem, i, x) for i, x in enumerate(operands)]
        assert not np.array_equal(flushed[number], operands[number])
        dtype = problem.result_type.to_numpy()
        got = reference(problem, *flushed).astype(dtype)
        for types in ((), ("f16", "bf16"), ("f32", "f64", "bf16")):
            allowed = after_denormals(problem, *operands, types)
            assert compare(problem, want.astype(dtype), want, allowed).wrong == 0
            assert compare(problem, got, want, allowed).wrong > want.size / 2
    rms = np.sqrt(np.mean((got.astype(np.float64) - want) ** 2) / np.mean(want**2))
    assert rms > 0.5


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_denormals_below_the_sums_may_count_as_zero_where_it_is_said(dtype):
    problem = typed(dtype, "f32", k=16, c=16)
    operands = inputs(problem, "denormal")
    want = reference(problem, *operands)
    types = ("f32", "bf16")
    flushed = [without_denormals(problem, i, x, types) for i, x in enumerate(operands)]
    got = reference(problem, *flushed).astype(np.float32)
    assert compare(problem, got, want, after_denormals(problem, *operands, types)).wrong == 0
    assert compare(problem, got, want, after_denormals(problem, *operands, ())).wrong > 0
    zeros = np.zeros_like(got)
    assert compare(problem, zeros, want, after_denormals(problem, *operands, types)).wrong > 0


@pytest.mark.parametrize("harm", [lambda x: np.nan_to_num(x), lambda x: x * np.float16(np.nan)])
def test_a_kernel_that_loses_nan_or_spreads_it_is_found(monkeypatch, harm):
    from conv_compiler.runtime import kernel as runtime

    honest = runtime.Kernel.__call__

    def harmed(self, *operands):
        return self.put(harm(runtime.to_numpy(honest(self, *operands))))

    assert verify(PROBLEM, data="special", budget=0.0).passed
    monkeypatch.setattr(runtime.Kernel, "__call__", harmed)
    assert verify(PROBLEM, data="special", budget=0.0).comparison.wrong > 0
