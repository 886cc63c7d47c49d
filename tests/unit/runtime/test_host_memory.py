"""Calls on the CPU move no operand and no result: kernels use memory where it lies."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conv_compiler as cc
from conv_compiler.problem.directions import STATED_ALIGNMENT
from conv_compiler.runtime import host_memory
from conv_compiler.verification.inputs import inputs

DIRECTIONS = ("bwd_weight", "bwd_data", "fwd")


def moved_to(array, offset):
    """A copy that begins `offset` bytes behind a multiple of 64."""
    room = np.empty(array.nbytes + 128, np.uint8)
    begin = -room.ctypes.data % 64 + offset
    made = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


class Seen:
    """A kernel, and the addresses that the runtime was given in its last call."""

    def __init__(self, kernel):
        self.kernel, self.addresses, self.result = kernel, [], None
        self.inner = kernel._invoke
        kernel._invoke = self

    def __call__(self, *views):
        self.addresses = [address(view) for view in views]
        made = self.inner(*views)
        (self.result,) = map(address, made)
        return made

    def close(self):
        self.kernel._invoke = self.inner


def address(view):
    count = view.byte_length if isinstance(view.byte_length, int) else view.byte_length()
    raw = host_memory.HalBufferView(view.get_buffer(), (count,), host_memory._BYTE)
    return raw.map().asarray((count,), np.dtype(np.uint8)).ctypes.data


@pytest.fixture(params=DIRECTIONS)
def seen(request):
    problem = problem_of(request.param, "f32")
    watched = Seen(cc.load(cc.compile(problem)))
    yield problem, watched
    watched.close()


def problem_of(direction, dtype):
    return cc.ConvProblem(
        n=2,
        k=16,
        c=16,
        image=(9, 8),
        filter=(3, 3),
        pad_low=1,
        dtype=dtype,
        layout="NHWC",
        direction=direction,
    )


@pytest.mark.parametrize("offset", [0, 4, 16, 60])
def test_no_byte_of_numpy_arrays_is_moved(seen, offset):
    problem, watched = seen
    operands = [moved_to(array, offset) for array in inputs(problem, "integers", 0)]
    found = watched.kernel(*operands)
    assert watched.addresses == [array.ctypes.data for array in operands]
    assert watched.result == found.ctypes.data
    assert found.flags.writeable


def test_no_byte_of_tensors_is_moved(seen):
    torch = pytest.importorskip("torch")
    problem, watched = seen
    tensors = [torch.from_numpy(array.copy()) for array in inputs(problem, "integers", 0)]
    found = watched.kernel(*tensors)
    assert watched.addresses == [tensor.data_ptr() for tensor in tensors]
    assert watched.result == found.data_ptr()


def test_the_device_allocates_nothing_for_operands():
    problem = problem_of("bwd_weight", "f32")
    kernel = cc.load(cc.compile(problem, split_k=1))
    operands = inputs(problem, "integers", 0)
    allocator = kernel._config.device.allocator
    gc.collect()
    before = allocator.statistics["device_bytes_allocated"]
    found = kernel(*operands)
    added = allocator.statistics["device_bytes_allocated"] - before
    assert added <= found.nbytes


@settings(max_examples=25, deadline=None)
@given(
    direction=st.sampled_from(DIRECTIONS),
    dtype=st.sampled_from(["f32", "bf16", "f16", "i8", "f64"]),
    offsets=st.tuples(*[st.integers(0, 63)] * 2),
    writeable=st.booleans(),
)
def test_memory_that_begins_anywhere_gives_the_same_bits(direction, dtype, offsets, writeable):
    problem = problem_of(direction, dtype)
    kernel = cc.load(cc.compile(problem))
    operands = inputs(problem, "integers", 0)
    apart = []
    for array, offset in zip(operands, offsets, strict=True):
        apart.append(moved_to(array, offset - offset % array.itemsize))
        apart[-1].flags.writeable = writeable
    assert kernel(*apart).tobytes() == kernel(*operands).tobytes()


def test_what_a_module_does_not_promise_is_copied():
    problem = problem_of("bwd_weight", "bf16")
    watched = Seen(cc.load(cc.compile(problem)))
    operands = inputs(problem, "integers", 0)
    apart = [moved_to(array, 2) for array in operands]
    assert apart[0].dtype == ml_dtypes.bfloat16
    try:
        found = watched.kernel(*apart)
        assert not {array.ctypes.data for array in apart} & set(watched.addresses)
    finally:
        watched.close()
    assert np.array_equal(found, watched.kernel(*operands))


def test_a_module_states_what_it_promises():
    kernel = cc.load(cc.compile(problem_of("bwd_weight", "f32")))
    assert kernel._alignment == 4
    assert STATED_ALIGNMENT.encode() in kernel.path.read_bytes()


def test_a_result_keeps_its_memory():
    problem = problem_of("fwd", "f32")
    kernel = cc.load(cc.compile(problem))
    operands = inputs(problem, "integers", 0)
    want = kernel(*operands).copy()
    kept = [kernel(*operands).reshape(-1)[3:] for _ in range(20)]
    for _ in range(20):
        kernel(*(0 * array for array in operands))
    gc.collect()
    assert all(np.array_equal(one, want.reshape(-1)[3:]) for one in kept)
    kept[0][:] = 1
    assert np.array_equal(kept[1], want.reshape(-1)[3:])
