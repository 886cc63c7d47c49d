# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands that are slices of larger tensors: the bits of whole ones; nothing beside is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import InvalidArray
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.slices import whole
from conv_compiler.runtime import host_memory
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.verify import verify
from tests.turns import in_turn

SIZES = {"n": 2, "g": 2, "k": 12, "c": 8, "image": (9, 10), "filter": (3, 3), "pad_low": 1}
# What is added to the axes of W and of channels.
PITCHES = {"rows": (3, 0), "channels": (0, 4), "both": (1, 6)}


def sliced(direction, pitch, *, dtype="f16", layout="NHWGC_GKYXC_NHWGK"):
    """A problem whose images are slices, and its weight, where that is an operand."""
    plain = ConvProblem(**SIZES, direction=direction, dtype=dtype, layout=layout)
    given = {}
    row, column = PITCHES[pitch]
    for name in plain.tensors[:-1]:
        letters = getattr(plain.layout_row, name).replace("*", "YX")
        added = {"X": row, "K" if name == "output" else "C": column}
        shape = getattr(plain, f"{name}_shape")
        within = tuple(
            size + added.get(letter, 0) for size, letter in zip(shape, letters, strict=True)
        )
        if within != shape:
            given[f"{name}_within"] = within
    return ConvProblem(**SIZES, direction=direction, dtype=dtype, layout=layout, **given)


def views_of(problem, operands, first=1):
    """Each operand as a slice of an array that is larger by `first` in front, and beside it."""
    found = []
    for name, array in zip(problem.tensors, operands, strict=False):
        if within := getattr(problem, f"{name}_within"):
            room = np.full(within, np.nan, array.dtype)
            at = [min(first, most - size) for most, size in zip(within, array.shape, strict=True)]
            view = room[tuple(slice(a, a + s) for a, s in zip(at, array.shape, strict=True))]
            view[...] = array
            array = view
        found.append(array)
    return found


@pytest.mark.parametrize(
    ("direction", "target", "pitch", "layout"),
    in_turn(
        ["bwd_weight", "bwd_data", "fwd", "bwd_bias"],
        ["cpu", "gfx942"],
        list(PITCHES),
        ["NHWGC_GKYXC_NHWGK", "NGCHW_GKCYX_NGKHW"],
    ),
)
def test_verified_with_nan_beside(direction, target, pitch, layout):
    problem = sliced(direction, pitch, layout=layout)
    verify(problem, target, data="random", budget=0.0).require()


@pytest.mark.parametrize(
    ("direction", "target", "pitch"),
    in_turn(["bwd_weight", "bwd_data", "fwd"], ["cpu", "gfx942", "gfx1100"], list(PITCHES)),
)
def test_batches_of_any_size(direction, target, pitch):
    """Chunks of slices: in place where they are whole, else gathered with zeros behind them."""
    problem = replace(sliced(direction, pitch), dynamic_batch=True)
    for data in ("integers", "random"):
        verify(problem, target, data=data, budget=0.0).require()


def test_chunks_that_start_aligned_are_read_where_they_lie():
    problem = replace(sliced("fwd", "channels", dtype="f32"), dynamic_batch=True)
    kernel = load(compile(problem.with_batch(32)))
    for n in (0, 31, 32, 65):
        called = problem.called_with(n)
        operands = inputs(called, "random")
        want = load(compile(whole(called)))(*operands)
        got = kernel(*views_of(called, operands))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("pitch", PITCHES)
@pytest.mark.parametrize("target", ["gfx1100", "gfx1201", "gfx90a", "gfx950"])
@pytest.mark.parametrize("direction", ["bwd_weight", "bwd_data", "fwd"])
def test_other_chips(direction, target, pitch):
    verify(sliced(direction, pitch), target, budget=0.0).require()


@pytest.mark.parametrize("direction", ["bwd_weight", "bwd_data", "fwd"])
@pytest.mark.parametrize("pitch", ["rows", "channels"])
def test_views_of_numpy_are_read_where_they_lie(direction, pitch, monkeypatch):
    problem = sliced(direction, pitch, dtype="f32")
    kernel, operands = load(compile(problem)), inputs(problem, "random")
    want = load(compile(whole(problem)))(*operands)
    seen = []

    def placed(array, *others):
        seen.append(array.ctypes.data)
        assert host_memory.lies_as_kernels_want(array, others[-1])
        return inner(array, *others)

    inner = host_memory.placed
    monkeypatch.setattr("conv_compiler.runtime.exchange.placed", placed)
    views = views_of(problem, operands)
    assert kernel(*views).tobytes() == want.tobytes()
    assert seen == [view.ctypes.data for view in views]  # no byte was moved


def test_rows_are_read_by_the_kernel_of_whole_images():
    """Of rows with a pitch no copy is made: the module has as many kernels."""
    problem = sliced("bwd_weight", "rows")
    for strategy in ("cpu_packed", "cpu_lin", "cpu_loops"):
        kernels = compile(problem, strategy=strategy).kernels
        assert len(kernels) == len(compile(whole(problem), strategy=strategy).kernels)


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_larger_arrays_and_slices_at_odd_addresses(target):
    problem = sliced("fwd", "channels")
    kernel, operands = load(compile(problem, target)), inputs(problem, "random")
    want = load(compile(whole(problem), target))(*operands)
    assert kernel(*views_of(problem, operands, first=1)).tobytes() == want.tobytes()
    rooms = [view.base for view in views_of(problem, operands, first=0)]
    assert kernel(*rooms).tobytes() == want.tobytes()
    assert kernel(*map(kernel.put, rooms)) is not None


def test_other_arrays_are_refused():
    problem = sliced("bwd_weight", "rows")
    kernel, operands = load(compile(problem)), inputs(problem)
    with pytest.raises(
        InvalidArray,
        match=r"input \(2, 9, 10, 2, 8\): lies otherwise than as a slice of \(2, 9, 13, 2, 8\); ",
    ):
        kernel(*operands)
    views = views_of(problem, operands)
    with pytest.raises(InvalidArray, match=r"input \(2, 9, 9, 2, 8\): not the kernel's shape"):
        kernel(views[0][:, :, 1:], views[1])
    for array in (views[0], views[0].base):
        with pytest.raises(InvalidArray, match=r"not the kernel's type; give float16"):
            kernel(array.view(np.int16), views[1])
