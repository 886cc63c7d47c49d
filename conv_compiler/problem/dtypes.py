# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which number types a problem may use: one row each, with its accumulator and its precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from conv_compiler.errors import UnsupportedProblem, did_you_mean


@dataclass(frozen=True, kw_only=True)
class DType:
    """One number type.

    `mantissa_bits` counts the explicit fraction bits (0 for integers); the unit roundoff of a
    float row is 2**-(mantissa_bits + 1). `accumulator` names the row sums are kept in.

    Of `multiplied_only` there are no data: matrix instructions take wider data for it, and leave
    out what it lacks.

    Of 8-bit floats: `fnuz` have no infinity, no negative zero and one NaN. `nan_code` is that of a
    NaN without a sign, where it can have one. `infinity_code` is 0 where there is no infinity.

    Narrower floats are all numbers, and packed: `mlir` is the type of their bytes, and `numpy` that
    of one element in a byte of its own (`runtime/packing.py`).
    """

    name: str
    mlir: str
    numpy: str
    bits: int
    mantissa_bits: int
    accumulator: str
    fnuz: bool = False
    nan_code: int = 0
    infinity_code: int = 0
    multiplied_only: bool = False

    @property
    def is_integer(self) -> bool:
        """Whether values are integers (compared exactly)."""
        return self.mantissa_bits == 0

    @property
    def largest(self) -> float:
        """The largest finite float."""
        import ml_dtypes

        return float(ml_dtypes.finfo(self.to_numpy()).max)

    @property
    def exponent_bias(self) -> int:
        """What is added to the exponent of a float in its code."""
        import ml_dtypes

        return 1 - int(ml_dtypes.finfo(self.to_numpy()).minexp)

    @property
    def is_f8(self) -> bool:
        """Whether values are 8-bit floats."""
        return self.bits == 8 and not self.is_integer

    @property
    def is_packed(self) -> bool:
        """Whether elements have no bytes of their own: floats of 4 or 6 bits."""
        return self.bits < 8

    @property
    def packed(self) -> tuple[int, int]:
        """The fewest adjacent elements that fill whole bytes, and how many bytes."""
        elements = 8 // math.gcd(8, self.bits)
        return elements, elements * self.bits // 8

    @property
    def is_narrow(self) -> bool:
        """Whether values are floats of 8 bits or fewer."""
        return self.bits <= 8 and not self.is_integer

    @property
    def cpu_only(self) -> bool:
        """Whether there is no schedule for it on GPUs, where a sum takes one register."""
        return DTYPES[self.accumulator].bits > 32

    @property
    def elementwise(self) -> str:
        """Row in which an elementwise op on sums of this type is computed."""
        return "f64" if self.name == "f64" else "f32"

    @property
    def bytes(self) -> int:
        """Storage size of one element in bytes. Raises ValueError where that is no whole number."""
        if self.is_packed:
            raise ValueError(f"{self.name}: {self.bits} bits are no whole bytes; take bytes_of")
        return self.bits // 8

    def bytes_of(self, elements: int) -> int:
        """Storage size of so many elements in bytes, rounded down."""
        return elements * self.bits // 8

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
                name="xf32",
                mlir="f32",
                numpy="float32",
                bits=32,
                mantissa_bits=10,
                accumulator="f32",
                multiplied_only=True,
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
            DType(
                name="f64",
                mlir="f64",
                numpy="float64",
                bits=64,
                mantissa_bits=52,
                accumulator="f64",
            ),
            # OCP's (OFP8 revision 1.0), and those of gfx942.
            *(
                DType(
                    name=name,
                    mlir=name,
                    numpy=f"ml_dtypes.float8_{name[2:].lower()}",
                    bits=8,
                    mantissa_bits=mantissa,
                    accumulator="f32",
                    fnuz=fnuz,
                    nan_code=nan,
                    infinity_code=infinity,
                )
                for name, mantissa, fnuz, nan, infinity in (
                    ("f8E4M3FN", 3, False, 0x7F, 0),
                    ("f8E5M2", 2, False, 0x7E, 0x7C),
                    ("f8E4M3FNUZ", 3, True, 0x80, 0),
                    ("f8E5M2FNUZ", 2, True, 0x80, 0),
                )
            ),
            # OCP's (Microscaling Formats 1.0).
            *(
                DType(
                    name=name,
                    mlir="i8",
                    numpy=f"ml_dtypes.float{bits}_{name[2:].lower()}",
                    bits=bits,
                    mantissa_bits=mantissa,
                    accumulator="f32",
                )
                for name, bits, mantissa in (
                    ("f4E2M1FN", 4, 1),
                    ("f6E2M3FN", 6, 3),
                    ("f6E3M2FN", 6, 2),
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
    ("bf16", "f16"),
    ("i8", "i32"),
    ("i8", "i8"),
    ("f64", "f64"),
    *(
        (data, weight)
        for kind in (("f8E4M3FN", "f8E5M2"), ("f8E4M3FNUZ", "f8E5M2FNUZ"))
        for data in kind
        for weight in ("f32", "f16", "bf16", *kind)
    ),
)
# The same of elements that have block scales always (problem/block_checks.py).
SCALED_PAIRS = tuple(
    (row.name, weight)
    for row in DTYPES.values()
    for weight in ("f32", "f16", "bf16")
    if row.is_packed
)
_PAIRS = (*TYPE_PAIRS, *SCALED_PAIRS)

# What 8-bit floats are multiplied as where there is no instruction for them: holds each of them
# exactly, and none as a denormal, which gfx90a would flush.
WIDER = "bf16"
# What 8-bit floats are called where the chip decides their kind: (OCP's, gfx942's).
F8_NAMES = {"fp8": ("f8E4M3FN", "f8E4M3FNUZ"), "bf8": ("f8E5M2", "f8E5M2FNUZ")}


@dataclass(frozen=True, kw_only=True)
class Terms:
    """A number as the sum of a high and a low part of a narrower type, and a product as a few of
    the products of these.

    `parts` says of each which part of the output gradient and of the input is taken.
    `error` bounds what a product is off by, relative to it: what the low parts are rounded by, and
    the products that are left out. `deviation` is the root mean square of what products of numbers
    drawn evenly from [-1, 1) are off by. High parts are upper halves of the bits: of bf16 alone
    (`build/terms.py`).
    """

    dtype: str
    parts: tuple[tuple[str, str], ...]
    error: float
    deviation: float

    def __post_init__(self) -> None:
        if self.dtype != "bf16":
            raise ValueError(f"terms of {self.dtype}: build/terms.py takes numbers apart for bf16")

    @property
    def count(self) -> int:
        """Products in place of one."""
        return len(self.parts)


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """What `compute` names by one word: data of the types `of`, rounded to `dtype` before they are
    multiplied.

    Where an instruction rounds, in a way that no reference follows, a product is off by `error` at
    most, relative to it, and by `deviation` as in `Terms`.
    """

    dtype: str
    of: tuple[str, ...]
    error: float = 0.0
    deviation: float = 0.0


# f16 leaves f16 data as they are, also where a chip's default is another (`Target.gradients_as`).
# bf16 keeps 8 bits of 11, and every number of f16, denormals too, is in its normal range.
CONVERSIONS = MappingProxyType(
    {
        "f16": Conversion(dtype="f16", of=("f16",)),
        "bf16": Conversion(dtype="bf16", of=("f16",)),
        # Either number is cut by 2^-10 at most. The deviation was summed over 2e7 drawn products.
        "xf32": Conversion(dtype="xf32", of=("f32",), error=2.0**-9, deviation=0.117 * 2.0**-9),
    }
)
# What Composable Kernel calls TF32: (on a chip that multiplies it, on others).
TF32, STANDS_FOR_TF32 = "tf32", ("xf32", "bf16x3")

# Names of `compute` for f32 data. bf16x3 is what Composable Kernel computes TF32 by on gfx950. Each
# part is rounded by 2^-8 at most. So the rest of a low part is 2^-16 of the number, and the product
# of the low parts is 2^-16 of the product.
TERMS = MappingProxyType(
    {
        "bf16x3": Terms(
            dtype="bf16",
            parts=(("high", "high"), ("low", "high"), ("high", "low")),
            error=3 * 2.0**-16,
            deviation=0.0826 * 2.0**-16,
        )
    }
)


# Other names of data types. Letters' case does not count in any of them.
ALIASES = MappingProxyType(
    {
        **dict.fromkeys(("fp16", "half", "float16"), "f16"),
        "bfloat16": "bf16",
        **dict.fromkeys(("fp32", "float", "float32", "single"), "f32"),
        **dict.fromkeys(("fp64", "double", "float64"), "f64"),
        "int8": "i8",
        "int32": "i32",
        "float8_e4m3fn": "f8E4M3FN",
        "float8_e5m2": "f8E5M2",
        "float8_e4m3fnuz": "f8E4M3FNUZ",
        "float8_e5m2fnuz": "f8E5M2FNUZ",
        "float4_e2m1fn": "f4E2M1FN",
        "float6_e2m3fn": "f6E2M3FN",
        "float6_e3m2fn": "f6E3M2FN",
    }
)
_SPELLINGS = MappingProxyType({**{name.lower(): name for name in DTYPES}, **ALIASES})

_BY_NUMPY = MappingProxyType(
    {row.numpy.rpartition(".")[2]: row.name for row in DTYPES.values() if not row.multiplied_only}
)


def name_of_dtype(value: Any) -> Any:
    """The name of a data type given by another name, or as numpy's or ml_dtypes' own (a dtype, or
    a type of scalars); anything else as it is."""
    if isinstance(value, str):
        return _SPELLINGS.get(value.strip().lower(), value)
    # Both say what they are called, so numpy need not be imported to know them.
    called = getattr(value, "name", None) or getattr(value, "__name__", None)
    return _BY_NUMPY.get(called, value) if isinstance(called, str) else value


def compute_text(text: str, dtype: str) -> str:
    """`compute` as it is spelled; UnsupportedProblem where it is none for data of the type."""
    text = _canonical_compute(text)
    data = CONVERSIONS[text].of if text in CONVERSIONS else ()
    data = ("f32",) if text in (*TERMS, TF32) else data
    if data and dtype not in data:
        known = " or ".join(data)
        raise UnsupportedProblem(f"compute {text}: is for {known} data, not {dtype}; leave it out")
    return text if data or not text else ",".join(compute_pair(text, dtype))


def _canonical_compute(text: str) -> str:
    """`compute` with each word of a table by its own name."""
    words = {name.lower(): name for name in (*TERMS, TF32, *F8_NAMES)} | dict(_SPELLINGS)
    if not text or text in words.values():
        return text
    parts = text.replace("@", ",").replace(" ", "").split(",")
    return ",".join(words.get(part.lower(), part) for part in parts)


def _converting(dtype: str) -> tuple[str, ...]:
    """The conversions of data of a type."""
    return tuple(name for name, row in CONVERSIONS.items() if dtype in row.of)


def compute_pair(text: str, dtype: str) -> tuple[str, ...]:
    """(of the output gradient, of the input): the types of `compute`, both `dtype` where empty.

    Numbers that are split in terms keep their type until they are. Raises UnsupportedProblem unless
    they are a row of CONVERSIONS, or two 8-bit floats of one kind and the data are wider.
    """
    if not text or text in TERMS:
        return (dtype, dtype)
    if text in CONVERSIONS:
        return (CONVERSIONS[text].dtype,) * 2
    if text == TF32:
        return (TF32,) * 2
    pair = tuple(text.replace("@", ",").replace(" ", "").split(","))
    known = [name for name, row in DTYPES.items() if row.is_f8]
    kinds = {DTYPES[name].fnuz if name in DTYPES else "chip" for name in pair}
    if len(pair) != 2 or not set(pair) <= {*known, *F8_NAMES} or len(kinds) > 1:
        names = (*known, *F8_NAMES, *CONVERSIONS, *TERMS, TF32)
        near = did_you_mean(text, names) if len(pair) == 1 and text not in names else ""
        raise UnsupportedProblem(
            f"compute {text}: not two 8-bit floats of one kind; {near}write bf8,fp8 for the chip's "
            f"own, two of {', '.join(known)}, for f16 data {' or '.join(_converting('f16'))}, or "
            f"for f32 data {', '.join((*TERMS, *_converting('f32'), TF32))}"
        )
    if DTYPES[dtype].is_integer or DTYPES[dtype].is_narrow:
        raise UnsupportedProblem(f"compute {text}: is for wider floats than {dtype}; leave it out")
    return pair


def default_weight_dtype(dtype: str) -> str:
    """The weight-gradient type of a data type when the user names none."""
    for data, weight in _PAIRS:
        if data == dtype:
            return weight
    known = sorted({data for data, _ in _PAIRS})
    near = did_you_mean(dtype, (*known, *ALIASES))
    raise UnsupportedProblem(f"dtype {dtype}: not a data type; {near}known: {', '.join(known)}")


def check_pair(dtype: str, weight_dtype: str) -> None:
    """Raise UnsupportedProblem unless the pair is in TYPE_PAIRS or SCALED_PAIRS."""
    default_weight_dtype(dtype)
    if (dtype, weight_dtype) not in _PAIRS:
        allowed = [weight for data, weight in _PAIRS if data == dtype]
        near = "" if weight_dtype in DTYPES else did_you_mean(weight_dtype, allowed)
        raise UnsupportedProblem(
            f"weight dtype {weight_dtype}: not possible with {dtype} data; {near}"
            f"use {' or '.join(allowed)}"
        )
