"""Every way to cut the summed loops computes the same weight gradient, on every chip.

The choice among these forms is by modelled time; here each is asked for.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.compile import compile
from conv_compiler.errors import UnsupportedStrategy
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
# Of stride 1 and with fewer channels in the gradient: the taps may be in the rows.
ROWS = ConvProblem(
    n=19, g=2, k=5, c=12, image=(6, 9), filter=(3, 2), pad_low=(1, 0), pad_high=(2, 1),
    dilation=(1, 2),
)  # fmt: skip
PROBLEMS_IN_ROWS = {
    "odd": ROWS,
    "channels_first": replace(ROWS, layout="NGCHW_GKCYX_NGKHW"),
    "whole_taps": ConvProblem(n=16, k=16, c=32, image=(5, 4), filter=(3, 3), pad_low=(1, 1)),
    "wave": ConvProblem(
        n=3, k=7, c=16, image=(41,), filter=(3,), layout="NWGC_GKXC_NWGK", dtype="bf16"
    ),
    "volume": ConvProblem(
        n=17, k=4, c=8, image=(3, 4, 5), filter=(2, 3, 2), pad_low=(1, 1, 0),
        layout="GNDHWC_GKZYXC_GNDHWK", dtype="i8",
    ),
}  # fmt: skip
CASES = [
    pytest.param(
        problem,
        form,
        in_rows,
        chip,
        id=f"{name}-{','.join(form[0]) or 'flat'}{'-rows' * in_rows}-{chip}",
        # Chips take turns by default.
        marks=[] if (number + turn) % len(CHIPS) == 0 else [pytest.mark.slow],
    )
    for turn, chip in enumerate(CHIPS)
    for number, (name, problem, form, in_rows) in enumerate(
        (name, problem, form, in_rows)
        for in_rows, problems in ((False, PROBLEMS), (True, PROBLEMS_IN_ROWS))
        for name, problem in problems.items()
        for form in summed_forms(problem, in_rows)
    )
]


@pytest.mark.parametrize(("problem", "form", "in_rows", "chip"), CASES)
def test_form(problem, form, in_rows, chip):
    tilings = [one for _, one in mma_tilings(problem, find_target(chip))]
    fitting = [tiling for tiling in tilings if tiling.taps_in_rows == in_rows]
    tiling = min(fitting, key=lambda tiling: tiling.workgroup)
    outside, inside = form
    tiling = replace(tiling, outside=outside, inside=inside)
    strategy = Strategy(name="implicit_gemm", tiling=tiling, split_k=3)
    verify(problem, chip, strategy, 3, device="vgpu", budget=0.0).require()


def test_taps_in_rows_need_stride_one():
    fitting = (one for _, one in mma_tilings(ROWS, find_target("gfx942")))
    tiling = next(one for one in fitting if one.taps_in_rows)
    strategy = Strategy(name="implicit_gemm", tiling=tiling, split_k=1)
    with pytest.raises(UnsupportedStrategy, match="need stride 1"):
        compile(replace(ROWS, stride=(2, 1)), "gfx942", strategy)
