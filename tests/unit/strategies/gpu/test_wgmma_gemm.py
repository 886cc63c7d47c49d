"""`wgmma_gemm`: where it fits and why not elsewhere, its candidates, what its kernels promise."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.artifacts.kernel_facts import KernelFacts
from conv_compiler.compiler.proofs import prove
from conv_compiler.errors import (
    NotLoadedToLds,
    OutOfRegisters,
    StrategyNotApplied,
    UnsupportedStrategy,
)
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.wgmma_gemm import WGMMA_GEMM, splits, tilings
from conv_compiler.strategies.gpu.wgmma_gemm_cost import (
    column_tiles,
    columns_of,
    k_tiles,
    lds_bytes,
    predict,
    resident,
    sum_slices,
    workgroups,
)
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import Strategy, StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

HOPPER = find_target("sm_90a")
LAYER = ConvProblem(
    n=32, k=128, c=256, image=(14, 14), filter=(3, 3), pad_low=(1, 1), layout="NHWC_KYXC_NHWK"
)
NAME = WGMMA_GEMM.name
MMA = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"


@pytest.mark.parametrize(
    ("changes", "chip", "why"),
    [
        ({}, "sm_89", "wave groups of its chip multiply its types"),
        ({"dtype": "f32"}, "sm_90a", "wave groups of its chip multiply its types"),
        ({"dtype": "i8"}, "sm_90a", "wave groups of its chip multiply its types"),
        ({"direction": "fwd"}, "sm_90a", "it computes weight gradients"),
        ({"direction": "bwd_data"}, "sm_90a", "it computes weight gradients"),
        ({"layout": "NCHW_KCYX_NKHW"}, "sm_90a", "channels lie last in its layouts"),
        ({"c": 2}, "sm_90a", "its groups have 3 channels or more"),
    ],
)
def test_it_says_where_it_does_not_fit(changes, chip, why):
    problem = replace(LAYER, weight_dtype="", **changes)
    target = find_target(chip)
    assert why in WGMMA_GEMM.refusal(resolve(problem, target).wgrad, target)
    with pytest.raises(UnsupportedStrategy, match=why):
        choose(problem, target, NAME)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize(
    "layout", ["NHWC_KYXC_NHWK", "NHWGC_GKYXC_NHWGK", "GNHWC_GKYXC_GNHWK", "NHWC_KCYX_NHWK"]
)
def test_wide_weight_gradients_take_it(dtype, layout):
    first, *_ = choose(replace(LAYER, dtype=dtype, weight_dtype="", layout=layout), HOPPER)
    assert first.name == NAME
    assert first.mma.endswith(f"x16_{dtype.upper()}")


def test_f32_as_terms_of_bf16_takes_it_too():
    """The terms are images of one larger batch."""
    first, *_ = choose(replace(LAYER, dtype="f32", compute="bf16x3", weight_dtype=""), HOPPER)
    assert (first.name, first.mma[-4:]) == (NAME, "BF16")


@pytest.mark.parametrize("changes", [{"c": 3}, {"c": 252}, {"k": 36}, {"k": 819}], ids=str)
def test_channels_need_not_be_a_multiple_of_eight(changes):
    assert choose(replace(LAYER, **changes), HOPPER)[0].name == NAME


def test_groups_of_few_channels_are_merged():
    for width in (4, 8, 16):
        narrow = replace(LAYER, g=32, k=width, c=width, layout="NHWGC_GKYXC_NHWGK")
        first = choose(narrow, HOPPER, NAME)[0]
        assert (first.name, first.tiling.merged_groups) == (NAME, 64 // width)
        assert f"{64 // width} groups merged" in first.text


def test_groups_that_are_not_adjacent_are_not_merged():
    apart = replace(LAYER, g=32, k=8, c=8, layout="GNHWC_GKYXC_GNHWK")
    assert {tiling.merged_groups for tiling in tilings(apart, HOPPER)} == {1}


def test_depthwise_problems_do_not_take_it():
    single = replace(LAYER, g=144, k=1, c=1, layout="NHWGC_GKYXC_NHWGK")
    assert choose(single, HOPPER)[0].name == "depthwise"


@given(
    k=st.integers(3, 800),
    c=st.integers(3, 800),
    g=st.integers(1, 5),
    n=st.integers(1, 40),
    image=st.integers(3, 60),
    stride=st.integers(1, 3),
    asked=st.integers(0, 20),
)
@settings(max_examples=40, deadline=None)
def test_candidates_fit_the_chip_and_the_problem(k, c, g, n, image, stride, asked):
    problem = ConvProblem(
        n=n,
        g=g,
        k=k,
        c=c,
        image=(image, image),
        filter=(3, 3),
        pad_low=(1, 1),
        stride=(stride, stride),
        layout="NHWGC_GKYXC_NHWGK",
    )
    asked = min(asked, problem.gemm_k)
    for one in WGMMA_GEMM.candidates(problem, HOPPER, asked, ()):
        (m, width, _), (groups_m, groups_n) = one.tiling.workgroup, one.tiling.warp_groups
        assert lds_bytes(one.tiling) <= HOPPER.lds_bytes
        assert m % (64 * groups_m) == width % (64 * groups_n) == 0
        merged = one.tiling.merged_groups
        assert m - 64 < k * merged
        assert width - 64 < columns_of(problem, merged)
        assert WGMMA_GEMM.filled_parts(problem, one, one.split_k) == one.split_k
        assert one.split_k <= k_tiles(problem, one.tiling)
        assert predict(problem, HOPPER, one.tiling, one.split_k) > 0
        assert Strategy.from_json(one.to_json()) == one


def test_parts_fill_the_chip():
    """A factor is tried that leaves at most one workgroup a unit, and no room for another part."""
    for tiling in tilings(LAYER, HOPPER):
        slots = HOPPER.compute_units * resident(HOPPER, tiling)
        several = [workgroups(LAYER, tiling) * parts for parts in splits(LAYER, HOPPER, tiling)]
        iterations = k_tiles(LAYER, tiling)
        full = [one for one in several if one <= slots]
        assert max(full) > 0.7 * slots or max(several) * 4 >= iterations


def test_slices_have_two_parts_or_more():
    few = replace(LAYER, k=64, c=64, filter=(1, 1), pad_low=(0, 0))
    assert sum_slices(LAYER, HOPPER, 1) == 1
    assert sum_slices(LAYER, HOPPER, 2) == 1
    for parts in range(1, 140):
        for problem in (few, LAYER):
            assert parts >= 2 * sum_slices(problem, HOPPER, parts) or parts == 1
    assert sum_slices(few, HOPPER, 132) > sum_slices(LAYER, HOPPER, 132)


def test_a_tile_is_taken_by_name():
    wanted = StrategyRequest(name=NAME, tile=(128, 64, 64))
    assert {one.tile for one in choose(LAYER, HOPPER, wanted)} == {(128, 64, 64)}
    with pytest.raises(UnsupportedStrategy, match="tile 192x64x64: no schedule has it"):
        choose(LAYER, HOPPER, StrategyRequest(name=NAME, tile=(192, 64, 64)))


def test_a_wider_tile_than_the_columns_is_not_tried():
    narrow = replace(LAYER, c=72, filter=(1, 1), pad_low=(0, 0))
    assert {tiling.workgroup[1] for tiling in tilings(narrow, HOPPER)} == {64, 128}


def test_taps_share_tiles_where_channels_do_not_come_in_blocks():
    """Of 3 channels, which are copied as 8, the 9 taps have 72 columns in two tiles of 64."""
    assert columns_of(replace(LAYER, c=3)) == 72
    assert column_tiles(replace(LAYER, c=3), 64) == 2
    assert column_tiles(replace(LAYER, c=64), 64) == 9
    assert columns_of(replace(LAYER, g=32, k=4, c=4), 16) == 9 * 64


@pytest.mark.parametrize(
    ("facts", "error"),
    [
        ({"mma": {MMA: 4}, "loads_to_lds": True}, None),
        ({"mma": {}, "loads_to_lds": True}, StrategyNotApplied),
        ({"mma": {MMA: 4}}, NotLoadedToLds),
        ({"mma": {MMA: 4}, "loads_to_lds": True, "scratch_bytes": 8}, OutOfRegisters),
    ],
)
def test_a_kernel_must_be_as_promised(facts, error):
    one = choose(LAYER, HOPPER, NAME)[0]
    kernel = KernelFacts(name=NAME, role="contraction", **facts)
    if error is None:
        prove(resolve(LAYER, HOPPER), one, [kernel])
        return
    with pytest.raises(error):
        prove(resolve(LAYER, HOPPER), one, [kernel])


def test_padding_a_tile_costs():
    """Channels that do not fill a tile are computed as zeros, and counted."""
    (tiling,) = (one for one in tilings(LAYER, HOPPER) if one.workgroup == (128, 256, 64))
    wide = replace(LAYER, c=320)
    assert workgroups(wide, tiling) == 2 * workgroups(LAYER, tiling)
    assert predict(wide, HOPPER, tiling, 8) > predict(LAYER, HOPPER, tiling, 8)
