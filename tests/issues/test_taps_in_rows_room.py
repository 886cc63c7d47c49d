"""Taps in rows read past the output gradient where the image has room for more output pixels.

In the roles of a convolution or a data gradient the number of output pixels is given, and the image
may have pixels that no window reaches, as behind the last window of a stride. The last ones' window
over the gradient was not padded far enough, and read other elements. Found among problems of any
kind (a data gradient of groups of one channel, 158 of 2418 elements wrong); weight gradients have
as many output pixels as there is room for.
"""

from __future__ import annotations

import pytest

from conv_compiler.problem.canonical import canonical
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.tilings import mma_tilings
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import find_target
from conv_compiler.verification.verify import verify, verify_artifact

PROBLEMS = {
    "fwd": ConvProblem(
        direction="fwd", n=16, k=3, c=4, image=(10,), filter=(3,), stride=2, dtype="f16"
    ),
    "bwd_data": ConvProblem(
        direction="bwd_data",
        n=13,
        g=31,
        k=1,
        c=1,
        image=(6, 1, 1),
        filter=(3, 1, 2),
        stride=(2, 1, 1),
        dilation=(3, 2, 1),
        pad_low=(0, 0, 0),
        pad_high=(1, 0, 2),
        layout="NCDHW_KCZYX_NKDHW",
    ),
}


@pytest.mark.parametrize("direction", PROBLEMS)
@pytest.mark.parametrize("chip", ["gfx942", "gfx1201"])
def test_every_image_pixel_sees_its_outputs_and_no_more(chip, direction):
    problem, target = PROBLEMS[direction], find_target(chip)
    image, window = canonical(problem).padded_image, canonical(problem).filter_extent
    outs = canonical(problem).out_image
    room = [i - w + 1 for i, w in zip(image, window, strict=True)]
    assert any(most > have for most, have in zip(room, outs, strict=True))
    tiling = next(one for _, one in mma_tilings(canonical(problem), target) if one.taps_in_rows)
    for split_k in (1, 2):
        strategy = Strategy(name="implicit_gemm", tiling=tiling, split_k=split_k)
        report = verify(problem, chip, strategy, split_k, budget=0.0).require()
        verify_artifact(report.artifact, data="random", seed=1).require()
