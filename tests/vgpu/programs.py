"""Small linalg programs with their meaning in numpy: what the virtual GPU is asked to run besides our own kernels.

IREE compiles each with its default pipelines, so the kernels use whatever instructions the compiler likes. Sizes
are chosen so that some divide the tiles and some do not.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True, kw_only=True)
class Program:
    """One function `@main`: its MLIR text, its inputs and what it computes.

    `rtol` and `atol` are 0 where every intermediate value is exact; inputs are integer-valued there.
    """

    name: str
    mlir: str
    inputs: Callable[[np.random.Generator], Arrays]
    reference: Callable[..., np.ndarray]
    rtol: float = 0.0
    atol: float = 0.0
    flags: tuple[str, ...] = ()  # of iree-compile


def small_integers(*shapes_and_types: tuple[tuple[int, ...], type]) -> Callable[..., Arrays]:
    """Integers in -3..3: products and sums stay exact in every float type that accumulates in f32."""

    def make(rng: np.random.Generator) -> Arrays:
        return tuple(rng.integers(-3, 4, shape).astype(dtype) for shape, dtype in shapes_and_types)

    return make


def normals(*shapes_and_types: tuple[tuple[int, ...], type]) -> Callable[..., Arrays]:
    """Normally distributed values."""

    def make(rng: np.random.Generator) -> Arrays:
        return tuple(rng.standard_normal(shape).astype(dtype) for shape, dtype in shapes_and_types)

    return make


def matmul(
    name: str, m: int, n: int, k: int, lhs: str, acc: str, np_lhs: type, np_acc: type
) -> Program:
    """A plain matrix product with integer-valued data: exact."""
    zero = "0" if acc.startswith("i") else "0.0"
    return Program(
        name=name,
        mlir=f"""
func.func @main(%a: tensor<{m}x{k}x{lhs}>, %b: tensor<{k}x{n}x{lhs}>) -> tensor<{m}x{n}x{acc}> {{
  %zero = arith.constant {zero} : {acc}
  %empty = tensor.empty() : tensor<{m}x{n}x{acc}>
  %init = linalg.fill ins(%zero : {acc}) outs(%empty : tensor<{m}x{n}x{acc}>) -> tensor<{m}x{n}x{acc}>
  %c = linalg.matmul ins(%a, %b : tensor<{m}x{k}x{lhs}>, tensor<{k}x{n}x{lhs}>)
                     outs(%init : tensor<{m}x{n}x{acc}>) -> tensor<{m}x{n}x{acc}>
  return %c : tensor<{m}x{n}x{acc}>
}}""",
        inputs=small_integers(((m, k), np_lhs), ((k, n), np_lhs)),
        reference=lambda a, b: (a.astype(np.float64) @ b.astype(np.float64)).astype(np_acc),
        flags=("--iree-input-demote-f64-to-f32=false",) if acc == "f64" else (),
    )


def unary(
    name: str,
    op: str,
    dtype: str,
    np_type: type,
    function: Callable,
    rtol: float,
    shape=(37, 51),
    positive: bool = False,
) -> Program:
    """One elementwise operation over a shape that divides nothing."""
    type_ = f"tensor<{'x'.join(map(str, shape))}x{dtype}>"

    def inputs(rng: np.random.Generator) -> Arrays:
        x = rng.standard_normal(shape) * 2
        return ((np.abs(x) + 0.1 if positive else x).astype(np_type),)

    return Program(
        name=name,
        mlir=f"""
func.func @main(%x: {type_}) -> {type_} {{
  %empty = tensor.empty() : {type_}
  %y = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%x : {type_}) outs(%empty : {type_}) {{
    ^bb0(%in: {dtype}, %out: {dtype}):
      %r = {op} %in : {dtype}
      linalg.yield %r : {dtype}
  }} -> {type_}
  return %y : {type_}
}}""",
        inputs=inputs,
        reference=lambda x: function(x.astype(np.float64)).astype(np_type),
        rtol=rtol,
        atol=rtol,
    )


def reduction(
    name: str,
    combine: str,
    start: str,
    dtype: str,
    np_type: type,
    function: Callable,
    shape: tuple[int, int],
) -> Program:
    """Rows of a matrix reduced to one value each, exact."""
    rows, columns = shape
    return Program(
        name=name,
        mlir=f"""
func.func @main(%x: tensor<{rows}x{columns}x{dtype}>) -> tensor<{rows}x{dtype}> {{
  %start = arith.constant {start} : {dtype}
  %empty = tensor.empty() : tensor<{rows}x{dtype}>
  %init = linalg.fill ins(%start : {dtype}) outs(%empty : tensor<{rows}x{dtype}>) -> tensor<{rows}x{dtype}>
  %y = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<{rows}x{columns}x{dtype}>) outs(%init : tensor<{rows}x{dtype}>) {{
    ^bb0(%in: {dtype}, %acc: {dtype}):
      %r = {combine} %in, %acc : {dtype}
      linalg.yield %r : {dtype}
  }} -> tensor<{rows}x{dtype}>
  return %y : tensor<{rows}x{dtype}>
}}""",
        inputs=small_integers((shape, np_type)),
        reference=lambda x: function(x.astype(np.float64), axis=1).astype(np_type),
    )


def convolution_nhwc(name: str, dtype: str, np_type: type, stride: int) -> Program:
    """A 3x3 convolution, channels last, exact."""
    n, size, c, f = 2, 16, 24, 32
    out = (size - 3) // stride + 1
    x, w, y = (
        f"tensor<{n}x{size}x{size}x{c}x{dtype}>",
        f"tensor<3x3x{c}x{f}x{dtype}>",
        f"tensor<{n}x{out}x{out}x{f}xf32>",
    )

    def reference(image: np.ndarray, filters: np.ndarray) -> np.ndarray:
        image, filters = image.astype(np.float64), filters.astype(np.float64)
        total = np.zeros((n, out, out, f))
        for dy in range(3):
            for dx in range(3):
                window = image[
                    :,
                    dy : dy + stride * (out - 1) + 1 : stride,
                    dx : dx + stride * (out - 1) + 1 : stride,
                ]
                total += window @ filters[dy, dx]
        return total.astype(np.float32)

    return Program(
        name=name,
        mlir=f"""
func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {y}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {y}) -> {y}
  %y = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}
       ins(%x, %w : {x}, {w}) outs(%init : {y}) -> {y}
  return %y : {y}
}}""",
        inputs=small_integers(((n, size, size, c), np_type), ((3, 3, c, f), np_type)),
        reference=reference,
    )


def transposed_convolution() -> Program:
    """Stride 2 up: zeros put between the pixels, then a 3x3 convolution over a border of two."""
    size, c, f = 7, 16, 16
    wide = 2 * size - 1 + 4
    out = wide - 2

    def reference(image: np.ndarray, filters: np.ndarray) -> np.ndarray:
        total = np.zeros((1, out, out, f))
        for i in range(size):
            for j in range(size):
                for dy in range(3):
                    for dx in range(3):
                        total[0, 2 * i + 2 - dy, 2 * j + 2 - dx] += image[0, i, j].astype(
                            np.float64
                        ) @ filters[dy, dx].astype(np.float64)
        return total.astype(np.float32)

    return Program(
        name="transposed_conv_f16",
        mlir=f"""
func.func @main(%x: tensor<1x{size}x{size}x{c}xf16>, %w: tensor<3x3x{c}x{f}xf16>) -> tensor<1x{out}x{out}x{f}xf32> {{
  %zero16 = arith.constant 0.0 : f16
  %zero = arith.constant 0.0 : f32
  %blank = tensor.empty() : tensor<1x{wide}x{wide}x{c}xf16>
  %zeros = linalg.fill ins(%zero16 : f16) outs(%blank : tensor<1x{wide}x{wide}x{c}xf16>) -> tensor<1x{wide}x{wide}x{c}xf16>
  %spread = tensor.insert_slice %x into %zeros[0, 2, 2, 0] [1, {size}, {size}, {c}] [1, 2, 2, 1]
      : tensor<1x{size}x{size}x{c}xf16> into tensor<1x{wide}x{wide}x{c}xf16>
  %empty = tensor.empty() : tensor<1x{out}x{out}x{f}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x{out}x{out}x{f}xf32>) -> tensor<1x{out}x{out}x{f}xf32>
  %y = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}
       ins(%spread, %w : tensor<1x{wide}x{wide}x{c}xf16>, tensor<3x3x{c}x{f}xf16>)
       outs(%init : tensor<1x{out}x{out}x{f}xf32>) -> tensor<1x{out}x{out}x{f}xf32>
  return %y : tensor<1x{out}x{out}x{f}xf32>
}}""",
        inputs=small_integers(((1, size, size, c), np.float16), ((3, 3, c, f), np.float16)),
        reference=reference,
    )


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax over the last axis."""
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).astype(np.float32)


SOFTMAX = Program(
    name="softmax_f32",
    mlir="""
func.func @main(%x: tensor<12x193xf32>) -> tensor<12x193xf32> {
  %empty = tensor.empty() : tensor<12x193xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<12x193xf32>) outs(%empty : tensor<12x193xf32>) -> tensor<12x193xf32>
  return %y : tensor<12x193xf32>
}""",
    inputs=normals(((12, 193), np.float32)),
    reference=softmax,
    rtol=1e-5,
    atol=1e-7,
)


def layer_norm_reference(x: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Rows brought to mean 0 and variance 1, then scaled and shifted."""
    x = x.astype(np.float64)
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return ((x - mean) / np.sqrt(variance + 1e-5) * scale + shift).astype(np.float32)


LAYER_NORM = Program(
    name="layer_norm_f32",
    mlir="""
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<10x320xf32>, %scale: tensor<320xf32>, %shift: tensor<320xf32>) -> tensor<10x320xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 320.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %e1 = tensor.empty() : tensor<10xf32>
  %e2 = tensor.empty() : tensor<10x320xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<10xf32>) -> tensor<10xf32>
  %sum = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<10x320xf32>) outs(%init : tensor<10xf32>) {
    ^bb0(%a: f32, %s: f32):
      %r = arith.addf %a, %s : f32
      linalg.yield %r : f32
  } -> tensor<10xf32>
  %squares = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %sum : tensor<10x320xf32>, tensor<10xf32>) outs(%init : tensor<10xf32>) {
    ^bb0(%a: f32, %s: f32, %q: f32):
      %mean = arith.divf %s, %n : f32
      %d = arith.subf %a, %mean : f32
      %dd = arith.mulf %d, %d : f32
      %r = arith.addf %dd, %q : f32
      linalg.yield %r : f32
  } -> tensor<10xf32>
  %y = linalg.generic {indexing_maps = [#ij, #i, #i, #j, #j, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %squares, %scale, %shift
          : tensor<10x320xf32>, tensor<10xf32>, tensor<10xf32>, tensor<320xf32>, tensor<320xf32>)
      outs(%e2 : tensor<10x320xf32>) {
    ^bb0(%a: f32, %s: f32, %q: f32, %g: f32, %b: f32, %o: f32):
      %mean = arith.divf %s, %n : f32
      %var = arith.divf %q, %n : f32
      %ve = arith.addf %var, %eps : f32
      %inv = math.rsqrt %ve : f32
      %d = arith.subf %a, %mean : f32
      %t = arith.mulf %d, %inv : f32
      %u = arith.mulf %t, %g : f32
      %r = arith.addf %u, %b : f32
      linalg.yield %r : f32
  } -> tensor<10x320xf32>
  return %y : tensor<10x320xf32>
}""",
    inputs=normals(((10, 320), np.float32), ((320,), np.float32), ((320,), np.float32)),
    reference=layer_norm_reference,
    rtol=1e-4,
    atol=1e-5,
)

FUSED_ELEMENTWISE = Program(
    name="multiply_add_f32",
    mlir="""
func.func @main(%a: tensor<1000xf32>, %b: tensor<1000xf32>) -> tensor<1000xf32> {
  %m = arith.mulf %a, %b : tensor<1000xf32>
  %s = arith.addf %m, %a : tensor<1000xf32>
  return %s : tensor<1000xf32>
}""",
    inputs=small_integers(((1000,), np.float32), ((1000,), np.float32)),
    reference=lambda a, b: a * b + a,
)

INTEGER_DIVISION = Program(
    name="integer_division_i32",
    mlir="""
func.func @main(%a: tensor<300xi32>, %b: tensor<300xi32>) -> tensor<300xi32> {
  %q = arith.divsi %a, %b : tensor<300xi32>
  %r = arith.remui %a, %b : tensor<300xi32>
  %s = arith.addi %q, %r : tensor<300xi32>
  return %s : tensor<300xi32>
}""",
    inputs=lambda rng: (
        rng.integers(-(2**31), 2**31, 300).astype(np.int32),
        rng.integers(1, 100000, 300).astype(np.int32),
    ),
    reference=lambda a, b: (
        np.trunc(a.astype(np.float64) / b).astype(np.int64) + a.view(np.uint32).astype(np.int64) % b
    ).astype(np.int32),
)

SELECT = Program(
    name="compare_select_f32",
    mlir="""
func.func @main(%a: tensor<33x65xf32>, %b: tensor<33x65xf32>) -> tensor<33x65xf32> {
  %c = arith.cmpf olt, %a, %b : tensor<33x65xf32>
  %n = arith.negf %a : tensor<33x65xf32>
  %s = arith.select %c, %n, %b : tensor<33x65xi1>, tensor<33x65xf32>
  return %s : tensor<33x65xf32>
}""",
    inputs=small_integers(((33, 65), np.float32), ((33, 65), np.float32)),
    reference=lambda a, b: np.where(a < b, -a, b),
)

BATCH_MATMUL = Program(
    name="batch_matmul_f16",
    mlir="""
func.func @main(%a: tensor<3x40x72xf16>, %b: tensor<3x72x56xf16>) -> tensor<3x40x56xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x40x56xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x40x56xf32>) -> tensor<3x40x56xf32>
  %c = linalg.batch_matmul ins(%a, %b : tensor<3x40x72xf16>, tensor<3x72x56xf16>)
       outs(%init : tensor<3x40x56xf32>) -> tensor<3x40x56xf32>
  return %c : tensor<3x40x56xf32>
}""",
    inputs=small_integers(((3, 40, 72), np.float16), ((3, 72, 56), np.float16)),
    reference=lambda a, b: (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32),
)

MATVEC = Program(
    name="matvec_f32",
    mlir="""
func.func @main(%a: tensor<100x257xf32>, %x: tensor<257xf32>) -> tensor<100xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<100xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<100xf32>) -> tensor<100xf32>
  %y = linalg.matvec ins(%a, %x : tensor<100x257xf32>, tensor<257xf32>) outs(%init : tensor<100xf32>) -> tensor<100xf32>
  return %y : tensor<100xf32>
}""",
    inputs=small_integers(((100, 257), np.float32), ((257,), np.float32)),
    reference=lambda a, x: a @ x,
)

DYNAMIC_MATMUL = Program(
    name="dynamic_matmul_f16",
    mlir="""
func.func @main(%a: tensor<?x64xf16>, %b: tensor<64x48xf16>) -> tensor<?x48xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x64xf16>
  %empty = tensor.empty(%m) : tensor<?x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x48xf32>) -> tensor<?x48xf32>
  %c = linalg.matmul ins(%a, %b : tensor<?x64xf16>, tensor<64x48xf16>) outs(%init : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %c : tensor<?x48xf32>
}""",
    inputs=small_integers(((77, 64), np.float16), ((64, 48), np.float16)),
    reference=lambda a, b: (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32),
)

TRANSPOSE = Program(
    name="transpose_f16",
    mlir="""
func.func @main(%x: tensor<70x130xf16>) -> tensor<130x70xf16> {
  %empty = tensor.empty() : tensor<130x70xf16>
  %y = linalg.transpose ins(%x : tensor<70x130xf16>) outs(%empty : tensor<130x70xf16>) permutation = [1, 0]
  return %y : tensor<130x70xf16>
}""",
    inputs=small_integers(((70, 130), np.float16)),
    reference=lambda x: x.T,
)

MAX_POOL = Program(
    name="max_pool_f32",
    mlir="""
func.func @main(%x: tensor<1x18x18x20xf32>) -> tensor<1x8x8x20xf32> {
  %low = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<3x3xf32>
  %empty = tensor.empty() : tensor<1x8x8x20xf32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<1x8x8x20xf32>) -> tensor<1x8x8x20xf32>
  %y = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
       ins(%x, %window : tensor<1x18x18x20xf32>, tensor<3x3xf32>) outs(%init : tensor<1x8x8x20xf32>) -> tensor<1x8x8x20xf32>
  return %y : tensor<1x8x8x20xf32>
}""",
    inputs=small_integers(((1, 18, 18, 20), np.float32)),
    reference=lambda x: np.max(
        [x[:, i : i + 15 : 2, j : j + 15 : 2] for i in range(3) for j in range(3)], axis=0
    ),
)

DEPTHWISE = Program(
    name="depthwise_conv_f32",
    mlir="""
func.func @main(%x: tensor<1x14x14x36xf32>, %w: tensor<3x3x36xf32>) -> tensor<1x12x12x36xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x12x12x36xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x12x12x36xf32>) -> tensor<1x12x12x36xf32>
  %y = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
       ins(%x, %w : tensor<1x14x14x36xf32>, tensor<3x3x36xf32>) outs(%init : tensor<1x12x12x36xf32>) -> tensor<1x12x12x36xf32>
  return %y : tensor<1x12x12x36xf32>
}""",
    inputs=small_integers(((1, 14, 14, 36), np.float32), ((3, 3, 36), np.float32)),
    reference=lambda x, w: sum(
        x[:, i : i + 12, j : j + 12] * w[i, j] for i in range(3) for j in range(3)
    ),
)

ARGMAX = Program(
    name="argmax_f32",
    mlir="""
func.func @main(%x: tensor<20x150xf32>) -> tensor<20xi32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i32
  %e0 = tensor.empty() : tensor<20xf32>
  %e1 = tensor.empty() : tensor<20xi32>
  %i0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<20xf32>) -> tensor<20xf32>
  %i1 = linalg.fill ins(%zero : i32) outs(%e1 : tensor<20xi32>) -> tensor<20xi32>
  %y:2 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<20x150xf32>) outs(%i0, %i1 : tensor<20xf32>, tensor<20xi32>) {
    ^bb0(%in: f32, %best: f32, %at: i32):
      %j = linalg.index 1 : index
      %j32 = arith.index_cast %j : index to i32
      %more = arith.cmpf ogt, %in, %best : f32
      %b = arith.select %more, %in, %best : f32
      %k = arith.select %more, %j32, %at : i32
      linalg.yield %b, %k : f32, i32
  } -> (tensor<20xf32>, tensor<20xi32>)
  return %y#1 : tensor<20xi32>
}""",
    inputs=normals(((20, 150), np.float32)),
    reference=lambda x: np.argmax(x, axis=1).astype(np.int32),
)

GATHER = Program(
    name="gather_rows_f32",
    mlir="""
func.func @main(%table: tensor<50x24xf32>, %rows: tensor<33xi32>) -> tensor<33x24xf32> {
  %empty = tensor.empty() : tensor<33x24xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<33xi32>) outs(%empty : tensor<33x24xf32>) {
    ^bb0(%row: i32, %out: f32):
      %j = linalg.index 1 : index
      %i = arith.index_cast %row : i32 to index
      %v = tensor.extract %table[%i, %j] : tensor<50x24xf32>
      linalg.yield %v : f32
  } -> tensor<33x24xf32>
  return %y : tensor<33x24xf32>
}""",
    inputs=lambda rng: (
        rng.standard_normal((50, 24)).astype(np.float32),
        rng.integers(0, 50, 33).astype(np.int32),
    ),
    reference=lambda table, rows: table[rows],
)

PAD = Program(
    name="pad_f32",
    mlir="""
func.func @main(%x: tensor<9x13xf32>) -> tensor<16x16xf32> {
  %v = arith.constant 5.0 : f32
  %y = tensor.pad %x low[2, 1] high[5, 2] {
    ^bb0(%i: index, %j: index):
      tensor.yield %v : f32
  } : tensor<9x13xf32> to tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}""",
    inputs=small_integers(((9, 13), np.float32)),
    reference=lambda x: np.pad(x, ((2, 5), (1, 2)), constant_values=5),
)

CAST = Program(
    name="round_to_bf16",
    mlir="""
func.func @main(%x: tensor<40x30xf32>) -> tensor<40x30xbf16> {
  %y = arith.truncf %x : tensor<40x30xf32> to tensor<40x30xbf16>
  return %y : tensor<40x30xbf16>
}""",
    inputs=normals(((40, 30), np.float32)),
    reference=lambda x: x.astype(ml_dtypes.bfloat16),
)

CAST_TO_INTEGER = Program(
    name="truncate_to_i8",
    mlir="""
func.func @main(%x: tensor<40x30xf32>) -> tensor<40x30xi8> {
  %y = arith.fptosi %x : tensor<40x30xf32> to tensor<40x30xi8>
  return %y : tensor<40x30xi8>
}""",
    inputs=lambda rng: ((rng.standard_normal((40, 30)) * 20).astype(np.float32),),
    reference=lambda x: x.astype(np.int8),
)

ATTENTION = Program(
    name="attention_f16",
    mlir="""
func.func @main(%q: tensor<2x64x32xf16>, %k: tensor<2x64x32xf16>, %v: tensor<2x64x32xf16>) -> tensor<2x64x32xf16> {
  %scale = arith.constant 0.25 : f16
  %empty = tensor.empty() : tensor<2x64x32xf16>
  %y = iree_linalg_ext.attention <indexing_maps = [
      affine_map<(b, m, k, l, n) -> (b, m, k)>, affine_map<(b, m, k, l, n) -> (b, l, k)>,
      affine_map<(b, m, k, l, n) -> (b, l, n)>, affine_map<(b, m, k, l, n) -> ()>,
      affine_map<(b, m, k, l, n) -> (b, m, n)>]>
      ins(%q, %k, %v, %scale : tensor<2x64x32xf16>, tensor<2x64x32xf16>, tensor<2x64x32xf16>, f16)
      outs(%empty : tensor<2x64x32xf16>) {
    ^bb0(%s: f32):
      iree_linalg_ext.yield %s : f32
  } -> tensor<2x64x32xf16>
  return %y : tensor<2x64x32xf16>
}""",
    inputs=normals(*[((2, 64, 32), np.float16)] * 3),
    reference=lambda q, k, v: (
        softmax(0.25 * q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1))
        @ v.astype(np.float64)
    ).astype(np.float16),
    rtol=2e-2,
    atol=5e-3,
)

QUANTISED_MATMUL = Program(
    name="matmul_i8_i32",
    mlir="""
func.func @main(%a: tensor<64x96xi8>, %b: tensor<96x64xi8>) -> tensor<64x64xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<64x64xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<64x64xi32>) -> tensor<64x64xi32>
  %c = linalg.matmul ins(%a, %b : tensor<64x96xi8>, tensor<96x64xi8>)
       outs(%init : tensor<64x64xi32>) -> tensor<64x64xi32>
  return %c : tensor<64x64xi32>
}""",
    inputs=lambda rng: (
        rng.integers(-128, 128, (64, 96)).astype(np.int8),
        rng.integers(-128, 128, (96, 64)).astype(np.int8),
    ),
    reference=lambda a, b: a.astype(np.int32) @ b.astype(np.int32),
)

GELU = Program(
    name="gelu_f32",
    mlir="""
func.func @main(%x: tensor<19x70xf32>) -> tensor<19x70xf32> {
  %half = arith.constant dense<0.5> : tensor<19x70xf32>
  %one = arith.constant dense<1.0> : tensor<19x70xf32>
  %root = arith.constant dense<0.70710678> : tensor<19x70xf32>
  %s = arith.mulf %x, %root : tensor<19x70xf32>
  %e = math.erf %s : tensor<19x70xf32>
  %p = arith.addf %e, %one : tensor<19x70xf32>
  %h = arith.mulf %x, %half : tensor<19x70xf32>
  %y = arith.mulf %h, %p : tensor<19x70xf32>
  return %y : tensor<19x70xf32>
}""",
    inputs=normals(((19, 70), np.float32)),
    reference=lambda x: (0.5 * x * (1 + erf(x.astype(np.float64) * 0.70710678))).astype(np.float32),
    rtol=1e-5,
    atol=1e-6,
)

INT64 = Program(
    name="integer_arithmetic_i64",
    mlir="""
func.func @main(%a: tensor<77xi64>, %b: tensor<77xi64>) -> tensor<77xi64> {
  %three = arith.constant dense<3> : tensor<77xi64>
  %p = arith.muli %a, %b : tensor<77xi64>
  %s = arith.shrsi %p, %three : tensor<77xi64>
  %m = arith.maxsi %s, %b : tensor<77xi64>
  %d = arith.subi %m, %a : tensor<77xi64>
  return %d : tensor<77xi64>
}""",
    inputs=lambda rng: tuple(rng.integers(-(2**62), 2**62, 77) for _ in range(2)),
    reference=lambda a, b: np.maximum(a * b >> 3, b) - a,
)

erf = np.vectorize(math.erf)

PROGRAMS: tuple[Program, ...] = (
    FUSED_ELEMENTWISE,
    INTEGER_DIVISION,
    SELECT,
    CAST,
    CAST_TO_INTEGER,
    unary("exp_f32", "math.exp", "f32", np.float32, np.exp, 1e-5),
    unary("tanh_f16", "math.tanh", "f16", np.float16, np.tanh, 2e-3),
    unary("erf_f32", "math.erf", "f32", np.float32, erf, 1e-5),
    unary("log_f32", "math.log", "f32", np.float32, np.log, 1e-5, positive=True),
    unary(
        "rsqrt_f32", "math.rsqrt", "f32", np.float32, lambda x: 1 / np.sqrt(x), 1e-5, positive=True
    ),
    unary("sin_f32", "math.sin", "f32", np.float32, np.sin, 1e-5),
    reduction("sum_rows_f32", "arith.addf", "0.0", "f32", np.float32, np.sum, (17, 511)),
    reduction("max_rows_f16", "arith.maximumf", "0xFC00", "f16", np.float16, np.max, (40, 130)),
    reduction("sum_rows_i32", "arith.addi", "0", "i32", np.int32, np.sum, (5, 1000)),
    ARGMAX,
    SOFTMAX,
    LAYER_NORM,
    matmul("matmul_f16", 64, 128, 96, "f16", "f32", np.float16, np.float32),
    matmul("matmul_f16_odd", 45, 70, 33, "f16", "f32", np.float16, np.float32),
    matmul("matmul_bf16", 64, 64, 64, "bf16", "f32", ml_dtypes.bfloat16, np.float32),
    matmul("matmul_f32", 50, 60, 70, "f32", "f32", np.float32, np.float32),
    matmul("matmul_f64", 20, 24, 36, "f64", "f64", np.float64, np.float64),
    matmul("matmul_i32", 20, 24, 36, "i32", "i32", np.int32, np.int32),
    QUANTISED_MATMUL,
    GELU,
    INT64,
    BATCH_MATMUL,
    MATVEC,
    DYNAMIC_MATMUL,
    ATTENTION,
    convolution_nhwc("conv_nhwc_f16", "f16", np.float16, 1),
    convolution_nhwc("conv_nhwc_f32_stride2", "f32", np.float32, 2),
    transposed_convolution(),
    DEPTHWISE,
    MAX_POOL,
    TRANSPOSE,
    PAD,
    GATHER,
)
