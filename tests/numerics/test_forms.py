"""Every way to cut the summed loops computes the same weight gradient, on every chip.

The choice among these forms is by modelled time; here each is asked for.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.loop_order import summed_forms
from conv_compiler.strategies.gpu.tilings import mma_tilings
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import find_target
from conv_compiler.verification.verify import verify
from tests.chips import EXECUTED

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
# Groups of few channels that lie side by side: some may be one to the GEMM.
MERGED = ConvProblem(
    n=19, g=12, k=3, c=5, image=(6, 9), filter=(3, 2), pad_low=(1, 0), pad_high=(2, 1),
    stride=(2, 1), dilation=(1, 2),
)  # fmt: skip
PROBLEMS_MERGED = {
    "odd": MERGED,
    "channels_first": replace(MERGED, layout="NGCHW_GKCYX_NGKHW"),
    "depthwise": ConvProblem(
        n=16, g=32, k=1, c=1, image=(5, 4), filter=(3, 3), pad_low=(1, 1),
        layout="NHWC_KYXC_NHWK", dtype="bf16",
    ),
    "whole_taps": ConvProblem(n=16, g=8, k=4, c=4, image=(5, 4), filter=(3, 3), pad_low=(1, 1)),
    "volume": ConvProblem(
        n=17, g=8, k=2, c=8, image=(3, 4, 5), filter=(2, 3, 2), pad_low=(1, 1, 0),
        layout="NDHWGC_GKCZYX_NDHWGK", dtype="i8",
    ),
}  # fmt: skip
WAYS = {"": PROBLEMS, "-rows": PROBLEMS_IN_ROWS, "-merged": PROBLEMS_MERGED}
CASES = [
    pytest.param(
        problem,
        form,
        way,
        chip,
        id=f"{name}-{','.join(form[0]) or 'flat'}{way}-{chip}",
        # Chips take turns by default.
        marks=[] if (number + turn) % len(EXECUTED) == 0 else [pytest.mark.slow],
    )
    for turn, chip in enumerate(EXECUTED)
    for number, (name, problem, form, way) in enumerate(
        (name, problem, form, way)
        for way, problems in WAYS.items()
        for name, problem in problems.items()
        for form in summed_forms(problem, way == "-rows")
    )
]


def fitting(problem, chip, way):
    """The smallest tiling of a way."""
    tilings = (one for _, one in mma_tilings(problem, find_target(chip)))
    ways = {"": (False, False), "-rows": (True, False), "-merged": (False, True)}
    return min(
        (one for one in tilings if (one.taps_in_rows, one.merged_groups > 1) == ways[way]),
        key=lambda tiling: tiling.workgroup,
    )


@pytest.mark.parametrize(("problem", "form", "way", "chip"), CASES)
def test_form(problem, form, way, chip):
    outside, inside = form
    tiling = replace(fitting(problem, chip, way), outside=outside, inside=inside)
    strategy = Strategy(name="implicit_gemm", tiling=tiling, split_k=3)
    verify(problem, chip, strategy, 3, device="vgpu", budget=0.0).require()


def test_taps_in_rows_need_stride_one():
    tiling = fitting(ROWS, "gfx942", "-rows")
    strategy = Strategy(name="implicit_gemm", tiling=tiling, split_k=1)
    with pytest.raises(UnsupportedStrategy, match="need stride 1"):
        compile(replace(ROWS, stride=(2, 1)), "gfx942", strategy)


@pytest.mark.parametrize("change", [{"layout": "GNHWC_GKYXC_GNHWK"}, {"g": 9}])
def test_merged_groups_lie_side_by_side(change):
    strategy = Strategy(
        name="implicit_gemm", tiling=fitting(MERGED, "gfx942", "-merged"), split_k=1
    )
    with pytest.raises(UnsupportedStrategy, match="groups merged: channels of a whole number"):
        compile(replace(MERGED, **change), "gfx942", strategy)
