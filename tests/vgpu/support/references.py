"""What the programs of `programs/` compute, in numpy, and the inputs they are given."""

import math
from collections.abc import Callable

import numpy as np

Arrays = tuple[np.ndarray, ...]
Inputs = Callable[[np.random.Generator], Arrays]
Reference = Callable[..., np.ndarray]
ShapeAndType = tuple[tuple[int, ...], type]

erf = np.vectorize(math.erf)


def small_integers(*shapes_and_types: ShapeAndType) -> Inputs:
    """Integers in -3..3: products and sums stay exact in every float type that accumulates in f32."""

    def make(rng: np.random.Generator) -> Arrays:
        return tuple(rng.integers(-3, 4, shape).astype(dtype) for shape, dtype in shapes_and_types)

    return make


def normals(*shapes_and_types: ShapeAndType, scale: float = 1) -> Inputs:
    """Normally distributed values with the standard deviation `scale`."""

    def make(rng: np.random.Generator) -> Arrays:
        return tuple(
            (rng.standard_normal(shape) * scale).astype(dtype) for shape, dtype in shapes_and_types
        )

    return make


def positive(shape: tuple[int, ...], dtype: type) -> Inputs:
    """Values from 0.1 on, most below 5."""
    return lambda rng: ((np.abs(rng.standard_normal(shape) * 2) + 0.1).astype(dtype),)


def integers(low: int, high: int, *shapes_and_types: ShapeAndType) -> Inputs:
    """Integers from `low` to below `high`."""

    def make(rng: np.random.Generator) -> Arrays:
        return tuple(
            rng.integers(low, high, shape).astype(dtype) for shape, dtype in shapes_and_types
        )

    return make


def both(*parts: Inputs) -> Inputs:
    """The inputs of several functions, one after the other."""
    return lambda rng: tuple(array for part in parts for array in part(rng))


def matmul(dtype: type) -> Reference:
    """A matrix product, or a batch of them, summed in double precision."""
    return lambda a, b: (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)


def elementwise(function: Callable[[np.ndarray], np.ndarray]) -> Reference:
    """A function of one operand, computed in double precision."""
    return lambda x: function(x.astype(np.float64)).astype(x.dtype)


def rows(function: Callable[..., np.ndarray]) -> Reference:
    """A reduction of each row, computed in double precision."""
    return lambda x: function(x.astype(np.float64), axis=1).astype(x.dtype)


def divide_and_remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Signed quotient, rounded towards zero, plus unsigned remainder."""
    quotient = np.trunc(a.astype(np.float64) / b).astype(np.int64)
    return (quotient + a.view(np.uint32).astype(np.int64) % b).astype(np.int32)


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax over the last axis."""
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).astype(np.float32)


def layer_norm(x: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Rows brought to mean 0 and variance 1, then scaled and shifted."""
    x = x.astype(np.float64)
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return ((x - mean) / np.sqrt(variance + 1e-5) * scale + shift).astype(np.float32)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Softmax of a quarter of q k^T, times v."""
    scores = 0.25 * q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1)
    return (softmax(scores) @ v.astype(np.float64)).astype(np.float16)


def gelu(x: np.ndarray) -> np.ndarray:
    """The Gaussian error linear unit."""
    return 0.5 * x * (1 + erf(x * 0.70710678))


def convolution(stride: int) -> Reference:
    """A convolution, channels last, of an image with filters whose extents lead."""

    def compute(image: np.ndarray, filters: np.ndarray) -> np.ndarray:
        image, filters = image.astype(np.float64), filters.astype(np.float64)
        height, width = filters.shape[:2]
        out_y = (image.shape[1] - height) // stride + 1
        out_x = (image.shape[2] - width) // stride + 1
        products = (
            image[:, y : y + stride * out_y : stride, x : x + stride * out_x : stride]
            @ filters[y, x]
            for y in range(height)
            for x in range(width)
        )
        return sum(products).astype(np.float32)

    return compute


def transposed_convolution(image: np.ndarray, filters: np.ndarray) -> np.ndarray:
    """Each pixel spreads its products with the filters over a window; windows are two apart."""
    size, f = image.shape[1], filters.shape[3]
    total = np.zeros((1, 2 * size + 1, 2 * size + 1, f))
    for i in range(size):
        for j in range(size):
            for dy in range(3):
                for dx in range(3):
                    product = image[0, i, j].astype(np.float64) @ filters[dy, dx].astype(np.float64)
                    total[0, 2 * i + 2 - dy, 2 * j + 2 - dx] += product
    return total.astype(np.float32)


def depthwise(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A 3x3 convolution of each channel by itself."""
    y, z = x.shape[1] - 2, x.shape[2] - 2
    return sum(x[:, i : i + y, j : j + z] * w[i, j] for i in range(3) for j in range(3))


def max_pool(x: np.ndarray) -> np.ndarray:
    """Maximum of 3x3 windows, stride 2."""
    y, z = (x.shape[1] - 3) // 2 * 2 + 1, (x.shape[2] - 3) // 2 * 2 + 1
    return np.max([x[:, i : i + y : 2, j : j + z : 2] for i in range(3) for j in range(3)], axis=0)
