"""Which number types a problem may use: one row each, with its accumulator and its precision."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from conv_compiler.errors import UnsupportedProblem


@dataclass(frozen=True, kw_only=True)
class DType:
    """One number type.

    `mantissa_bits` counts the explicit fraction bits (0 for integers); the unit roundoff of a
    float row is 2**-(mantissa_bits + 1). `accumulator` names the row sums are kept in.
    """

    name: str
    mlir: str
    numpy: str
    bits: int
    mantissa_bits: int
    accumulator: str

    @property
    def is_integer(self) -> bool:
        """Whether values are integers (compared exactly)."""
        return self.mantissa_bits == 0

    @property
    def is_f8(self) -> bool:
        """Whether values are 8-bit floats."""
        return self.bits == 8 and not self.is_integer

    @property
    def bytes(self) -> int:
        """Storage size of one element in bytes."""
        return self.bits // 8

    def to_numpy(self) -> Any:
        """The numpy dtype (ml_dtypes for the types numpy lacks)."""
        import numpy

        if self.numpy.startswith("ml_dtypes."):
            import ml_dtypes

            return numpy.dtype(getattr(ml_dtypes, self.numpy.removeprefix("ml_dtypes.")))
        return numpy.dtype(self.numpy)


DTYPES = MappingProxyType(
    {
        row.name: row
        for row in (
            DType(
                name="f32",
                mlir="f32",
                numpy="float32",
                bits=32,
                mantissa_bits=23,
                accumulator="f32",
            ),
            DType(
                name="f16",
                mlir="f16",
                numpy="float16",
                bits=16,
                mantissa_bits=10,
                accumulator="f32",
            ),
            DType(
                name="bf16",
                mlir="bf16",
                numpy="ml_dtypes.bfloat16",
                bits=16,
                mantissa_bits=7,
                accumulator="f32",
            ),
            # OCP's (OFP8 revision 1.0); FNUZ, of gfx942: one NaN, no infinity, no negative zero.
            *(
                DType(
                    name=name,
                    mlir=name,
                    numpy=f"ml_dtypes.float8_{name[2:].lower()}",
                    bits=8,
                    mantissa_bits=mantissa,
                    accumulator="f32",
                )
                for name, mantissa in (
                    ("f8E4M3FN", 3),
                    ("f8E5M2", 2),
                    ("f8E4M3FNUZ", 3),
                    ("f8E5M2FNUZ", 2),
                )
            ),
            DType(name="i8", mlir="i8", numpy="int8", bits=8, mantissa_bits=0, accumulator="i32"),
            DType(
                name="i32", mlir="i32", numpy="int32", bits=32, mantissa_bits=0, accumulator="i32"
            ),
        )
    }
)

# (data type, weight type) pairs a problem may use; the first pair of a data type is its default.
TYPE_PAIRS = (
    ("f32", "f32"),
    ("f16", "f16"),
    ("f16", "f32"),
    ("bf16", "bf16"),
    ("bf16", "f32"),
    ("i8", "i32"),
    ("i8", "i8"),
    *(
        (data, weight)
        for data in ("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ")
        for weight in ("f32", "f16", "bf16")
    ),
)


def default_weight_dtype(dtype: str) -> str:
    """The weight-gradient type of a data type when the user names none."""
    for data, weight in TYPE_PAIRS:
        if data == dtype:
            return weight
    known = sorted({data for data, _ in TYPE_PAIRS})
    raise UnsupportedProblem(f"dtype {dtype}: not a data type; known: {', '.join(known)}")


def check_pair(dtype: str, weight_dtype: str) -> None:
    """Raise UnsupportedProblem unless the pair is in TYPE_PAIRS."""
    default_weight_dtype(dtype)
    if (dtype, weight_dtype) not in TYPE_PAIRS:
        allowed = [weight for data, weight in TYPE_PAIRS if data == dtype]
        raise UnsupportedProblem(
            f"weight dtype {weight_dtype}: not possible with {dtype} data; "
            f"use {' or '.join(allowed)}"
        )
