"""Arrays of other libraries: read where they lie, and results given back as their kind."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import conv_compiler as cc
from conv_compiler.errors import InvalidArray
from conv_compiler.runtime.dlpack import Memory, imported

PROBLEM = cc.ConvProblem(n=2, k=4, c=3, image=(5, 6), filter=(2, 3), dtype="f32", layout="NHWC")


class Tensor:
    """An array of a library that has DLPack and nothing of numpy's."""

    def __init__(self, data, where=(Memory.HOST, 0)):
        self.data, self.where, self.exports = data, where, 0

    def __dlpack_device__(self):
        return self.where

    def __dlpack__(self, **asked):
        self.exports += 1
        return self.data.__dlpack__(**asked)

    def __array_namespace__(self):
        return types.SimpleNamespace(
            from_dlpack=lambda given: Tensor(np.from_dlpack(given)),
        )


def aligned(values, offset=0):
    """A float32 array that begins `offset` bytes behind a multiple of 64."""
    room = np.empty(values.nbytes + 128, np.uint8)
    begin = -room.ctypes.data % 64 + offset
    made = room[begin : begin + values.nbytes].view(np.float32).reshape(values.shape)
    made[...] = values
    return made


@pytest.fixture(scope="module")
def operands():
    rng = np.random.default_rng(0)
    shapes = PROBLEM.input_shape, PROBLEM.output_shape
    return [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes]


@pytest.fixture(scope="module")
def kernel():
    return cc.load(cc.compile(PROBLEM))


def test_result_is_of_the_operands_library(kernel, operands):
    found = kernel(*(Tensor(aligned(one)) for one in operands))
    assert type(found) is Tensor
    assert np.array_equal(found.data, kernel(*operands))


def test_one_foreign_operand_is_enough(kernel, operands):
    for number in (0, 1):
        mixed = list(operands)
        mixed[number] = Tensor(aligned(operands[number]))
        assert np.array_equal(kernel(*mixed).data, kernel(*operands))
    mixed[0] = kernel.put(operands[0])
    assert np.array_equal(kernel(*mixed).data, kernel(*operands))


@pytest.mark.parametrize("shift", [0, 4, 16, 60])
def test_what_is_dense_is_not_copied(kernel, operands, shift):
    array = Tensor(aligned(operands[0], shift))
    taken = imported("input", array, kernel._config.device, Memory.HOST, 0)
    assert taken.ctypes.data == array.data.ctypes.data
    found = kernel(*(Tensor(aligned(one, shift)) for one in operands))
    assert np.array_equal(found.data, kernel(*operands))


def test_axes_in_reverse_and_of_one_element(kernel, operands):
    flipped = [one[:, ::-1].copy()[:, ::-1] for one in operands]
    assert np.array_equal(kernel(*map(Tensor, flipped)).data, kernel(*operands))
    one = PROBLEM.with_batch(1)
    operands = [array[:1] for array in operands]
    apart = [np.repeat(array, 2, axis=0)[::2] for array in operands]
    found = cc.run(cc.compile(one), *map(Tensor, apart))
    assert np.array_equal(found.data, cc.run(cc.compile(one), *operands))


def test_what_is_not_dense_is_copied(kernel, operands):
    wide = [np.repeat(one, 2, axis=1)[:, ::2] for one in operands]
    assert np.array_equal(kernel(*map(Tensor, wide)).data, kernel(*operands))


def test_a_virtual_device_takes_them_too(operands):
    kernel = cc.load(cc.compile(PROBLEM, target="gfx942"), "vgpu")
    found = kernel(*(Tensor(aligned(one)) for one in operands))
    assert np.array_equal(found.data, kernel(*operands))


def test_arrays_outlive_the_call(kernel, operands):
    found = kernel(*(Tensor(aligned(one)) for one in operands))
    expected = found.data.copy()
    kernel(*(Tensor(aligned(2 * one)) for one in operands))
    assert np.array_equal(found.data, expected)


def test_no_images():
    problem = cc.ConvProblem(n=0, k=4, c=3, image=(5, 6), filter=(2, 3), dtype="f32", layout="NHWC")
    shapes = problem.input_shape, problem.output_shape
    found = cc.run(cc.compile(problem), *(Tensor(np.zeros(s, np.float32)) for s in shapes))
    assert found.data.shape == problem.weight_shape
    assert not found.data.any()


def test_refusals(kernel, operands):
    image, gradient = operands
    with pytest.raises(InvalidArray, match="input: an array of another device than the kernel's"):
        kernel(Tensor(image, (Memory.CUDA, 0)), gradient)
    with pytest.raises(InvalidArray, match=r"d_output \(2, 5, 6, 3\): not the kernel's shape"):
        kernel(Tensor(image), Tensor(image))
    with pytest.raises(InvalidArray, match="input float64: not the kernel's type"):
        kernel(Tensor(image.astype(float)), Tensor(gradient))
    with pytest.raises(InvalidArray, match="input: its library does not hand it over"):
        kernel(Tensor(image.astype("U1")), Tensor(gradient))
    with pytest.raises(InvalidArray, match="input list: not an array of numpy"):
        kernel(image.tolist(), gradient)


def test_a_library_without_from_dlpack_is_named(kernel, operands):
    class Own(Tensor):
        __array_namespace__ = property()

    with pytest.raises(InvalidArray, match="array Own: its library has no from_dlpack"):
        kernel(Own(aligned(operands[0])), operands[1])


def test_a_library_is_found_by_its_top_module(kernel, operands, monkeypatch):
    class Kind:
        pass

    Kind.__module__ = "some_library.core"
    for name in ("__dlpack__", "__dlpack_device__"):
        setattr(Kind, name, getattr(Tensor, name))
    Kind.__init__ = Tensor.__init__
    made = types.SimpleNamespace(from_dlpack=lambda given: ("made", np.from_dlpack(given)))
    monkeypatch.setitem(sys.modules, "some_library", made)
    word, found = kernel(Kind(aligned(operands[0])), operands[1])
    assert word == "made"
    assert np.array_equal(found, kernel(*operands))
