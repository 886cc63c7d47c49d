"""Arguments of kernels as words, and the numbers that kernels get of them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.binary.code_note import ArgumentNote
from conv_compiler.errors import InvalidArray
from conv_compiler.vgpu.arguments import value_bytes
from conv_compiler.vgpu_tool.words import TYPES, read, type_of


def test_arrays(tmp_path):
    x = np.arange(6, dtype=np.float16).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    one = read(f"in:f16:{tmp_path}/x.npy")
    assert np.array_equal(one.value, x)
    assert not one.is_written
    both = read(f"inout:f16:{tmp_path}/x.npy:{tmp_path}/y.npy")
    assert (both.is_written, both.is_fresh, both.file) == (True, False, tmp_path / "y.npy")
    fresh = read("out:bf16:4x5")
    assert fresh.value.shape == (4, 5)
    assert fresh.value.dtype == ml_dtypes.bfloat16
    assert fresh.is_fresh
    assert read("null").value is None


def test_types_that_numpy_does_not_know_are_read(tmp_path):
    x = np.array([1.5, -2, 0.25], ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", x)
    assert np.array_equal(read(f"in:bf16:{tmp_path}/x.npy").value, x)


@pytest.mark.parametrize("name", TYPES)
def test_every_type_has_its_bits(name):
    bits = next(int(part) for part in ("64", "32", "16", "8") if part in name)
    assert type_of("", name).itemsize == bits // 8


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("x", "argument x: not in one of the forms; write in:TYPE:FILE.npy, inout"),
        ("in:f16:a.npy:b.npy", "not in one of the forms"),
        ("out:f32", "not in one of the forms"),
        ("out:f23:4", "type f23; did you mean f32"),
        ("out:f32:4x", "shape 4x; write sizes as 64x64"),
        ("out:f32:0", "shape 0; write sizes"),
        ("i32:1.5", "1.5 is no i32; write a number"),
        ("u8:-1", "-1 is no u8"),
        ("i8:300", "300 is no i8"),
        ("in:f32:none.npy", "none.npy: No such file or directory; give a file of numpy.save"),
    ],
)
def test_words_that_are_refused(word, message):
    with pytest.raises(InvalidArray, match=message):
        read(word)


def test_a_file_of_another_type_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(InvalidArray, match="holds float64, not float32; convert it"):
        read(f"in:f32:{tmp_path}/x.npy")
    (tmp_path / "y.npy").write_text("no array")
    with pytest.raises(InvalidArray, match=r"y.npy: is no array in .npy"):
        read(f"in:f32:{tmp_path}/y.npy")


def note(size):
    return ArgumentNote(offset=0, size=size, value_kind="by_value", name="n")


@pytest.mark.parametrize(
    ("size", "value", "want"),
    [
        (4, 7, np.int32(7)),
        (4, 2**32 - 1, np.uint32(2**32 - 1)),
        (8, -3, np.int64(-3)),
        (4, 0.5, np.float32(0.5)),
        (8, 0.1, np.float64(0.1)),
        (2, 1.5, np.float16(1.5)),
        (1, True, np.int8(1)),
        (2, ml_dtypes.bfloat16(2), ml_dtypes.bfloat16(2)),
    ],
)
def test_numbers_take_the_argument_s_size(size, value, want):
    assert value_bytes(0, note(size), value) == want.tobytes()


def test_bytes_are_passed_as_they_are():
    assert value_bytes(0, note(3), b"abc") == b"abc"


@pytest.mark.parametrize(
    ("size", "value", "message"),
    [
        (4, 2**32, "has not these bytes; give a number of 4 bytes"),
        (1, 0.5, "has not these bytes"),
        (4, np.float64(1), "has 8 bytes; give a number of 4 bytes"),
        (4, b"abc", "has 3 bytes"),
        (4, "x", r"argument 0 n \(by_value, 4 bytes\) str: not a number"),
    ],
)
def test_numbers_that_do_not_fit(size, value, message):
    with pytest.raises(InvalidArray, match=message):
        value_bytes(0, note(size), value)
