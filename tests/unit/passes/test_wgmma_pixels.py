"""Forward passes and data gradients by wave groups: taps of phases, sizes, and what kernels do."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from conv_compiler.compiler.stages import stage_texts
from conv_compiler.errors import UnsupportedProblem, UnsupportedStrategy
from conv_compiler.passes.wgmma_parts import stores
from conv_compiler.passes.wgmma_parts.kernel import lds_floats
from conv_compiler.passes.wgmma_parts.pixel_copies import leaves
from conv_compiler.passes.wgmma_parts.sizes import rounded_up
from conv_compiler.passes.wgmma_parts.taps import Evenly
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import stationary_weight
from conv_compiler.strategies.gpu import wgmma_gemm_cost as gemm_cost
from conv_compiler.strategies.gpu import wgmma_pixels_cost as cost
from conv_compiler.strategies.gpu.pixel_shape import shape_of
from conv_compiler.strategies.gpu.wgmma_pixels import WGMMA_PIXELS, passes
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from tests.problems import dimensions

HOPPER = find_target("sm_90a")
LAYER = ConvProblem(
    n=4, k=64, c=64, image=(9, 9), filter=(3, 3), pad_low=(1, 1), layout="NHWC_KYXC_NHWK",
    direction="fwd",
)  # fmt: skip


DIMENSIONS = dimensions()


@given(dimension=DIMENSIONS, direction=st.sampled_from(["fwd", "bwd_data"]))
def test_taps_of_a_phase_are_evenly_spaced(dimension, direction):
    slide = dimension.slide(direction)
    even = Evenly.of(slide)
    for phase, reads in enumerate(slide.window):
        assert even.counts[phase] == len(reads)
        for at, read in enumerate(reads):
            assert read.tap == even.taps[phase] + at * even.tap_step
            assert read.offset == even.offsets[phase] + at * even.offset_step


@given(dimension=DIMENSIONS, direction=st.sampled_from(["fwd", "bwd_data"]))
def test_a_window_leaves_the_source_where_one_of_its_pixels_does(dimension, direction):
    slide = dimension.slide(direction)
    met = [
        unit * slide.step + read.offset
        for unit, reads in product(range(slide.units), slide.window)
        for read in reads
    ]
    assert leaves(slide) == (not all(0 <= at < slide.size for at in met))
    if slide.is_plain:
        assert met == list(range(slide.size)) == list(range(slide.outs))


def _step(problem, one):
    step, *_ = passes(resolve(problem, HOPPER, one.mma).wgrad, HOPPER, one)
    return step


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"tile_k": 32}, "a line of LDS is 64 of gemm_k"),
        ({"tile_m": 64}, "m is whole instructions of 64 rows a wave group"),
        ({"tile_n": 160}, "n is whole blocks of 64 channels a wave group"),
        ({"instruction": "wgmma.s8"}, "a line of LDS is 128 of gemm_k"),
        ({"merged_groups": 2}, "merged groups are adjacent, and in a tile as whole instructions"),
    ],
)
def test_a_tile_that_no_kernel_has_is_refused(changes, rule):
    one = choose(LAYER, HOPPER, WGMMA_PIXELS.name)[0]
    step = replace(
        _step(LAYER, one), tile_m=128, tile_n=128, tile_k=64, groups_m=2, groups_n=1, stages=4
    )
    step.check()
    with pytest.raises(UnsupportedStrategy, match=rule):
        replace(step, **changes).check()


@pytest.mark.parametrize(
    "changes",
    [{"split_k": 2}, {"stride": (2, 2)}, {"filter": (3, 3)}],
    ids=str,
)
def test_workgroups_of_several_row_tiles_read_the_source_as_it_lies(changes):
    problem = replace(LAYER, image=(28, 28), filter=(1, 1), pad_low=(0, 0), pad_high=(0, 0))
    one = next(
        one for one in choose(problem, HOPPER, WGMMA_PIXELS.name) if one.tiling.row_workgroups
    )
    step = _step(problem, one)
    step.check()
    with pytest.raises(UnsupportedStrategy, match="a workgroup of several row tiles is one of"):
        replace(step, **changes).check()


def test_waves_have_no_kernel_of_several_row_tiles():
    problem = replace(LAYER, image=(28, 28), filter=(1, 1), pad_low=(0, 0), pad_high=(0, 0))
    step = _step(problem, choose(problem, HOPPER, "mma_sync_pixels")[0])
    step.check()
    with pytest.raises(UnsupportedStrategy, match="a workgroup of several row tiles is one of"):
        replace(step, row_workgroups=3).check()


@given(
    k=st.integers(1, 200),
    c=st.integers(1, 200),
    g=st.integers(1, 9),
    n=st.integers(1, 9),
    image=st.integers(3, 30),
    window=st.integers(1, 4),
    stride=st.integers(1, 3),
    pad=st.integers(0, 2),
    direction=st.sampled_from(["fwd", "bwd_data"]),
    asked=st.integers(0, 3),
    dtype=st.sampled_from(["f16", "i8", "f8E5M2"]),
)
@settings(max_examples=60, deadline=None)
def test_the_cost_counts_what_the_pass_writes(
    k, c, g, n, image, window, stride, pad, direction, asked, dtype
):
    try:
        problem = ConvProblem(
            n=n, g=g, k=k, c=c, image=(image, image), filter=(window, window),
            pad_low=(pad, pad), stride=(stride, stride), layout="NHWGC_GKYXC_NHWGK",
            direction=direction, dtype=dtype,
        )  # fmt: skip
    except UnsupportedProblem:
        assume(False)
    wgrad = resolve(problem, HOPPER).wgrad
    for one in WGMMA_PIXELS.candidates(wgrad, HOPPER, asked, ()):
        step, tiling = _step(problem, one), one.tiling
        step.check()
        kernel = step.kernel
        assert step.columns == tiling.workgroup[1] // tiling.warp_groups[1]
        phases = list(product(*map(range, step.phases)))
        assert math.prod(kernel.grid) == cost.workgroups(problem, tiling) * one.split_k
        assert max(map(step.k_tiles, phases)) == cost.k_tiles(problem, tiling)
        assert kernel.elements == math.prod(problem.result_shape)
        assert one.split_k == WGMMA_PIXELS.filled_parts(wgrad, one, one.split_k)
        if tiling.row_workgroups:
            shape = shape_of(problem)
            is_narrow = stationary_weight.rounds_in_pairs(problem, shape)
            floats = kernel.lds_floats(is_narrow=is_narrow)
            assert 4 * floats == stationary_weight.lds_bytes(problem, tiling) <= HOPPER.lds_bytes
            continue
        for stages, is_narrow in product(range(1, tiling.stages + 1), (False, True)):
            floats = lds_floats(step, stages, is_narrow)
            assert 4 * floats == gemm_cost.lds_bytes(tiling, stages, is_narrow)
            assert 4 * floats <= HOPPER.lds_bytes
        assert step.depth == rounded_up(step.sources * tiling.merged_groups, step.piece)
        assert cost.predict(problem, HOPPER, tiling, one.split_k) > 0


def test_pads_of_lds_are_those_of_the_cost():
    assert (gemm_cost.ROW_PAD, gemm_cost.NARROW_PAD) == (stores.ROW_PAD, stores.NARROW_PAD)


def _ptx(tmp_path, split_k=1, **changes):
    problem = replace(LAYER, **{"weight_dtype": "", **changes})
    one = choose(problem, HOPPER, WGMMA_PIXELS.name, split_k)[0]
    return stage_texts(resolve(problem, HOPPER, one.mma), one, tmp_path)["isa"]


@pytest.mark.parametrize(
    "changes",
    [
        {"elementwise": "relu"},
        {"elementwise": "bilinear(0.5, 2)", "dtype": "bf16"},
        {"elementwise": "bias>relu", "k": 72},
        {"direction": "bwd_data", "stride": (2, 2), "elementwise": "add:f32"},
        {"direction": "bwd_data", "stride": (2, 2), "filter": (1, 1)},
        {"direction": "bwd_data", "pad_low": (3, 3)},
    ],
    ids=str,
)
def test_everything_behind_the_products_is_in_one_kernel(tmp_path, changes):
    """Ops on the sums, phases put in place, a source of which pixels are left out."""
    assert _ptx(tmp_path, **changes).count(".visible .entry") == 1


@pytest.mark.parametrize(
    ("changes", "copied"),
    [
        ({"c": 60}, ["source", "weight"]),
        ({"k": 60}, []),
        ({"k": 60, "direction": "bwd_data"}, ["source"]),
        ({"c": 60, "direction": "bwd_data"}, ["weight"]),
    ],
    ids=str,
)
def test_channels_that_are_no_multiple_of_eight_are_copied(tmp_path, changes, copied):
    text = _ptx(tmp_path, **changes)
    assert [name for name in ("source", "weight") if f"whole_{name}(" in text] == copied


@pytest.mark.parametrize(("k", "width"), [(64, 4), (66, 2), (63, 1)])
def test_parts_are_added_as_wide_as_a_bias_allows(tmp_path, k, width):
    """Adjacent elements of a thread are of one pixel, so that their biases are adjacent."""
    text = _ptx(tmp_path, elementwise="bias", k=k, split_k=2, weight_dtype="f32")
    sums = text[text.index(".entry parts_sum(") :]
    stored = sums[sums.index("st.global") :].split("\n")[0]
    assert stored.split()[0].count("v4") == (width == 4)
    assert stored.count(",") == width


def test_few_tiles_have_no_loop(tmp_path):
    """Each tile of gemm_k has a stage then, and all copies start before the first product."""
    text = _ptx(tmp_path, filter=(1, 1), pad_low=(0, 0))
    assert "wgmma.wait_group.sync.aligned 1;" not in text
    assert text.count("wgmma.commit_group") == 1


def _products(text):
    """(type and factors, registers, what is added to) of each product of a kernel's text."""
    found = re.findall(
        r"wgmma.mma_async\S+(n\d+k\d+)\.(\S+) {([^}]*)}, %rd\d+, %rd\d+, (.*);", text
    )
    return [(f"{size}.{types}", sums.split(", "), tail) for size, types, sums, tail in found]


@pytest.mark.parametrize("direction", ["fwd", "bwd_data"])
@pytest.mark.parametrize(
    ("dtype", "types", "first", "later"),
    [
        ("i8", "n64k32.s32.s8.s8", "1", "1"),
        ("f8E4M3FN", "n64k32.f32.e4m3.e4m3", "0, 1, 1", "1, 1, 1"),
        ("f8E5M2", "n64k32.f32.e5m2.e5m2", "0, 1, 1", "1, 1, 1"),
    ],
)
def test_8_bit_types_are_multiplied_along_gemm_k(tmp_path, dtype, types, first, later, direction):
    """32 of gemm_k by an instruction, without a way to turn an operand. Floats of a tile are added
    to nothing, and to the sums behind them in f32."""
    text = _ptx(tmp_path, dtype=dtype, direction=direction, image=(14, 14), c=128)
    own = 4 * [first, later, later, later]
    products = _products(text)
    assert {(size, len(sums)) for size, sums, _ in products} == {(types, 32)}
    assert [tail for _, _, tail in products] == own[: len(products)]
    assert len(products) % 4 == 0
    added = text.count("add.rn.f32")
    assert added == (0 if dtype == "i8" else 32 * len(products) // 4)
    assert ("transposed_weight(" in text) is (direction == "bwd_data")


def test_merged_groups_have_their_own_first_product(tmp_path):
    """Each has its own columns, so that each starts from nothing."""
    problem = ConvProblem(
        n=4, g=8, k=32, c=32, image=(9, 9), filter=(3, 3), layout="NHWGC_GKYXC_NHWGK",
        direction="fwd", dtype="f8E4M3FN",
    )  # fmt: skip
    found = choose(problem, HOPPER, WGMMA_PIXELS.name, 1)
    one = next(one for one in found if one.tiling.merged_groups == 4)
    text = stage_texts(resolve(problem, HOPPER, one.mma), one, tmp_path)["isa"]
    products = _products(text)
    assert {size for size, _, _ in products} == {"n32k32.f32.e4m3.e4m3"}
    assert {tail for _, _, tail in products} == {"0, 1, 1"}
    assert len({tuple(sums) for _, sums, _ in products[:4]}) == 4


@pytest.mark.parametrize(
    ("changes", "conversions"),
    [
        ({"weight_dtype": "f8E5M2"}, ["cvt.rn.satfinite.e5m2x2.f32"]),
        (
            {"weight_dtype": "f8E4M3FN", "elementwise": "add"},
            ["cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.f16x2.e4m3x2"],
        ),
        ({"weight_dtype": "f8E4M3FN", "k": 75, "elementwise": "bias"}, ["cvt.rn.f16x2.e4m3x2"]),
    ],
    ids=str,
)
def test_8_bit_results_are_rounded_by_the_chip(tmp_path, changes, conversions):
    text = _ptx(tmp_path, dtype="f8E4M3FN", **changes)
    assert all(one in text for one in conversions)
    assert text.count(".visible .entry") == 1


def test_a_largest_8_bit_result_is_rounded_behind_the_kernel(tmp_path):
    """By a kernel of IREE's, which has no conversion of its own to 8-bit floats."""
    text = _ptx(
        tmp_path, dtype="f8E4M3FN", weight_dtype="f8E4M3FN", elementwise="scale_by", amax=True
    )
    assert text.count(".visible .entry") > 1
    assert "e4m3.e4m3" in text
