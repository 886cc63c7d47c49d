"""What the kernels of `kernels.py` are launched on, and what numpy makes of the same data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
# Triton's names of types, by numpy's.
TYPES = {
    np.dtype(np.float16): "fp16",
    np.dtype(np.float32): "fp32",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(np.int8): "i8",
    np.dtype(np.int32): "i32",
}
U16, U32 = 2.0**-11, 2.0**-24  # unit roundoffs of f16 and f32


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One launch: arguments in the kernel's order, and of each array that it writes what is right.

    `want` has (result, error allowed) by the number of the argument; errors are absolute, 0 for
    results that are exact.
    """

    grid: tuple[int, ...]
    arguments: Sequence[Any]
    want: Mapping[int, tuple[Array, Any]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kernel, its constants, and how its data are made of random numbers."""

    kernel: str
    make: Callable[[np.random.Generator], Launch]
    constants: Mapping[str, Any]
    warps: int = 4
    types: Mapping[str, str] = field(default_factory=dict)  # constants that name a type of Triton's


def _integers(rng: np.random.Generator, shape: tuple[int, ...], most: int, dtype: Any) -> Array:
    return rng.integers(-most, most + 1, shape).astype(dtype)


def _normals(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def vector_add(rng: np.random.Generator) -> Launch:
    n = 1000
    x, y = _normals(rng, (n,)), _normals(rng, (n,))
    return Launch(grid=(4,), arguments=(x, y, np.zeros(n, np.float32), n), want={2: (x + y, 0)})


def softmax(rng: np.random.Generator) -> Launch:
    """e^x and the quotient are good to a few units in the last place, and so is the sum."""
    rows, columns = 7, 201
    x = _normals(rng, (rows, columns))
    wide = x.astype(np.float64)
    power = np.exp(wide - wide.max(1, keepdims=True))
    right = power / power.sum(1, keepdims=True)
    apart = np.abs(wide - wide.max(1, keepdims=True))
    error = right * (columns + 8 + 4 * apart) * U32
    out = np.zeros_like(x)
    return Launch(grid=(rows,), arguments=(x, out, columns), want={1: (right, error)})


def layer_norm(rng: np.random.Generator) -> Launch:
    """The result is rounded to f16; sums in f32 err by less than a tenth of that."""
    rows, columns, epsilon = 5, 300, 1e-5
    x = _normals(rng, (rows, columns), np.float16)
    weight, bias = _normals(rng, (columns,)), _normals(rng, (columns,))
    wide = x.astype(np.float64)
    apart = wide - wide.mean(1, keepdims=True)
    right = apart / np.sqrt((apart**2).mean(1, keepdims=True) + epsilon) * weight + bias
    error = 1.1 * U16 * np.abs(right) + (columns + 16) * U32 * (
        np.abs(right) + 2 * np.abs(bias) + 1
    )
    out = np.zeros_like(x)
    arguments = (x, weight, bias, out, columns, np.float32(epsilon))
    return Launch(grid=(rows,), arguments=arguments, want={3: (right, error)})


def matmul(dtype: Any, total: Any) -> Callable[[np.random.Generator], Launch]:
    """Small integers: every product and every sum is exact in any order."""

    def make(rng: np.random.Generator) -> Launch:
        rows, columns, length = 50, 75, 41
        a = _integers(rng, (rows, length), 3, dtype)
        b = _integers(rng, (length, columns), 3, dtype)
        right = a.astype(np.int64) @ b.astype(np.int64)
        out = np.zeros((rows, columns), total)
        tiles = -(-rows // 32) * -(-columns // 32)
        arguments = (a, b, out, rows, columns, length)
        return Launch(grid=(tiles,), arguments=arguments, want={2: (right, 0)})

    return make


def random_matmul(rng: np.random.Generator) -> Launch:
    """f16 products are exact in f32; each sum of `length` of them errs by as many roundings."""
    rows, columns, length = 33, 64, 96
    a, b = _normals(rng, (rows, length), np.float16), _normals(rng, (length, columns), np.float16)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    error = 2 * length * U32 * (np.abs(wide_a) @ np.abs(wide_b))
    out = np.zeros((rows, columns), np.float32)
    arguments = (a, b, out, rows, columns, length)
    return Launch(grid=(4,), arguments=arguments, want={2: (wide_a @ wide_b, error)})


def attention(*, is_causal: bool) -> Callable[[np.random.Generator], Launch]:
    """Powers are rounded to f16 before the second product, and so is the result."""

    def make(rng: np.random.Generator) -> Launch:
        heads, length, depth, scale = 2, 57, 32, 0.25
        q, k, v = (_normals(rng, (heads, length, depth), np.float16) for _ in range(3))
        wide = [one.astype(np.float64) for one in (q, k, v)]
        score = scale * wide[0] @ wide[1].swapaxes(1, 2)
        if is_causal:
            score[:, np.triu(np.ones((length, length), bool), 1)] = -np.inf
        power = np.exp(score - score.max(2, keepdims=True))
        weights = power / power.sum(2, keepdims=True)
        right = weights @ wide[2]
        error = 1.1 * U16 * np.abs(right) + 1.1 * U16 * (weights @ np.abs(wide[2])) + 2.0**-24
        out = np.zeros_like(q)
        blocks = -(-length // 32)
        arguments = (q, k, v, out, length, np.float32(scale))
        return Launch(grid=(blocks, heads), arguments=arguments, want={3: (right, error)})

    return make


def reductions(rng: np.random.Generator) -> Launch:
    rows, columns = 13, 50
    x = np.stack([rng.permutation(columns) - 20 for _ in range(rows)]).astype(np.int32)
    outs = [np.zeros(size, np.int32) for size in (columns, rows, rows)]
    right = (x.sum(0), x.max(1), x.argmax(1))
    want = {number + 1: (one, 0) for number, one in enumerate(right)}
    return Launch(grid=(1,), arguments=(x, *outs, rows, columns), want=want)


def product_of_rows(rng: np.random.Generator) -> Launch:
    """Products of -1, 1 and a few twos."""
    rows, columns = 6, 90
    x = rng.choice([-1, 1], (rows, columns)).astype(np.int32)
    x[:, ::11] *= 2
    out = np.zeros(rows, np.int32)
    return Launch(grid=(rows,), arguments=(x, out, columns), want={1: (x.prod(1), 0)})


def histogram(rng: np.random.Generator) -> Launch:
    n, values = 700, 19
    x = rng.integers(0, values, n).astype(np.int32)
    counts, most = np.zeros(values, np.int32), np.zeros(1, np.int32)
    want = {1: (np.bincount(x, minlength=values), 0), 2: (x.max(keepdims=True), 0)}
    return Launch(grid=(3,), arguments=(x, counts, most, n), want=want)


def locked_sum(rng: np.random.Generator) -> Launch:
    """Small integers as f32: exact in any order."""
    n, groups = 1000, 4
    x = _integers(rng, (n,), 9, np.float32)
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.float32)
    want = {1: (np.array([groups]), 0), 2: (x.sum(keepdims=True), 0)}
    return Launch(grid=(groups,), arguments=(x, lock, total, n), want=want)


def scans(rng: np.random.Generator) -> Launch:
    rows, columns = 3, 117
    x = _integers(rng, (rows, columns), 50, np.int32)
    highest = np.maximum.accumulate(x[:, ::-1], axis=1)[:, ::-1]
    outs = [np.zeros_like(x) for _ in range(2)]
    want = {1: (x.cumsum(1), 0), 2: (highest, 0)}
    return Launch(grid=(rows,), arguments=(x, *outs, columns), want=want)


def philox(counter: Array, seed: int) -> Array:
    """The first word of Philox 4x32 with 10 rounds (Salmon and others, SC 2011) for counters of one
    word."""
    c = [counter.astype(np.uint64), *(np.zeros(counter.shape, np.uint64) for _ in range(3))]
    low = np.uint64(0xFFFFFFFF)
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (b >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]),
            b & low,
            (a >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]),
            a & low,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0].astype(np.uint32)


def dropout(rng: np.random.Generator) -> Launch:
    """A word becomes a number of [0, 1): a negative one is complemented, then scaled by 2^-31."""
    n, seed, share = 500, 1234, np.float32(0.25)
    x = _normals(rng, (n,))
    word = philox(np.arange(n), seed).view(np.int32)
    uniform = np.where(word < 0, ~word, word).astype(np.float32) * np.float32(4.6566127342e-10)
    right = np.where(uniform > share, x.astype(np.float64) / 0.75, 0)
    arguments = (x, np.zeros_like(x), n, seed, share)
    return Launch(grid=(2,), arguments=arguments, want={1: (right, 4 * U32 * np.abs(right))})


def sort_rows(rng: np.random.Generator) -> Launch:
    x = _integers(rng, (2, 128), 10**6, np.int32)
    return Launch(grid=(2,), arguments=(x, np.zeros_like(x)), want={1: (np.sort(x, axis=1), 0)})


_TILE = {"M": 32, "N": 32, "K": 32, "TOGETHER": 2}
_F32, _I32 = {"TOTAL": "float32"}, {"TOTAL": "int32"}
_HEADS = {"D": 32, "M": 32, "N": 32}
_BF16 = ml_dtypes.bfloat16

CASES = {
    "vector_add": Case(kernel="vector_add", make=vector_add, constants={"BLOCK": 256}),
    "softmax": Case(kernel="softmax", make=softmax, constants={"BLOCK": 256}),
    "layer_norm": Case(kernel="layer_norm", make=layer_norm, constants={"BLOCK": 128}),
    "matmul_f16": Case(
        kernel="matmul", make=matmul(np.float16, np.float32), constants=_TILE, types=_F32
    ),
    "matmul_bf16": Case(
        kernel="matmul", make=matmul(_BF16, np.float32), constants=_TILE, types=_F32
    ),
    "matmul_i8": Case(kernel="matmul", make=matmul(np.int8, np.int32), constants=_TILE, types=_I32),
    "matmul_f32": Case(
        kernel="matmul", make=matmul(np.float32, np.float32), constants=_TILE, types=_F32
    ),
    "matmul_random": Case(
        kernel="matmul", make=random_matmul, constants=_TILE, types=_F32, warps=2
    ),
    "attention": Case(
        kernel="attention", make=attention(is_causal=False), constants={**_HEADS, "CAUSAL": False}
    ),
    "attention_causal": Case(
        kernel="attention", make=attention(is_causal=True), constants={**_HEADS, "CAUSAL": True}
    ),
    "reductions": Case(kernel="reductions", make=reductions, constants={"M": 16, "N": 64}),
    "product_of_rows": Case(
        kernel="product_of_rows", make=product_of_rows, constants={"BLOCK": 128}
    ),
    "histogram": Case(kernel="histogram", make=histogram, constants={"BLOCK": 256}),
    "locked_sum": Case(kernel="locked_sum", make=locked_sum, constants={"BLOCK": 256}),
    "scans": Case(kernel="scans", make=scans, constants={"BLOCK": 128}),
    "dropout": Case(kernel="dropout", make=dropout, constants={"BLOCK": 256}),
    "sort_rows": Case(kernel="sort_rows", make=sort_rows, constants={"BLOCK": 128}),
}
