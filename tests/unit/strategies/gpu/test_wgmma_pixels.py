"""`wgmma_pixels`: where it fits and why not elsewhere, and where it is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.pixel_tilings import merges, tilings
from conv_compiler.strategies.gpu.stationary_weight import lds_bytes
from conv_compiler.strategies.gpu.warp_group_kind import MOST_SUMS
from conv_compiler.strategies.gpu.wgmma_pixels import WGMMA_PIXELS, splits
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import Strategy, StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

HOPPER = find_target("sm_90a")
NAME = WGMMA_PIXELS.name
LAYER = ConvProblem(
    n=32, k=128, c=256, image=(14, 14), filter=(3, 3), pad_low=(1, 1), layout="NHWC_KYXC_NHWK",
    direction="fwd",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "chip", "why"),
    [
        ({}, "sm_89", "wave groups of its chip multiply its types"),
        ({"dtype": "f32"}, "sm_90a", "wave groups of its chip multiply its types"),
        ({"dtype": "f32", "compute": "bf16x3"}, "sm_90a", "wave groups of its chip multiply"),
        ({"compute": "bf16"}, "sm_90a", "wave groups of its chip multiply its types"),
        ({"compute": "fp8,fp8"}, "sm_90a", "wave groups of its chip multiply its types"),
        ({"dtype": "f8E4M3FNUZ"}, "sm_90a", "wave groups of its chip multiply its types"),
        ({"dtype": "i8"}, "sm_100a", "wave groups of its chip multiply its types"),
        ({"direction": "bwd_weight"}, "sm_90a", "it computes fwd and bwd_data"),
        ({"layout": "NCHW_KCYX_NKHW"}, "sm_90a", "channels lie last in its layouts"),
        ({"layout": "NHWC_KCYX_NHWK"}, "sm_90a", "channels lie last in its layouts"),
        ({"input_op": "relu"}, "sm_90a", "its operands have no ops"),
        (
            {"elementwise": "bias>relu", "g": 2, "layout": "GNHWC_GKYXC_GNHWK"},
            "sm_90a",
            "no bias is added where channels of groups lie apart",
        ),
        ({"k": 2}, "sm_90a", "its groups have 3 channels or more"),
        ({"direction": "bwd_data", "stride": (9, 9)}, "sm_90a", "its strides have 64 phases"),
        (
            {"n": 1, "c": 1104, "image": (1400, 1400)},
            "sm_90a",
            "its tensors, channels in whole pieces, have fewer",
        ),
        ({"k": 3, "c": 2**19}, "sm_90a", "elements lie between adjacent pixels"),
        (
            {"n": 1, "k": 8, "c": 8, "image": (200, 200), "filter": (129, 129)},
            "sm_90a",
            "its filter has 16384 taps at most",
        ),
        (
            {"direction": "bwd_data", "image": (2, 2), "stride": (5, 5), "pad_low": (4, 4)},
            "sm_90a",
            "some tap meets a pixel",
        ),
    ],
)
def test_it_says_where_it_does_not_fit(changes, chip, why):
    problem = replace(LAYER, weight_dtype="", **changes)
    target = find_target(chip)
    assert why in WGMMA_PIXELS.refusal(resolve(problem, target).wgrad, target)
    with pytest.raises(UnsupportedStrategy, match=why):
        choose(problem, target, NAME)


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "bf16"},
        {"direction": "bwd_data", "stride": (2, 2)},
        {"direction": "bwd_data", "k": 819},
        {"c": 3},
        {"g": 3, "layout": "GNHWC_GKYXC_GNHWK"},
        {"g": 8, "k": 64, "c": 64, "layout": "NHWGC_GKYXC_NHWGK"},
        {"elementwise": "bilinear(0.5, 2)"},
        {"elementwise": "bias>relu"},
        {"elementwise": "bias", "direction": "bwd_data", "layout": "GNHWC_GKYXC_GNHWK"},
        {"dtype": "i8"},
        {"dtype": "i8", "direction": "bwd_data", "stride": (2, 2)},
        {"dtype": "f8E4M3FN", "elementwise": "bias>relu"},
        {"dtype": "f8E5M2", "direction": "bwd_data", "weight_dtype": "f8E4M3FN"},
    ],
    ids=str,
)
def test_it_is_taken_channels_last(changes):
    first, *_ = choose(replace(LAYER, **{"weight_dtype": "", **changes}), HOPPER)
    assert first.name == NAME
    assert Strategy.from_json(first.to_json()) == first


def test_depthwise_problems_do_not_take_it():
    single = replace(LAYER, g=144, k=1, c=1, layout="NHWGC_GKYXC_NHWGK")
    assert choose(single, HOPPER)[0].name == "depthwise_pixels"


@pytest.mark.parametrize(
    ("changes", "merged"),
    [
        ({}, [1]),
        ({"g": 32, "k": 16, "c": 16}, [1, 4]),
        ({"g": 32, "k": 32, "c": 32}, [1, 2]),
        ({"g": 8, "k": 8, "c": 16}, [1, 4]),
        ({"g": 6, "k": 16, "c": 16}, [1]),  # 4 do not divide 6
        ({"g": 32, "k": 8, "c": 8}, [1]),  # an instruction would have two groups
        ({"g": 32, "k": 16, "c": 16, "layout": "GNHWC_GKYXC_GNHWK"}, [1]),
    ],
)
def test_groups_share_tiles_as_whole_instructions(changes, merged):
    changes = {"layout": "NHWGC_GKYXC_NHWGK", **changes}
    assert merges(replace(LAYER, **changes)) == merged


def test_parts_are_tried_where_units_would_have_no_work():
    few = replace(LAYER, image=(7, 7))
    many = replace(LAYER, image=(56, 56))
    for tiling in tilings(few, HOPPER):
        assert len(splits(few, HOPPER, tiling)) > 1
    assert {tuple(splits(many, HOPPER, one)) for one in tilings(many, HOPPER)} == {(1,)}


def test_a_tile_is_taken_by_name():
    wanted = StrategyRequest(name=NAME, tile=(128, 64, 64))
    assert {one.tile for one in choose(LAYER, HOPPER, wanted)} == {(128, 64, 64)}


POINTWISE = replace(LAYER, image=(28, 28), filter=(1, 1), pad_low=(0, 0), pad_high=(0, 0))


@pytest.mark.parametrize(
    ("changes", "stays"),
    [
        ({}, True),
        ({"direction": "bwd_data", "dtype": "bf16", "weight_dtype": ""}, True),
        ({"g": 4, "k": 72, "c": 64, "layout": "NHWGC_GKYXC_NHWGK"}, True),
        ({"elementwise": "bias>relu", "k": 75}, True),
        ({"stride": (2, 2)}, False),  # rows are not source pixels
        ({"pad_low": (1, 0)}, False),
        ({"filter": (3, 1), "pad_low": (1, 0), "pad_high": (1, 0)}, False),
        ({"c": 2048}, False),  # LDS has no room for the weight
    ],
)
def test_weights_stay_in_lds_where_rows_are_source_pixels(changes, stays):
    problem = replace(POINTWISE, **changes)
    found = [one for one in tilings(problem, HOPPER) if one.row_workgroups]
    assert bool(found) is stays
    for one in found:
        assert one.row_workgroups <= -(-problem.n * 28 * 28 // one.workgroup[0])
        assert splits(problem, HOPPER, one) == [1]
        assert lds_bytes(problem, one) <= HOPPER.lds_bytes


def test_a_workgroup_that_keeps_the_weight_has_all_of_gemm_k():
    for one in choose(POINTWISE, HOPPER, NAME, 2):
        assert one.split_k == 2
        assert not one.tiling.row_workgroups


def test_waves_keep_no_weight():
    ampere = find_target("sm_80")
    for one in choose(POINTWISE, ampere, "mma_sync_pixels"):
        assert not one.tiling.row_workgroups


# Columns of an instruction of 8-bit integers (PTX ISA, "wgmma.mma_async"): 8, 24, whole 16s.
INTEGER_COLUMNS = {8, 24, *range(16, 257, 16)}


@pytest.mark.parametrize("dtype", ["i8", "f8E4M3FN"])
@pytest.mark.parametrize("direction", ["fwd", "bwd_data"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"g": 8, "k": 48, "c": 64, "layout": "NHWGC_GKYXC_NHWGK"}, {"filter": (1, 1)}],
    ids=str,
)
def test_tiles_of_8_bit_types_are_those_of_an_instruction(dtype, direction, changes):
    problem = replace(LAYER, dtype=dtype, weight_dtype="", direction=direction, **changes)
    found = list(tilings(problem, HOPPER))
    assert found
    for one in found:
        (m, n, k), (_, across) = one.workgroup, one.warp_groups
        assert (k, one.element_bytes) == (128, 1)
        results = problem.k if direction == "fwd" else problem.c
        columns = results if one.merged_groups > 1 else n // across
        assert columns in INTEGER_COLUMNS
        assert one.merged_groups * columns <= n or one.merged_groups == 1
        assert one.adds_tiles is (dtype != "i8")
        assert one.thread_sums == (1 + one.adds_tiles) * m * n // one.threads <= MOST_SUMS


@pytest.mark.parametrize(
    ("changes", "merged"),
    [
        ({"k": 32, "c": 32}, [1, 4]),
        ({"k": 64, "c": 64}, [1, 2]),
        ({"k": 16, "c": 16}, [1]),  # an instruction would have two groups
        ({"k": 24, "c": 32}, [1]),  # 24 channels are no whole pieces
        ({"k": 32, "c": 32, "direction": "bwd_data"}, [1, 4]),
    ],
)
def test_groups_of_8_bit_types_share_tiles(changes, merged):
    problem = replace(LAYER, g=32, dtype="i8", weight_dtype="", layout="NHWGC_GKYXC_NHWGK")
    assert merges(replace(problem, **changes)) == merged


@pytest.mark.parametrize(
    ("changes", "merged", "instruction"),
    [
        ({"dtype": "bf16"}, 1, "wgmma.mma_async"),
        ({"dtype": "i8"}, 1, "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8"),
        ({"dtype": "f8E5M2"}, 1, "wgmma.mma_async.sync.aligned.m64n128k32.f32.e5m2.e5m2"),
        (
            {"dtype": "f8E4M3FN", "g": 8, "k": 32, "c": 32},
            4,
            "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3",
        ),
    ],
)
def test_the_code_must_show_the_instruction_of_the_types(changes, merged, instruction):
    problem = replace(LAYER, weight_dtype="", layout="NHWGC_GKYXC_NHWGK", **changes)
    wgrad = resolve(problem, HOPPER).wgrad
    found = [
        WGMMA_PIXELS.promises(wgrad, HOPPER, Strategy(name=NAME, tiling=one, split_k=1)).instruction
        for one in tilings(problem, HOPPER)
        if one.workgroup[:2] == (64, 128) and one.merged_groups == merged
    ]
    assert set(found) == {instruction}


def test_a_weight_gradient_of_8_bit_types_has_no_wave_groups():
    """Both operands lie along their channels, and gemm_k runs over pixels."""
    problem = replace(LAYER, direction="bwd_weight", dtype="i8", weight_dtype="")
    assert choose(problem, HOPPER)[0].name == "vector_gemm"
    for name in ("wgmma_gemm", "wgmma_windows"):
        with pytest.raises(UnsupportedStrategy):
            choose(problem, HOPPER, name)
