"""Kernels that write their result where the caller says."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

import conv_compiler as cc
from conv_compiler.errors import InvalidArray
from conv_compiler.model.module import model_module

PROBLEM = cc.ConvProblem(
    n=2, k=16, c=16, image=(9, 8), filter=(3, 3), pad_low=1, dtype="f32", result_operand=True
)
torch = pytest.importorskip("torch")


def integers(shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(-4, 5, shape, np.int8)).float()


@pytest.fixture(scope="module")
def kernel():
    return cc.load(cc.compile(PROBLEM, "cpu"))


def test_the_result_is_in_the_given_memory(kernel):
    operands = [integers(shape) for shape in PROBLEM.operand_shapes]
    out = torch.full(PROBLEM.result_shape, 7.0)
    assert kernel(*operands, out=out) is out
    plain = cc.load(cc.compile(replace(PROBLEM, result_operand=False), "cpu"))
    assert torch.equal(out, plain(*operands))
    assert torch.equal(out, kernel(*operands))  # in memory of its own
    assert (kernel(*(one.numpy() for one in operands)) == out.numpy()).all()


@pytest.mark.parametrize("shift", [0, 1, 3, 16])
def test_the_memory_may_be_numpys_and_begin_anywhere(kernel, shift):
    operands = [integers(shape) for shape in PROBLEM.operand_shapes]
    size = np.prod(PROBLEM.result_shape)
    room = np.full(size + 32, 7.0, np.float32)
    out = room[shift : shift + size].reshape(PROBLEM.result_shape)
    assert kernel(*(one.numpy() for one in operands), out=out) is out
    assert np.array_equal(out, kernel(*operands))
    assert (room[:shift] == 7).all()
    assert (room[shift + size :] == 7).all()


@pytest.mark.parametrize("direction", ["bwd_weight", "bwd_data", "fwd"])
@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_every_direction_is_right(direction, target):
    problem = replace(PROBLEM, direction=direction, stride=(2, 1), dtype="f16", weight_dtype="")
    assert cc.verify(problem, target, budget=0).passed


@pytest.mark.parametrize("split_k", [1, 4])
def test_it_costs_no_kernel_and_no_copy(split_k):
    problem = replace(PROBLEM, dtype="f16", weight_dtype="")
    into, plain = (
        model_module(cc.compile(one, "gfx942", split_k=split_k).vmfb)
        for one in (problem, replace(problem, result_operand=False))
    )
    assert [one.launch for one in into.kernels] == [one.launch for one in plain.kernels]
    assert into.fills == plain.fills


@pytest.mark.parametrize(
    ("out", "why"),
    [
        (torch.zeros(3), "out (3,): not the kernel's shape"),
        (torch.zeros(PROBLEM.result_shape, dtype=torch.int32), "not the kernel's type"),
        (torch.zeros((*PROBLEM.result_shape, 2))[..., 0], "not dense, or not aligned to 4 bytes"),
        (np.zeros((*PROBLEM.result_shape, 2), np.float32)[..., 0], "not dense"),
        (np.broadcast_to(np.float32(0), PROBLEM.result_shape), "out: read-only"),
        ([0.0], "out: of list; give an array of a library with DLPack"),
    ],
)
def test_other_memory_is_refused(kernel, out, why):
    operands = [integers(shape) for shape in PROBLEM.operand_shapes]
    before = copy.deepcopy(out)
    with pytest.raises(InvalidArray) as caught:
        kernel(*operands, out=out)
    assert why in str(caught.value)
    assert np.array_equal(out, before)


def test_kernels_that_take_none_say_so(kernel):
    plain = cc.load(cc.compile(replace(PROBLEM, result_operand=False), "cpu"))
    operands = [integers(shape) for shape in PROBLEM.operand_shapes]
    with pytest.raises(InvalidArray, match="compile with result_operand"):
        plain(*operands, out=torch.zeros(PROBLEM.result_shape))


@pytest.mark.parametrize("direction", ["bwd_weight", "fwd"])
def test_a_batch_of_any_size(direction):
    """Memory is for the images of the call."""
    problem = replace(PROBLEM, dynamic_batch=True, direction=direction, elementwise="add")
    kernel = cc.load(cc.compile(problem, "cpu"))
    for n in (1, 2, 5):
        called = problem.with_batch(n)
        first, second = (integers(shape) for shape in called.operand_shapes)
        out = old = integers(called.result_shape, 1)
        plain = cc.load(cc.compile(replace(called, dynamic_batch=False, result_operand=False)))
        want = plain(first, second, old.clone())
        assert kernel(first, second, old, out=out) is out
        assert torch.equal(out, want)
    if direction == "fwd":
        for n in (4, 6):
            other = torch.zeros(problem.with_batch(n).result_shape)
            with pytest.raises(InvalidArray, match=r"shape; give \(5, 9, 8, 1, 16\)"):
                kernel(first, second, old, out=other)
