# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel's arguments as words of a command line, and the arrays they stand for.

An array that the kernel reads is `in:f16:x.npy`. One that it changes too is
`inout:f32:y.npy:z.npy`, where the last part is a file for the result. Fresh memory is
`out:f32:64x64:c.npy`. A number passed by value is `i32:1024`, a null pointer `null`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import InvalidArray, did_you_mean

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

# Type as written -> numpy's; bfloat16 and the 8-bit floats are those of ml_dtypes.
TYPES = MappingProxyType(
    {
        **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
        **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
        **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
        "bf16": "bfloat16",
        "f8E4M3FN": "float8_e4m3fn",
        "f8E5M2": "float8_e5m2",
        "f8E4M3FNUZ": "float8_e4m3fnuz",
        "f8E5M2FNUZ": "float8_e5m2fnuz",
    }
)
NULL = "null"
_KINDS = ("in", "inout", "out")
_FORMS = "write in:TYPE:FILE.npy, inout:TYPE:FILE.npy, out:TYPE:SHAPE, TYPE:NUMBER or null"


@dataclass(frozen=True, kw_only=True)
class Given:
    """One argument: its word, the value for the kernel, and whether the kernel may write it.

    `value` is an array, a number of numpy, or None. What is written is put into `file`, if any.
    """

    word: str
    dtype: str
    value: Any
    is_written: bool = False
    is_fresh: bool = False
    file: Path | None = None


def read(word: str) -> Given:
    """The argument a word stands for; InvalidArray where it is none, or its file does not fit."""
    if word == NULL:
        return Given(word=word, dtype="", value=None)
    kind, *rest = word.split(":")
    if kind in TYPES and len(rest) == 1:
        return Given(word=word, dtype=kind, value=_number(word, kind, rest[0]))
    if kind not in _KINDS or not 2 <= len(rest) <= 3 - (kind == "in"):
        raise InvalidArray(f"argument {word}: not in one of the forms; {_FORMS}")
    dtype, what, *file = rest
    numpy_type = type_of(word, dtype)
    array = _fresh(word, numpy_type, what) if kind == "out" else _loaded(word, numpy_type, what)
    return Given(
        word=word,
        dtype=dtype,
        value=array,
        is_written=kind != "in",
        is_fresh=kind == "out",
        file=Path(file[0]) if file else None,
    )


def type_of(word: str, name: str) -> np.dtype[Any]:
    """The numpy type of a name in TYPES."""
    import numpy as np

    if name not in TYPES:
        near = did_you_mean(name, TYPES)
        raise InvalidArray(f"argument {word}: type {name}; {near}use {', '.join(TYPES)}")
    try:
        found: np.dtype[Any] = np.dtype(TYPES[name])
        return found
    except TypeError:
        import ml_dtypes

        other: np.dtype[Any] = np.dtype(getattr(ml_dtypes, TYPES[name]))
        return other


def _number(word: str, dtype: str, text: str) -> Any:
    kind = type_of(word, dtype)
    try:
        number = int(text, 0) if kind.kind in "iu" else float(text)
        return kind.type(number)
    except (ValueError, OverflowError):
        raise InvalidArray(f"argument {word}: {text} is no {dtype}; write a number") from None


def _fresh(word: str, dtype: np.dtype[Any], text: str) -> Array:
    import numpy as np

    sizes = text.split("x")
    if not all(size.isascii() and size.isdigit() and int(size) for size in sizes):
        raise InvalidArray(f"argument {word}: shape {text}; write sizes as 64x64")
    return np.zeros([int(size) for size in sizes], dtype)


def _loaded(word: str, dtype: np.dtype[Any], path: str) -> Array:
    import numpy as np

    try:
        array: Array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        why = getattr(error, "strerror", None) or "is no array in .npy"
        raise InvalidArray(f"argument {word}: {path}: {why}; give a file of numpy.save") from None
    # numpy writes types that it does not know as bytes of their size.
    if array.dtype != dtype and array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)
    if array.dtype != dtype:
        raise InvalidArray(
            f"argument {word}: {path} holds {array.dtype}, not {dtype}; convert it, or name its "
            "type"
        )
    return np.ascontiguousarray(array)
