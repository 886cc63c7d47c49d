"""Elements of 4 and 6 bits in bytes and back: which bits are whose, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import conv_compiler as cc
from conv_compiler.errors import InvalidArray
from conv_compiler.problem.dtypes import DTYPES

PACKED = [row.name for row in DTYPES.values() if row.is_packed]


def codes_of(dtype: str) -> np.ndarray:
    """All codes of a type, one a byte."""
    row = DTYPES[dtype]
    return np.arange(2**row.bits, dtype=np.uint8).view(row.to_numpy())


@pytest.mark.parametrize("dtype", PACKED)
def test_all_codes_come_back(dtype):
    codes = codes_of(dtype)
    packed = cc.pack(codes)
    assert (packed.dtype, packed.nbytes) == (np.uint8, len(codes) * DTYPES[dtype].bits // 8)
    np.testing.assert_array_equal(cc.unpack(packed, dtype).view(np.uint8), codes.view(np.uint8))


@pytest.mark.parametrize("dtype", PACKED)
def test_elements_lie_in_the_bits_of_a_little_endian_number(dtype):
    row = DTYPES[dtype]
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2**row.bits, (3, 5, 24), dtype=np.uint8)
    packed = cc.pack(codes.view(row.to_numpy()))
    assert packed.shape == (3, 5, 24 * row.bits // 8)
    for line, bytes_ in zip(codes.reshape(15, 24), packed.reshape(15, -1), strict=True):
        number = sum(int(code) << row.bits * at for at, code in enumerate(line))
        assert int.from_bytes(bytes_.tobytes(), "little") == number
    np.testing.assert_array_equal(cc.unpack(packed, row.to_numpy()).view(np.uint8), codes)


def test_the_first_of_two_is_the_low_half():
    """As in PyTorch's float4_e2m1fn_x2."""
    assert cc.pack(np.array([1, 2, 3, 12], np.uint8).view(ml_dtypes.float4_e2m1fn)).tolist() == [
        *(0x21, 0xC3)
    ]


def test_views_are_packed_too():
    codes = codes_of("f6E2M3FN").reshape(8, 8).T
    packed = cc.pack(codes[:, ::2])
    np.testing.assert_array_equal(packed, cc.pack(codes[:, ::2].copy()))
    np.testing.assert_array_equal(
        cc.unpack(packed[::2], "f6E2M3FN").view(np.uint8), codes[::2, ::2].view(np.uint8)
    )
    assert cc.pack(codes[:0]).shape == (0, 6)


def test_what_is_refused():
    codes = codes_of("f4E2M1FN")
    with pytest.raises(InvalidArray, match=r"array \(15,\): 2 elements of f4E2M1FN are 1 byte; ma"):
        cc.pack(codes[1:])
    with pytest.raises(InvalidArray, match="4 elements of f6E3M2FN are 3 bytes; make the last ax"):
        cc.pack(codes_of("f6E3M2FN")[:6])
    with pytest.raises(InvalidArray, match=r"array of float32: not packed; give f6E2M3FN|f4E2M1FN"):
        cc.pack(np.ones(4, np.float32))
    with pytest.raises(InvalidArray, match="array of int8: not packed elements; give uint8"):
        cc.unpack(np.ones(4, np.int8), "f4E2M1FN")
    with pytest.raises(InvalidArray, match="elements of f16: not packed; give"):
        cc.unpack(np.ones(4, np.uint8), "f16")
    with pytest.raises(InvalidArray, match="make the last axis a multiple of 3"):
        cc.unpack(np.ones(4, np.uint8), "f6E2M3FN")
    with pytest.raises(InvalidArray, match=r"array \(\): .*make the last axis"):
        cc.pack(codes[0:1].reshape(()))


@pytest.mark.parametrize("dtype", PACKED)
def test_sizes_of_types(dtype):
    row = DTYPES[dtype]
    assert row.bytes_of(32) == 4 * row.bits
    assert row.packed == {4: (2, 1), 6: (4, 3)}[row.bits]
    assert DTYPES["f16"].bytes_of(32) == 32 * DTYPES["f16"].bytes
    with pytest.raises(ValueError, match=f"{dtype}: {row.bits} bits are no whole bytes"):
        _ = row.bytes
    assert row.largest == float(codes_of(dtype).astype(np.float64).max())
