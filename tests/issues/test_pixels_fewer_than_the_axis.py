"""IREE 3.13 reads the innermost axis of an image in vectors, although the sum needs fewer pixels.

In the roles of other directions an image may have more pixels than are summed: pads beyond the
filter, or an image within one stride. A vector then reached past the last pixel into the next,
where the next image's first one was due. Every gfx kernel of such channels-first problems came out
wrong, on the virtual GPU (`passes/implicit_gemm_parts/im2col.py`, `behind_unit_axis`).
"""

from __future__ import annotations

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.verify import verify
from tests.turns import in_turn

SMALLEST = ConvProblem(
    n=2,
    k=2,
    c=2,
    image=(1,),
    filter=(1,),
    pad_low=(3,),
    layout="NCW_KXC_NKW",
    dtype="f32",
    direction="bwd_data",
)
SEEN = ConvProblem(
    n=1,
    k=7,
    c=16,
    image=(2,),
    filter=(3,),
    stride=(2,),
    pad_low=(6,),
    layout="NCW_KXC_NKW",
    dtype="f32",
    direction="bwd_data",
)
# One output pixel of an image within a stride: the same in the roles of a convolution.
FORWARD = ConvProblem(
    n=2,
    k=4,
    c=4,
    image=(3, 4),
    filter=(1, 1),
    stride=(3, 5),
    layout="NGCHW_GKCYX_NGKHW",
    dtype="f16",
    direction="fwd",
)


@pytest.mark.parametrize(
    ("chip", "problem", "strategy", "split_k"),
    in_turn(
        ["gfx942", "gfx1100"],
        [SMALLEST, SEEN, FORWARD],
        ["implicit_gemm", "vector_gemm"],
        [1, 2],
    ),
)
def test_no_vector_reaches_past_the_last_pixel(chip, problem, strategy, split_k):
    if strategy == "implicit_gemm" and problem.dtype == "f32" and chip == "gfx1100":
        pytest.skip("gfx1100 has no matrix instruction of f32")
    verify(problem, chip, strategy, split_k, device="vgpu", budget=0.0).require()


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_by_the_choice_of_the_model(chip):
    verify(SEEN, chip, device="vgpu", budget=0.0).require()
