"""`mma_sync_gemm` and `mma_sync_pixels`: chips and types that take them, and their candidates."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import wgmma_gemm_cost, wgmma_pixels_cost
from conv_compiler.strategies.gpu.warp_group_kind import has_kernel
from conv_compiler.strategies.gpu.wgmma_gemm import MMA_SYNC_GEMM
from conv_compiler.strategies.gpu.wgmma_pixels import MMA_SYNC_PIXELS
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

CHIPS = ("sm_80", "sm_86", "sm_89")
DIRECTIONS = ("bwd_weight", "fwd", "bwd_data")
LAYER = ConvProblem(
    n=32, k=128, c=256, image=(14, 14), filter=(3, 3), pad_low=(1, 1), layout="NHWC_KYXC_NHWK"
)
TF32 = {"dtype": "f32", "compute": "tf32", "weight_dtype": ""}


def _kind(direction):
    return MMA_SYNC_GEMM if direction == "bwd_weight" else MMA_SYNC_PIXELS


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    ("changes", "instruction"),
    [
        ({}, "NV_MMA_SYNC_F32_16x8x16_F16"),
        ({"dtype": "bf16", "weight_dtype": ""}, "NV_MMA_SYNC_F32_16x8x16_BF16"),
        (TF32, "NV_MMA_SYNC_F32_16x8x8_TF32"),
    ],
    ids=["f16", "bf16", "tf32"],
)
def test_wide_layers_take_it(chip, direction, changes, instruction):
    problem = replace(LAYER, direction=direction, **changes)
    first, *_ = choose(problem, find_target(chip))
    assert (first.name, first.mma) == (_kind(direction).name, instruction)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"dtype": "f32", "weight_dtype": ""}, "waves of its chip multiply its types"),
        ({"dtype": "i8", "weight_dtype": ""}, "waves of its chip multiply its types"),
        ({"layout": "NCHW_KCYX_NKHW"}, "channels lie last in its layouts"),
        ({"c": 2, "k": 2}, "its groups have 3 channels or more"),
    ],
    ids=str,
)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_it_says_where_it_does_not_fit(direction, changes, why):
    problem, target = replace(LAYER, direction=direction, **changes), find_target("sm_80")
    kind = _kind(direction)
    assert why in kind.refusal(resolve(problem, target).wgrad, target)
    with pytest.raises(UnsupportedStrategy, match=why):
        choose(problem, target, kind.name)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_wave_groups_come_first_where_a_chip_has_them(direction):
    problem, target = replace(LAYER, direction=direction), find_target("sm_90a")
    assert choose(problem, target)[0].name.startswith("wgmma_")
    assert choose(problem, target, _kind(direction).name)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_hopper_multiplies_tf32_by_waves(direction):
    problem = replace(LAYER, direction=direction, **TF32)
    assert choose(problem, find_target("sm_90a"))[0].name == _kind(direction).name


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_line_of_shared_memory_has_half_as_many_words(direction):
    """Tiles of both types have the same bytes: gemm_k is half as long."""
    target, kind = find_target("sm_80"), _kind(direction)
    halves, words = (
        {one.tile for one in kind.candidates(_wgrad(direction, target, changes), target, 4, ())}
        for changes in ({}, TF32)
    )
    assert words
    assert {(m, n, 2 * k) for m, n, k in words} <= _tiles(kind)
    assert halves <= _tiles(kind)


def _wgrad(direction, target, changes):
    return resolve(replace(LAYER, direction=direction, **changes), target).wgrad


def _tiles(kind):
    return {tile for tile, _, _ in kind.table.tried_tiles}


@given(
    k=st.integers(3, 400),
    c=st.integers(3, 400),
    g=st.integers(1, 5),
    n=st.integers(1, 40),
    image=st.integers(3, 60),
    stride=st.integers(1, 3),
    direction=st.sampled_from(DIRECTIONS),
    chip=st.sampled_from(CHIPS),
    is_word=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_candidates_fit_the_chip_and_the_problem(
    k, c, g, n, image, stride, direction, chip, is_word
):
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
        direction=direction,
        **(TF32 if is_word else {}),
    )
    target, kind = find_target(chip), _kind(direction)
    wgrad = resolve(problem, target).wgrad
    for one in kind.candidates(wgrad, target, 0, ()):
        tiling = one.tiling
        assert has_kernel(target, tiling)
        assert tiling.element_bytes == (4 if is_word else 2)
        assert kind.filled_parts(wgrad, one, one.split_k) == one.split_k
        assert kind.cost(wgrad, target, one) > 0
        assert Strategy.from_json(one.to_json()) == one


@pytest.mark.parametrize("module", [wgmma_gemm_cost, wgmma_pixels_cost], ids=["weights", "pixels"])
def test_a_chip_of_a_lower_rate_takes_longer(module):
    """GeForce chips have a quarter of an A100's products a cycle."""
    kind = MMA_SYNC_GEMM if module is wgmma_gemm_cost else MMA_SYNC_PIXELS
    direction = "bwd_weight" if module is wgmma_gemm_cost else "fwd"
    problem, target = replace(LAYER, direction=direction, n=256), find_target("sm_80")
    slow = replace(target, wave_products=target.wave_products // 4)
    tiling = choose(problem, target, kind.name)[0].tiling
    fast, slower = (module.predict(problem, one, tiling, 1) for one in (target, slow))
    assert slower > 2 * fast
