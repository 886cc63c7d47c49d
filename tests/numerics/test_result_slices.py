# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results that are slices of the caller's memory: exact, and nothing beside them changes."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import InvalidArray
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.slices import whole
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.verify import verify
from tests.numerics.test_slices import PITCHES, SIZES
from tests.turns import in_turn

DIRECTIONS = ("bwd_weight", "bwd_data", "fwd")
# What is larger, the layout, and groups.
KINDS = (
    ("rows", "NHWGC_GKYXC_NHWGK", 2),
    ("channels", "NHWC", 1),
    ("both", "NGCHW_GKCYX_NGKHW", 2),
    ("channels", "NCHW", 2),
    ("rows", "NHWC", 1),
)
CPU_KINDS = ("cpu_packed", "cpu_lin", "cpu_loops", "cpu_direct")


def into(direction, pitch, **fields):
    """A problem whose result is a slice: of longer rows, of more channels, or of both."""
    problem = ConvProblem(**{**SIZES, **fields}, direction=direction, result_operand=True)
    name, (row, column) = problem.tensors[-1], PITCHES[pitch]
    letters = getattr(problem.layout_row, name).replace("*", "YX")
    added = {"X": row, "K" if name == "output" else "C": column}
    within = tuple(
        size + added.get(letter, 0)
        for size, letter in zip(problem.result_shape, letters, strict=True)
    )
    return replace(problem, **{f"{name}_within": within})


def within(problem):
    return getattr(problem, f"{problem.tensors[-1]}_within")


@pytest.mark.parametrize(
    ("direction", "target", "kind"), in_turn(DIRECTIONS, ["cpu", "gfx942", "gfx1100"], KINDS)
)
def test_exact_and_nothing_beside_changes(direction, target, kind):
    pitch, layout, g = kind
    problem = into(direction, pitch, layout=layout, g=g)
    for data in ("integers", "random"):
        report = verify(problem, target, data=data, budget=0.0).require()
    assert report.artifact.strategy == compile(whole(problem), target).strategy


@pytest.mark.parametrize(
    ("direction", "target", "pitch"),
    in_turn(DIRECTIONS, ["cpu", "gfx942", "gfx1100"], list(PITCHES)),
)
def test_batches_of_any_size(direction, target, pitch):
    """With d, which lies as the result does."""
    problem = into(direction, pitch, elementwise="bilinear(0.5,2)", dynamic_batch=True)
    for data in ("integers", "random"):
        verify(problem, target, data=data, budget=0.0).require()


@pytest.mark.parametrize(
    ("kind", "direction", "pitch"), in_turn(CPU_KINDS, DIRECTIONS[1:], PITCHES)
)
def test_each_kind_of_the_cpu(kind, direction, pitch):
    problem = into(direction, pitch, g=1, dtype="f32")
    verify(problem, strategy=kind, budget=0.0).require()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx90a", "gfx950", "gfx1201"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_other_chips(direction, target):
    for pitch in PITCHES:
        verify(into(direction, pitch), target, budget=0.0).require()


@pytest.mark.parametrize(
    ("target", "direction", "pitch", "fields"),
    [
        ("cpu", "fwd", "channels", {"g": 1}),
        ("cpu", "bwd_data", "rows", {"g": 2}),
        ("cpu", "bwd_weight", "channels", {"g": 2}),
        ("gfx942", "fwd", "channels", {"g": 2}),
        ("gfx942", "bwd_data", "rows", {"g": 2}),
        ("gfx942", "bwd_weight", "both", {"g": 2}),
        ("gfx1100", "bwd_weight", "both", {"g": 2}),
    ],
)
def test_the_last_kernel_stores_the_slice(target, direction, pitch, fields):
    """There is no other one that copies it."""
    problem = into(direction, pitch, **fields)
    kernels = [compile(one, target).kernels for one in (problem, whole(problem))]
    assert len(kernels[0]) == len(kernels[1])


@pytest.mark.parametrize("pitch", PITCHES)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_views_of_numpy(direction, pitch):
    problem = into(direction, pitch, dtype="f32")
    kernel, operands = load(compile(problem)), inputs(problem)
    want = load(compile(whole(problem)))(*operands)
    room = np.full(within(problem), 7, np.float32)
    at = [most - size for most, size in zip(room.shape, want.shape, strict=True)]
    view = room[tuple(slice(a, a + s) for a, s in zip(at, want.shape, strict=True))]
    assert kernel(*operands, out=view) is view
    assert np.array_equal(view, want)
    assert (room == 7).sum() >= room.size - want.size
    view[...] = 7
    assert (room == 7).all()


def test_adds_to_the_slice():
    problem = into("fwd", "channels", dtype="f32", elementwise="add")
    kernel, (image, weight, old) = load(compile(problem)), inputs(problem)
    room = np.full(problem.output_within, 7, np.float32)
    view = room[..., 2 : 2 + problem.k]
    view[...] = old
    kernel(image, weight, view, out=view)
    plain = replace(whole(problem), elementwise="", result_operand=False)
    assert np.array_equal(view, old + load(compile(plain))(image, weight))
    assert (room[..., :2] == 7).all()
    assert (room[..., 2 + problem.k :] == 7).all()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_nothing_behind_the_last_element_is_touched(direction):
    """The slice may end where the process has no more memory."""
    problem = into(direction, "channels", dtype="f32")
    kernel, operands = load(compile(problem)), inputs(problem)
    shape, page = within(problem), mmap.PAGESIZE
    count = int(np.prod(shape))
    pages = -(-4 * count // page) + 1
    memory = mmap.mmap(-1, pages * page)
    raw = np.frombuffer(memory, np.uint8)
    end = (pages - 1) * page
    libc = ctypes.CDLL(None, use_errno=True)
    start = ctypes.c_void_p(raw.ctypes.data + end)
    assert libc.mprotect(start, ctypes.c_size_t(page), 0) == 0
    room = raw[end - 4 * count : end].view(np.float32).reshape(shape)
    at = zip(shape, problem.result_shape, strict=True)
    view = room[tuple(slice(most - size, most) for most, size in at)]
    kernel(*operands, out=view)
    assert np.array_equal(view, load(compile(whole(problem)))(*operands))


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_larger_arrays_and_none(target):
    problem = into("fwd", "both")
    kernel, operands = load(compile(problem, target)), inputs(problem)
    want = load(compile(whole(problem), target))(*operands)
    corner = tuple(map(slice, want.shape))
    room = kernel.put(np.full(problem.output_within, 7, np.float16))
    got = kernel(*map(kernel.put, operands), out=room)
    assert got is room
    assert np.array_equal(got.to_host()[corner], want)
    alone = kernel(*operands)
    assert np.array_equal(alone[corner], want)
    alone[corner] = 0
    assert not alone.any()


def test_other_memory_is_refused():
    problem = into("fwd", "channels")
    kernel, operands = load(compile(problem)), inputs(problem)
    for out, why in (
        (np.zeros(problem.output_shape, np.float16), "out (2, 9, 10, 2, 12): lies otherwise than"),
        (np.zeros(problem.output_shape, np.float32), "out float32: not the kernel's type"),
        (np.zeros((3, 2), np.float16), "out (3, 2): not the kernel's shape"),
        (
            np.zeros(problem.output_within, np.float16)[..., 1:13],
            "out: not dense, or not aligned to 4 bytes",
        ),
    ):
        with pytest.raises(InvalidArray) as caught:
            kernel(*operands, out=out)
        assert why in str(caught.value)


def test_a_kernel_that_writes_beside_is_found(monkeypatch):
    problem = into("fwd", "channels")
    from conv_compiler.verification import calls

    def spoiled(given):
        (array,) = inner(given)
        array[..., -1] = 0
        return [array]

    inner = calls.arrays
    monkeypatch.setattr(calls, "arrays", spoiled)
    report = verify(problem, budget=0.0)
    assert not report.passed
    assert report.comparison.worst == "360 elements beside the result have changed"
