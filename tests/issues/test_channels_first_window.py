"""IREE 3.13 reads a channels-first image in vectors along an axis that the window steps over.

Where the GEMM axis of an im2col joins batch and pixels, the compiler asks only the batch whether
its window, stride and dilation are 1, and takes the innermost image axis for contiguous. Every gfx
kernel of this problem came out wrong, in the same weights on all chips; the virtual GPU showed it.
"""

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.verify import verify

PROBLEM = ConvProblem(
    n=2,
    g=3,
    k=7,
    c=6,
    image=(9, 13),
    filter=(5, 2),
    stride=(1, 2),
    dilation=(2, 3),
    pad_low=(0, 0),
    pad_high=(3, 3),
    layout="NGCHW_GKCYX_NGKHW",
)


@pytest.mark.parametrize("strategy", ["implicit_gemm", "vector_gemm"])
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_windows_along_the_innermost_axis(chip, strategy):
    verify(PROBLEM, chip, strategy, device="vgpu", budget=0.0).require()
