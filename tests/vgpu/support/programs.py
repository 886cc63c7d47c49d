"""Small linalg programs with their meaning in numpy: what the virtual GPU is asked to run besides our own kernels.

Each is a file of `programs/` and a row here. IREE compiles them with its default pipelines, so the kernels use
whatever instructions the compiler likes. Sizes are chosen so that some divide the tiles and some do not.
"""

from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

from tests.vgpu.support import references as r
from tests.vgpu.support.references import Inputs, Reference, both, integers, normals, small_integers

FOLDER = Path(__file__).parents[1] / "programs"

bf16, f16, f32, f64 = ml_dtypes.bfloat16, np.float16, np.float32, np.float64
i8, i32, i64 = np.int8, np.int32, np.int64


@dataclass(frozen=True)
class Program:
    """One function `@main`, its inputs and what it computes.

    `tolerance` is (relative, absolute), 0 where every intermediate value is exact; inputs are
    integer-valued there. `flags` are iree-compile's.
    """

    name: str
    inputs: Inputs
    reference: Reference
    tolerance: tuple[float, float] = (0, 0)
    flags: tuple[str, ...] = ()

    @property
    def mlir(self) -> str:
        return (FOLDER / f"{self.name}.mlir").read_text()


ODD = (37, 51)  # divides nothing
# fmt: off
PROGRAMS: tuple[Program, ...] = (
    Program("multiply_add_f32", small_integers(((1000,), f32), ((1000,), f32)), lambda a, b: a * b + a),
    Program(
        "integer_division_i32",
        both(integers(-(2**31), 2**31, ((300,), i32)), integers(1, 100000, ((300,), i32))),
        r.divide_and_remainder,
    ),
    Program("compare_select_f32", small_integers(((33, 65), f32), ((33, 65), f32)), lambda a, b: np.where(a < b, -a, b)),
    Program("round_to_bf16", normals(((40, 30), f32)), lambda x: x.astype(bf16)),
    Program("truncate_to_i8", normals(((40, 30), f32), scale=20), lambda x: x.astype(i8)),
    Program("exp_f32", normals((ODD, f32), scale=2), r.elementwise(np.exp), (1e-5, 1e-5)),
    Program("tanh_f16", normals((ODD, f16), scale=2), r.elementwise(np.tanh), (2e-3, 2e-3)),
    Program("erf_f32", normals((ODD, f32), scale=2), r.elementwise(r.erf), (1e-5, 1e-5)),
    Program("log_f32", r.positive(ODD, f32), r.elementwise(np.log), (1e-5, 1e-5)),
    Program("rsqrt_f32", r.positive(ODD, f32), r.elementwise(lambda x: 1 / np.sqrt(x)), (1e-5, 1e-5)),
    Program("sin_f32", normals((ODD, f32), scale=2), r.elementwise(np.sin), (1e-5, 1e-5)),
    Program("gelu_f32", normals(((19, 70), f32)), r.elementwise(r.gelu), (1e-5, 1e-6)),
    Program("integer_arithmetic_i64", integers(-(2**62), 2**62, ((77,), i64), ((77,), i64)), lambda a, b: np.maximum(a * b >> 3, b) - a),
    Program("sum_rows_f32", small_integers(((17, 511), f32)), r.rows(np.sum)),
    Program("max_rows_f16", small_integers(((40, 130), f16)), r.rows(np.max)),
    Program("sum_rows_i32", small_integers(((5, 1000), i32)), r.rows(np.sum)),
    Program("argmax_f32", normals(((20, 150), f32)), lambda x: np.argmax(x, axis=1).astype(i32)),
    Program("softmax_f32", normals(((12, 193), f32)), r.softmax, (1e-5, 1e-7)),
    Program("layer_norm_f32", normals(((10, 320), f32), ((320,), f32), ((320,), f32)), r.layer_norm, (1e-4, 1e-5)),
    Program("matmul_f16", small_integers(((64, 96), f16), ((96, 128), f16)), r.matmul(f32)),
    Program("matmul_f16_odd", small_integers(((45, 33), f16), ((33, 70), f16)), r.matmul(f32)),
    Program("matmul_bf16", small_integers(((64, 64), bf16), ((64, 64), bf16)), r.matmul(f32)),
    Program("matmul_f32", small_integers(((50, 70), f32), ((70, 60), f32)), r.matmul(f32)),
    Program("matmul_f64", small_integers(((20, 36), f64), ((36, 24), f64)), r.matmul(f64), flags=("--iree-input-demote-f64-to-f32=false",)),
    Program("matmul_i32", small_integers(((20, 36), i32), ((36, 24), i32)), r.matmul(i32)),
    Program("matmul_i8_i32", integers(-128, 128, ((64, 96), i8), ((96, 64), i8)), r.matmul(i32)),
    Program("batch_matmul_f16", small_integers(((3, 40, 72), f16), ((3, 72, 56), f16)), r.matmul(f32)),
    Program("matvec_f32", small_integers(((100, 257), f32), ((257,), f32)), r.matmul(f32)),
    Program("dynamic_matmul_f16", small_integers(((77, 64), f16), ((64, 48), f16)), r.matmul(f32)),
    Program("gram_product_f32", small_integers(((8, 64), f32)), lambda x: x.T @ (x @ x.T)),
    Program("attention_f16", normals(*[((2, 64, 32), f16)] * 3), r.attention, (2e-2, 5e-3)),
    Program("conv_nhwc_f16", small_integers(((2, 16, 16, 24), f16), ((3, 3, 24, 32), f16)), r.convolution(1)),
    Program("conv_nhwc_f32_stride2", small_integers(((2, 16, 16, 24), f32), ((3, 3, 24, 32), f32)), r.convolution(2)),
    Program("transposed_conv_f16", small_integers(((1, 7, 7, 16), f16), ((3, 3, 16, 16), f16)), r.transposed_convolution),
    Program("depthwise_conv_f32", small_integers(((1, 14, 14, 36), f32), ((3, 3, 36), f32)), r.depthwise),
    Program("max_pool_f32", small_integers(((1, 18, 18, 20), f32)), r.max_pool),
    Program("transpose_f16", small_integers(((70, 130), f16)), lambda x: x.T),
    Program("pad_f32", small_integers(((9, 13), f32)), lambda x: np.pad(x, ((2, 5), (1, 2)), constant_values=5)),
    Program("gather_rows_f32", both(normals(((50, 24), f32)), integers(0, 50, ((33,), i32))), lambda table, rows: table[rows]),
)
# fmt: on
BY_NAME = {program.name: program for program in PROGRAMS}
