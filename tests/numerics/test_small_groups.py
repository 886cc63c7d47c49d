# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The schedule `depthwise_pixels` is right for groups of a few channels, by every product it has:
blocks and tiles of matrix instructions, dot products, fused multiply-adds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import OutOfRegisters, UnsupportedStrategy
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load, to_numpy
from conv_compiler.strategies.gpu.depthwise_pixels import small_groups, tilings
from conv_compiler.strategies.select import candidates, choose
from conv_compiler.strategies.strategy import PixelTiling, Strategy, StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import reference
from conv_compiler.verification.verify import verify
from tests.problems import for_drawn
from tests.turns import in_turn

DIRECTIONS = ("fwd", "bwd_data")
CHIPS = ("gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201")
PROBLEMS = {
    "same": ConvProblem(n=3, g=20, k=4, c=4, image=(9, 12), filter=(3, 3), pad_low=(1, 1)),
    "wider": ConvProblem(
        n=2, g=5, k=8, c=4, image=(11, 13), filter=(5, 3), stride=2, pad_low=(2, 0),
        pad_high=(1, 1),
    ),
    "narrower": ConvProblem(
        n=2, g=3, k=4, c=16, image=(11, 12), filter=(3, 2), stride=(1, 2), dilation=(2, 3),
        pad_low=(3, 1), pad_high=(0, 4), layout="NHWC_KYXC_NHWK",
    ),
    "sixteen": ConvProblem(
        n=3, g=3, k=16, c=16, image=(9, 10), filter=(3, 3), stride=(2, 1), pad_low=(1, 1),
        layout="NHWGC_GKCYX_NHWGK",
    ),
    "odd": ConvProblem(n=3, g=7, k=3, c=5, image=(7, 9), filter=(2, 3), pad_low=(1, 2)),
    "two": ConvProblem(
        n=2, g=9, k=6, c=2, image=(8, 9), filter=(3, 3), pad_low=(1, 1), layout="NHWC_KCYX_NHWK"
    ),
    "one": ConvProblem(n=2, g=12, k=2, c=1, image=(8, 9), filter=(3, 3), pad_low=(1, 1)),
    "wave": ConvProblem(
        n=3, g=6, k=8, c=8, image=(41,), filter=(5,), stride=2, pad_low=(2,),
        layout="NWGC_GKXC_NWGK",
    ),
    "volume": ConvProblem(
        n=2, g=5, k=4, c=8, image=(4, 6, 7), filter=(2, 3, 3), stride=(2, 1, 1),
        pad_low=(1, 1, 1), layout="NDHWGC_GKZYXC_NDHWGK",
    ),
}  # fmt: skip


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("name", "chip"), in_turn(PROBLEMS, CHIPS))
def test_chosen_tilings_are_exact(name, chip, direction):
    problem = replace(PROBLEMS[name], direction=direction)
    verify(problem, chip, "depthwise_pixels").require()


WIDE = {
    "square": ConvProblem(
        n=3, g=3, k=32, c=32, image=(5, 7), filter=(3, 3), stride=(2, 1), pad_low=(1, 1)
    ),
    "taller": ConvProblem(
        n=2, g=2, k=32, c=16, image=(6, 5), filter=(2, 3), layout="NHWGC_GKCYX_NHWGK"
    ),
}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    ("name", "chip", "channels"),
    [
        ("square", "gfx942", 8),
        ("square", "gfx942", 4),
        ("square", "gfx950", 4),
        ("taller", "gfx942", 4),
    ],
)
def test_lanes_share_the_rows_of_wide_groups(name, chip, channels, direction):
    """A lane has a fourth of the result channels of its group, or a fourth of a half of them."""
    problem = replace(WIDE[name], direction=direction)
    for columns, rows in ((2, 3), (3, 1)):
        most = (problem.k if direction == "fwd" else problem.c) // 4
        tile = (columns, rows, min(channels, most))
        verify(problem, chip, StrategyRequest(name="depthwise_pixels", tile=tile)).require()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_wide_groups_are_for_matrix_instructions(direction):
    """Registers of vector code do not hold such filters beside the sums."""
    problem = replace(WIDE["square"], direction=direction)
    assert _product(problem, "gfx942") == ("tiles", "MFMA_F32_16x16x16_F16")
    with pytest.raises(UnsupportedStrategy, match="groups have 16 channels at most"):
        choose(problem, find_target("gfx1100"), "depthwise_pixels")
    with pytest.raises(UnsupportedStrategy, match="groups have 32 channels at most"):
        choose(replace(problem, k=48), find_target("gfx942"), "depthwise_pixels")


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("chip", "dtype"), in_turn(CHIPS, ("bf16", "f32", "i8")))
def test_types(chip, dtype, direction):
    for name in ("same", "sixteen", "two"):
        problem = replace(PROBLEMS[name], direction=direction, dtype=dtype, weight_dtype="")
        verify(problem, chip, "depthwise_pixels").require()


def _product(problem: ConvProblem, chip: str) -> tuple[str, str]:
    one, *_ = choose(problem, find_target(chip), "depthwise_pixels")
    assert isinstance(one.tiling, PixelTiling)
    return one.tiling.product, one.mma


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    ("name", "chip", "dtype", "product"),
    [
        ("same", "gfx942", "f16", ("blocks", "MFMA_F32_4x4x4x16B_F16")),
        ("same", "gfx90a", "bf16", ("blocks", "MFMA_F32_4x4x4x16B_BF16")),
        ("same", "gfx942", "f32", ("fma", "")),
        ("sixteen", "gfx942", "f16", ("tiles", "MFMA_F32_16x16x16_F16")),
        ("sixteen", "gfx942", "f32", ("tiles", "MFMA_F32_16x16x4_F32")),
        ("same", "gfx1100", "f16", ("dot", "")),
        ("same", "gfx1201", "bf16", ("dot", "")),
        ("same", "gfx1100", "i8", ("dot", "")),
        ("same", "gfx908", "bf16", ("fma", "")),
        ("same", "gfx1250", "f16", ("fma", "")),
        ("odd", "gfx942", "f16", ("fma", "")),
    ],
)
def test_products(name, chip, dtype, product, direction):
    problem = replace(PROBLEMS[name], direction=direction, dtype=dtype, weight_dtype="")
    assert _product(problem, chip) == product


def test_blocks_do_not_flush_what_gradients_hold():
    """gfx90a's matrix instructions take denormals of f16 as 0: gradients become bf16, or stay in
    vector code where the type is asked for by a strategy without them."""
    problem = replace(PROBLEMS["same"], direction="bwd_data")
    assert _product(problem, "gfx90a") == ("blocks", "MFMA_F32_4x4x4x16B_BF16")
    verify(problem, "gfx90a", "depthwise_pixels", data="denormal").require()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("elementwise", ["bilinear(2, 1)", "add:f32"])
@pytest.mark.parametrize(("name", "chip"), [("wider", "gfx942"), ("sixteen", "gfx942"),
                                            ("two", "gfx1100")])  # fmt: skip
def test_ops_in_the_same_kernel(name, chip, elementwise, direction):
    source = {"fwd": "input_op", "bwd_data": "output_op"}[direction]
    ops = {source: "relu", "weight_op": "scale(2)"}
    problem = replace(PROBLEMS[name], direction=direction, elementwise=elementwise, **ops)
    verify(problem, chip, "depthwise_pixels").require()
    assert len(compile(problem, chip, "depthwise_pixels").kernels) == 1


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("name", "chip"), [("same", "gfx942"), ("sixteen", "gfx942"),
                                            ("same", "gfx1100")])  # fmt: skip
def test_what_is_not_finite_stays_in_its_group(name, chip, direction):
    """One group's source is NaN and its weights infinite: the others are exact."""
    problem = replace(PROBLEMS[name], direction=direction)
    kernel = load(compile(problem, chip, "depthwise_pixels"))
    source, weight = inputs(problem, "integers", 0)
    source[..., 1, :], weight[1] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        want = reference(problem, source, weight)
    got = to_numpy(kernel(kernel.put(source), kernel.put(weight)))
    others = np.arange(problem.g) != 1
    assert np.isnan(got[..., 1, :]).any()
    assert np.array_equal(got[..., others, :], want[..., others, :])


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"k": 17}, "groups have 16 channels at most"),
        ({"g": 1}, "it takes several groups"),
        ({"layout": "GNHWC_GKYXC_GNHWK"}, "channels lie last in its layouts"),
        ({"c": 16, "k": 15, "filter": (5, 5)}, "registers do not hold the weights"),
        ({"direction": "bwd_weight"}, "it computes fwd and bwd_data"),
    ],
)
def test_refused(changes, rule):
    problem = replace(PROBLEMS["same"], **{"direction": "fwd", **changes})
    with pytest.raises(UnsupportedStrategy, match=f"depthwise_pixels: has no tile.*{rule}"):
        candidates(problem, find_target("gfx942"), "depthwise_pixels")


@st.composite
def _drawn(draw, direction):
    """A problem with a few channels a group, and which of its tilings."""
    rank = draw(st.sampled_from([1, 2, 2, 3]))
    most, longest = {1: (40, 5), 2: (12, 4), 3: (6, 3)}[rank]

    def several(least, most):
        return draw(st.tuples(*[st.integers(least, most)] * rank))

    dilation, taps, low, high = several(1, 3), several(1, longest), several(0, 3), several(0, 3)
    extents = [
        (f - 1) * d + 1 - a - b for f, d, a, b in zip(taps, dilation, low, high, strict=True)
    ]
    image = tuple(max(least, size) for least, size in zip(extents, several(1, most), strict=True))
    some = st.sampled_from([1, 2, 3, 4, 4, 5, 8, 8, 12, 16, 16])
    problem = ConvProblem(
        n=draw(st.integers(1, 4)), g=draw(st.sampled_from([2, 3, 7, 8, 20])), k=draw(some),
        c=draw(some), image=image, filter=taps, stride=several(1, 3 if rank < 3 else 2),
        dilation=dilation, pad_low=low, pad_high=high,
        dtype=draw(st.sampled_from(["f16", "bf16", "f32", "i8"])), direction=direction,
        layout=draw(st.sampled_from(
            ["NHWGC_GKYXC_NHWGK", "NHWGC_GKCYX_NHWGK", "NHWC_KYXC_NHWK", "NHWC_KCYX_NHWK"]
        )),
        elementwise=draw(st.sampled_from(["", "", "", "bilinear(2, 1)", "relu"])),
    )  # fmt: skip
    return problem, draw(st.integers(0, 10**6))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    ("chip", "number"),
    [
        *(("gfx942", 3), ("gfx1100", 2)),
        *(pytest.param(chip, 60, marks=pytest.mark.slow) for chip in CHIPS),
    ],
)
def test_random_problems_with_random_tilings(chip, number, direction):
    target = find_target(chip)

    @for_drawn(_drawn(direction), number, f"small groups {chip} {direction}")
    def _(drawn: tuple[ConvProblem, int]) -> None:
        problem, which = drawn
        wgrad = resolve(problem, target).wgrad
        assert small_groups(wgrad, target)
        if not (found := tuple(dict.fromkeys(tilings(wgrad, target)))):
            return  # the filter of a thread is too large
        one = Strategy(name="depthwise_pixels", tiling=found[which % len(found)], split_k=1)
        try:
            verify(problem, chip, one).require()
        except OutOfRegisters:  # a choice passes it over
            verify(problem, chip, "depthwise_pixels").require()
