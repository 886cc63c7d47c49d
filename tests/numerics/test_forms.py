"""Every way to cut the summed loops computes the same weight gradient, on every chip.

The choice among these forms is by modelled time; here each is asked for.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.gpu_tiles import mma_tilings, summed_forms
from conv_compiler.problem import ConvProblem
from conv_compiler.strategy import Strategy
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.verify import verify

CHIPS = [name for name, row in TARGETS.items() if row.backend == "rocm"]
# Odd sizes, strides, dilations and pads; more images than a tile and not a multiple of it.
ODD = ConvProblem(
    n=19, g=2, k=21, c=12, image=(6, 9), filter=(3, 2), pad_low=(1, 0), pad_high=(2, 1),
    stride=(2, 1), dilation=(1, 2),
)  # fmt: skip
PROBLEMS = {
    "odd": ODD,
    "channels_first": replace(ODD, layout="NGCHW_GKCYX_NGKHW"),
    "whole_taps": ConvProblem(n=16, k=32, c=32, image=(5, 4), filter=(3, 3), pad_low=(1, 1)),
    "pointwise": ConvProblem(n=18, k=20, c=16, image=(3, 5), filter=(1, 1)),
    "wave": ConvProblem(
        n=3, k=17, c=16, image=(41,), filter=(3,), layout="NWGC_GKXC_NWGK", dtype="bf16"
    ),
    "volume": ConvProblem(
        n=17, k=16, c=8, image=(3, 4, 5), filter=(2, 3, 2), pad_low=(1, 1, 0),
        layout="NDHWGC_GKZYXC_NDHWGK",
    ),
}  # fmt: skip
CASES = [
    pytest.param(
        problem,
        form,
        chip,
        id=f"{name}-{','.join(form[0]) or 'flat'}-{chip}",
        # Chips take turns by default.
        marks=[] if (number + turn) % len(CHIPS) == 0 else [pytest.mark.slow],
    )
    for turn, chip in enumerate(CHIPS)
    for number, (name, problem, form) in enumerate(
        (name, problem, form)
        for name, problem in PROBLEMS.items()
        for form in summed_forms(problem)
    )
]


@pytest.mark.parametrize(("problem", "form", "chip"), CASES)
def test_form(problem, form, chip):
    tilings = mma_tilings(problem, find_target(chip))
    _, tiling = min(tilings, key=lambda found: found[1].workgroup)
    outside, inside = form
    tiling = replace(tiling, outside=outside, inside=inside)
    strategy = Strategy(name="implicit_gemm", tiling=tiling, split_k=3)
    verify(problem, chip, strategy, 3, device="vgpu", budget=0.0).require()
