"""`expand-strided-metadata` before rows of LDS are lengthened wrote their old strides down.

The kernel then read LDS that nobody had written; behind the passes that lengthen rows it is right.
"""

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.strategy import GpuTiling, Strategy
from conv_compiler.verification.verify import verify_artifact

PROBLEM = ConvProblem(
    n=1,
    g=2,
    k=128,
    c=256,
    image=(14, 14, 3),
    filter=(3, 3, 3),
    pad_low=(1, 1, 1),
    layout="GNDHWC_GKZYXC_GNDHWK",
    dtype="f32",
)
TILING = GpuTiling(
    workgroup=(128, 32, 8),
    subgroups=(2, 2),
    mma="MFMA_F32_16x16x4_F32",
    copy_a=(4, 1),
    copy_b=(1, 1),
    stages=2,
    taps_outside=True,
)


def test_lds_is_read_where_it_was_written() -> None:
    strategy = Strategy(name="implicit_gemm", tiling=TILING, split_k=4)
    verify_artifact(compile(PROBLEM, "gfx942", strategy), device="vgpu-checked").require()
