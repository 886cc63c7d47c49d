"""Views of memory that another library lends: where they lie, and how long they are kept."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest

from conv_compiler import ConvProblem, compile
from conv_compiler.errors import InvalidArray
from conv_compiler.runtime import lent_memory
from conv_compiler.runtime.arrays import Tensor
from conv_compiler.runtime.dlpack import Memory
from conv_compiler.runtime.dlpack_capsule import ALIGNMENT, viewed
from conv_compiler.runtime.kernel import load
from conv_compiler.runtime.lent_memory import LentMemory


class Host:
    """A device whose views are numpy arrays of the same memory."""

    def __init__(self):
        self.taken = 0

    def from_dlpack_capsule(self, capsule):
        self.taken += 1
        return viewed("x", capsule)


def aligned(shape, dtype):
    """An array that begins at a multiple of the alignment."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    first = -memory.ctypes.data % ALIGNMENT
    return memory[first : first + size].view(dtype).reshape(shape)


@pytest.fixture
def lent():
    return LentMemory(Host(), (int(Memory.HOST), 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int8, ml_dtypes.bfloat16])
def test_a_view_is_of_the_memory_itself(lent, dtype):
    array = aligned((3, 4, 5), dtype)
    tensor = Tensor(name="input", shape=array.shape, dtype=np.dtype(dtype))
    view = lent.view(tensor, array.ctypes.data)
    array[:] = np.arange(60).reshape(array.shape).astype(dtype)
    gc.collect()
    assert view.dtype == array.dtype
    assert view.shape == array.shape
    assert view.tobytes() == array.tobytes()


def test_an_address_is_taken_once_for_each_tensor(lent):
    array = aligned((2, 8), np.float32)
    tensors = [Tensor(name=name, shape=(2, 8), dtype=array.dtype) for name in ("input", "output")]
    for _ in range(3):
        views = [lent.view(one, array.ctypes.data) for one in tensors]
    assert lent._device.taken == 2
    assert views[0] is not views[1]


def test_the_view_that_was_not_used_for_the_longest_time_goes(lent, monkeypatch):
    monkeypatch.setattr(lent_memory, "MOST", 2)
    array = aligned((4, 16), np.float32)
    tensor = Tensor(name="input", shape=(16,), dtype=array.dtype)
    first, second, third = (row.ctypes.data for row in array[:3])
    for address in (first, second, first, third, first, second):
        lent.view(tensor, address)
    assert lent._device.taken == 4  # the second one twice


def test_an_address_that_is_not_aligned_is_refused(lent):
    array = aligned((32,), np.float32)
    tensor = Tensor(name="input", shape=(16,), dtype=array.dtype)
    with pytest.raises(InvalidArray, match=r"input at 0x.*: not aligned to 64 bytes; copy it"):
        lent.view(tensor, array.ctypes.data + 4)


@pytest.mark.parametrize(
    "changes",
    [{}, {"result_operand": True}, {"result_operand": True, "dynamic_batch": True}],
    ids=str,
)
def test_kernels_that_take_no_addresses_say_so(changes):
    """On the CPU none does: arrays of numpy are read where they lie."""
    problem = ConvProblem(n=2, k=8, c=8, image=(5, 4), filter=(3, 2), **changes)
    kernel = load(compile(problem, "cpu"), "cpu")
    with pytest.raises(InvalidArray, match="takes no addresses; call it with arrays"):
        kernel.run_at(64, 128, 192)


@pytest.mark.parametrize("addresses", [(64, 128), (64, 128, 192, 256)])
def test_another_number_of_addresses_is_refused(addresses):
    problem = ConvProblem(n=2, k=8, c=8, image=(5, 4), filter=(3, 2), result_operand=True)
    kernel = load(compile(problem, "cpu"), "cpu")
    kernel._on_host = False  # as on a card
    with pytest.raises(InvalidArray, match="one an array is wanted; give input, d_output, d_weigh"):
        kernel.run_at(*addresses)
