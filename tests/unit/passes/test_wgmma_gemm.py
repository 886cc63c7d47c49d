"""Sizes of kernels of wave groups: tiles that no kernel has, and which windows leave an operand."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iree.compiler import ir

from conv_compiler.build import build
from conv_compiler.compiler.stages import stage_texts
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.wgmma_gemm import WgmmaGemm
from conv_compiler.passes.wgmma_parts import ptx, sizes, stores
from conv_compiler.passes.wgmma_parts.instructions import INSTRUCTIONS
from conv_compiler.passes.wgmma_parts.sizes import Axis, Operand
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import wgmma_gemm_cost as cost
from conv_compiler.strategies.gpu.cost_constants import WARP_GROUPS, WAVES
from conv_compiler.strategies.gpu.warp_group_kind import PROMISED, instruction_of
from conv_compiler.strategies.gpu.wgmma_gemm import tilings
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

ROUND = {"tile_m": 128, "tile_n": 128, "tile_k": 64, "groups_m": 2, "groups_n": 1, "stages": 4}
HOPPER = find_target("sm_90a")


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"tile_m": 64}, "m is whole instructions of 64 rows a wave group"),
        ({"tile_n": 96}, "n is whole blocks of 64 channels a wave group"),
        ({"tile_k": 48}, "gemm_k is what the threads copy at once, or a multiple"),
        ({"stages": 2}, "there are 3 stages or more"),
        ({"tile_n": 512}, "an instruction has 256 columns at most"),
        ({"tile_n": 160}, "n is whole blocks of 64 channels a wave group"),
    ],
)
def test_a_tile_that_no_kernel_has_is_refused(changes, rule):
    WgmmaGemm(**ROUND).check()
    with pytest.raises(UnsupportedStrategy, match=rule):
        WgmmaGemm(**{**ROUND, **changes}).check()


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"tile_m": 72}, "m is whole instructions of 16 rows a wave"),
        ({"tile_m": 96}, "m and n are whole blocks of 64 channels"),
        ({"groups_m": 8, "tile_m": 384}, "16, 32 or whole blocks of 64 rows and columns"),
        ({"groups_n": 1, "groups_m": 4, "tile_m": 512}, "a lane has 128 sums at most"),
        ({"tile_k": 24}, "gemm_k is what the threads copy at once, or a multiple"),
        ({"stages": 1}, "there are 2 stages or more"),
    ],
)
def test_a_tile_that_no_kernel_of_waves_has_is_refused(changes, rule):
    waves = {**ROUND, "groups_n": 2, "instruction": "mma.sync"}
    WgmmaGemm(**waves).check()
    with pytest.raises(UnsupportedStrategy, match=rule):
        WgmmaGemm(**{**waves, **changes}).check()


def test_the_cost_counts_what_the_pass_writes():
    assert (cost.ROWS, cost.STEP_BYTES, cost.QUAD) == (ptx.ROWS, sizes.STEP_BYTES, stores.QUAD)
    assert cost.ROW_PAD == stores.ROW_PAD
    assert INSTRUCTIONS["wgmma"].threads == sizes.WARP_GROUP
    assert set(PROMISED) == set(INSTRUCTIONS)


@pytest.mark.parametrize("table", [WARP_GROUPS, WAVES], ids=["wave groups", "waves"])
def test_every_tile_of_the_table_has_a_kernel(table):
    problem = ConvProblem(n=64, k=512, c=512, image=(8, 8), filter=(1, 1), layout="NHWC_KYXC_NHWK")
    tried = list(tilings(problem, HOPPER, table))
    assert len(tried) == len(table.tried_tiles)
    for tiling in tried:
        (m, n, k), (groups_m, groups_n) = tiling.workgroup, tiling.warp_groups
        step = WgmmaGemm(
            tile_m=m,
            tile_n=n,
            tile_k=k,
            groups_m=groups_m,
            groups_n=groups_n,
            stages=tiling.stages,
            instruction=instruction_of(tiling),
        )
        step.check()
        assert step.threads == tiling.threads


@given(
    loop=st.integers(1, 6),
    extent=st.integers(1, 9),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 3),
    pad=st.integers(0, 3),
    taps=st.integers(1, 3),
)
def test_a_window_leaves_an_axis_where_one_of_its_pixels_does(
    loop, extent, stride, dilation, pad, taps
):
    axis = Axis(loop, extent, 1, stride, dilation, pad, taps)
    met = [o * stride + t * dilation - pad for o, t in product(range(loop), range(taps))]
    assert axis.leaves == (not all(0 <= at < extent for at in met))


def test_pixels_are_one_row_where_each_follows_the_one_before():
    plain = (Axis(2, 2, 60), Axis(3, 3, 20), Axis(4, 4, 5))
    assert Operand(pixels=plain, group_step=5, channels=5).is_row
    for changed in (
        (Axis(2, 2, 80), *plain[1:]),  # images further apart
        (plain[0], Axis(2, 3, 20), plain[2]),  # rows left out
        (*plain[:2], Axis(4, 4, 5, taps=2)),
        (*plain[:2], Axis(4, 4, 5, pad=1)),
        (*plain[:2], Axis(2, 4, 5, stride=2)),
    ):
        assert not Operand(pixels=changed, group_step=5, channels=5).is_row


def _ptx(tmp_path, split_k, name="wgmma_gemm", **changes):
    problem = ConvProblem(
        **{
            **{"n": 4, "k": 64, "c": 64, "image": (9, 9), "filter": (3, 3), "pad_low": (1, 1)},
            **{"layout": "NHWC_KYXC_NHWK", **changes},
        }
    )
    one = choose(problem, HOPPER, name, split_k)[0]
    return stage_texts(resolve(problem, HOPPER, one.mma), one, tmp_path)["isa"]


@pytest.mark.parametrize("name", ["wgmma_gemm", "mma_sync_gemm"])
def test_one_part_is_stored_in_the_type_of_the_result(tmp_path, name):
    text = _ptx(tmp_path, 1, name)
    assert text.count(".visible .entry") == 1
    assert "cvt.rn.f16x2.f32" in text


@pytest.mark.parametrize("split_k", [1, 2])
@pytest.mark.parametrize("more", [{"elementwise": "relu"}, {"dynamic_batch": True}], ids=str)
def test_an_op_on_the_sums_is_a_kernel_of_the_compiler(tmp_path, split_k, more):
    """Sums of chunks of a batch are such an op, too."""
    text = _ptx(tmp_path, split_k, **more)
    assert ("parts_sum" in text) == (split_k > 1)
    assert text.count(".visible .entry") > split_k


def test_a_pixel_is_looked_for_where_there_may_be_none():
    """Behind the last one of an odd number; whole tiles have all of theirs."""

    def comparisons(image):
        problem = ConvProblem(
            n=7, k=64, c=64, image=(image, image), filter=(1, 1), layout="NHWC_KYXC_NHWK"
        )
        with ir.Context(), ir.Location.unknown():
            module = build(problem)
            WgmmaGemm(**ROUND).apply(module)
            return str(module).count("arith.cmpi ult")

    assert comparisons(9) > comparisons(8)


@pytest.mark.parametrize("instruction", ["wgmma", "mma.sync", "mma.sync.tf32"])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_an_instruction_multiplies_elements_of_its_own_size(instruction, dtype):
    """f32 is not taken for two numbers of 16 bits, nor for TF32 unless that is asked for."""
    problem = ConvProblem(
        n=4, k=64, c=64, image=(8, 8), filter=(1, 1), layout="NHWC_KYXC_NHWK", dtype=dtype
    )
    fits = (instruction == "mma.sync.tf32") == (dtype == "f32")
    step = WgmmaGemm(
        tile_m=64, tile_n=64, tile_k=32, groups_m=1, groups_n=1, stages=3, instruction=instruction,
    )  # fmt: skip
    step = replace(step, groups_m=2, groups_n=2) if instruction != "wgmma" else step
    with ir.Context(), ir.Location.unknown():
        module = build(problem)
        if fits:
            step.apply(module)
            return
        with pytest.raises(UnsupportedStrategy, match="it multiplies elements of"):
            step.apply(module)


def test_an_unknown_instruction_is_refused():
    with pytest.raises(UnsupportedStrategy, match="instruction wmma: not in the table; known: wgm"):
        WgmmaGemm(**ROUND, instruction="wmma").check()
