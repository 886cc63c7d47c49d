"""The references agree with a sum done by hand, with each other, and with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from conv_compiler.errors import InvalidArray
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import plain, reference
from tests.problems import problems, tiny_problems

FORMS = [plain, reference]


@pytest.mark.parametrize("form", FORMS)
def test_a_sum_done_by_hand(form):
    problem = ConvProblem(
        n=1, k=1, c=1, image=(4,), filter=(2,), stride=(2,), dilation=(2,), pad_low=(1,)
    )
    assert problem.out_image == (2,)  # pixels -1, 1 for tap 0 and 1, 3 for tap 1
    image = np.array([1, 2, 3, 4], np.float32).reshape(problem.input_shape)
    gradient = np.array([10, 100], np.float32).reshape(problem.output_shape)
    weight = form(problem, image, gradient)
    assert weight.dtype == np.float64
    assert weight.ravel().tolist() == [100 * 2, 10 * 2 + 100 * 4]


@pytest.mark.parametrize("form", FORMS)
def test_groups_do_not_mix(form):
    problem = ConvProblem(n=1, g=2, k=1, c=1, image=(1, 1), filter=(1, 1), dtype="f32")
    image = np.array([2, 3], np.float32).reshape(problem.input_shape)
    gradient = np.array([5, 7], np.float32).reshape(problem.output_shape)
    assert form(problem, image, gradient).ravel().tolist() == [10, 21]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("weight_dtype", "expected"), [("i8", [127, -128]), ("i32", [400, -400])])
def test_integers_are_exact_and_saturate_to_the_weight_type(form, weight_dtype, expected):
    problem = ConvProblem(
        n=4, k=2, c=1, image=(1,), filter=(1,), dtype="i8", weight_dtype=weight_dtype
    )
    image = np.full(problem.input_shape, 10, np.int8)
    gradient = np.full(problem.output_shape, 10, np.int8)
    gradient[..., 1] = -10
    weight = form(problem, image, gradient)
    assert weight.dtype == np.int64
    assert weight.ravel().tolist() == expected


@pytest.mark.parametrize("form", FORMS)
def test_a_tap_that_never_meets_the_image_is_zero(form):
    problem = ConvProblem(
        n=1, k=1, c=1, image=(1,), filter=(3,), pad_low=(2,), pad_high=(4,), stride=(5,)
    )
    image, gradient = (np.ones(s, np.float32) for s in (problem.input_shape, problem.output_shape))
    assert form(problem, image, gradient).ravel().tolist() == [0, 0, 1]


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_shape_is_refused(form):
    problem = ConvProblem(n=1, k=1, c=1, image=(4,), filter=(2,), dtype="f32")
    image, gradient = inputs(problem)
    with pytest.raises(InvalidArray, match="not the shape of the problem"):
        form(problem, image, gradient[:, 1:])


@settings(max_examples=100, deadline=None)
@given(tiny_problems())
def test_both_forms_agree(problem):
    operands = inputs(problem)
    assert np.array_equal(plain(problem, *operands), reference(problem, *operands))
    operands = inputs(problem, "random")
    np.testing.assert_allclose(
        plain(problem, *operands), reference(problem, *operands), rtol=1e-11, atol=1e-11
    )


def test_blocks_of_the_batch_add_up(monkeypatch):
    problem = ConvProblem(n=7, g=2, k=3, c=2, image=(6, 5), filter=(3, 2), pad_low=(1, 1))
    operands = inputs(problem)
    whole = reference(problem, *operands)
    monkeypatch.setattr("conv_compiler.verification.reference._BLOCK_ELEMENTS", 250)
    assert np.array_equal(reference(problem, *operands), whole)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_agrees_with_torch(problem):
    torch = pytest.importorskip("torch")
    image, gradient = (array.astype(np.float64) for array in inputs(problem))
    row, ndim = problem.layout_row, problem.ndim

    def channels_first(array, letters, channel):
        """N, G and channel folded, space: PyTorch's order."""
        grouped = array.reshape(problem.shape(letters))
        at = letters.index("*")
        names = [*letters[:at], *"012"[:ndim], *letters[at + 1 :]]
        order = [names.index(name) for name in ["N", "G", channel, *"012"[:ndim]]]
        folded = grouped.transpose(order)
        return folded.reshape(folded.shape[0], -1, *folded.shape[3:])

    pads = [(0, 0), (0, 0), *zip(problem.pad_low, problem.pad_high, strict=True)]
    padded = np.pad(channels_first(image, row.grouped.input, "C"), pads)
    weight_gradient = getattr(torch.nn.grad, f"conv{ndim}d_weight")
    want = weight_gradient(
        torch.from_numpy(padded),
        (problem.g * problem.k, problem.c, *problem.filter),
        torch.from_numpy(channels_first(gradient, row.grouped.output, "K").copy()),
        stride=problem.stride,
        dilation=problem.dilation,
        groups=problem.g,
    ).numpy()
    got = reference(problem, image, gradient)
    letters = row.grouped.weight
    at = letters.index("*")
    names = [*letters[:at], *"012"[:ndim], *letters[at + 1 :]]
    order = [names.index(name) for name in ["G", "K", "C", *"012"[:ndim]]]
    got = got.reshape(problem.shape(letters)).transpose(order).reshape(want.shape)
    if problem.weight_dtype == "i8":
        want = want.clip(-128, 127)
    assert np.array_equal(got, want)
