"""Which operand needs no zeros behind the last pixel, and leaner kernels that are as fast."""

from dataclasses import replace

import pytest

from conv_compiler.model.counts import counted
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.cost import predict
from conv_compiler.strategies.gpu.cost_constants import TIE_BREAK
from conv_compiler.strategies.gpu.instruction_counts import load_distance, mma_counts, mma_of
from conv_compiler.strategies.gpu.tail_masking import unmasked_operand, unmasked_rows
from conv_compiler.strategies.gpu.tie_break import prefer_low_valu
from conv_compiler.strategies.gpu.tilings import mma_tilings
from conv_compiler.strategies.select import candidates, choose
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

GFX942 = find_target("gfx942")
PIXELS = (("ho", "wo"), ("n",))
WINDOWS = ConvProblem(n=32, k=64, c=128, image=(7, 9), filter=(3, 3), pad_low=(1, 1))


def tiling(problem, tile, target=GFX942, taps_in_rows=False, form=PIXELS):
    found = next(
        one
        for _, one in mma_tilings(problem, target)
        if (one.workgroup, one.taps_in_rows) == (tile, taps_in_rows)
    )
    return replace(found, outside=form[0], inside=form[1])


@pytest.mark.parametrize(
    ("change", "tile", "split_k", "expected"),
    [
        ({}, (64, 64, 32), 4, "a"),  # 63 pixels in four parts of 16
        ({}, (64, 64, 32), 7, ""),  # every part has nine
        ({}, (128, 64, 32), 4, ""),  # rows that are not there need zeros of their own
        ({"n": 40}, (64, 64, 32), 4, ""),  # ... as do images
        # Without windows the one with the longer side of the tile, if it has no other zeros.
        ({"filter": (1, 1), "pad_low": (0, 0), "pad_high": (0, 0)}, (64, 64, 32), 4, "a"),
        ({"filter": (1, 1), "pad_low": (0, 0), "pad_high": (0, 0)}, (64, 128, 32), 4, "b"),
        ({"filter": (1, 1), "pad_low": (0, 0), "pad_high": (0, 0)}, (128, 64, 32), 4, "b"),
        ({"filter": (1, 1), "pad_low": (0, 0), "pad_high": (0, 0), "c": 100}, (128, 64, 32), 4, ""),
    ],
)
def test_the_operand_of_single_pixels_needs_no_zeros(change, tile, split_k, expected):
    problem = replace(WINDOWS, **change)
    assert unmasked_operand(problem, GFX942, tiling(problem, tile), split_k) == expected


def test_with_taps_in_rows_it_is_the_image():
    one = tiling(WINDOWS, (64, 64, 32), taps_in_rows=True)
    assert unmasked_operand(WINDOWS, GFX942, one, 4) == "b"
    assert unmasked_operand(WINDOWS, GFX942, replace(one, outside=(), inside=()), 4) == ""


FORWARD = ConvProblem(n=32, k=512, c=256, image=(7, 7), filter=(1, 1), direction="fwd")


@pytest.mark.parametrize(
    ("change", "tile", "split_k", "expected"),
    [
        ({}, (64, 64, 32), 1, "b"),  # 1568 pixels
        ({}, (64, 32, 32), 1, ""),  # ... which fill tiles of 32
        ({"k": 40}, (64, 64, 32), 1, "ab"),
        ({"stride": (2, 2)}, (64, 64, 32), 1, ""),  # 512 pixels
        ({"stride": (2, 2), "n": 33}, (64, 64, 32), 1, "b"),
        ({"c": 224}, (64, 64, 32), 1, ""),  # a part is two tiles of gemm_k at least
        ({"c": 224, "k": 40}, (64, 64, 16), 1, "ab"),
        ({}, (64, 64, 32), 4, "b"),
        ({}, (64, 64, 32), 3, ""),
        # Windows that leave the image have zeros, which weights do not.
        ({"filter": (3, 3), "pad_low": (1, 1), "pad_high": (1, 1), "k": 40}, (64, 64, 32), 1, "a"),
        ({"filter": (3, 3), "k": 40, "n": 33}, (64, 64, 32), 1, "ab"),
        ({"layout": "NGCHW_GKCYX_NGKHW", "k": 40}, (64, 64, 32), 1, ""),
    ],
)
def test_rows_beyond_the_result_need_no_zeros(change, tile, split_k, expected):
    problem = resolve(replace(FORWARD, **change), GFX942).wgrad
    one = tiling(problem, tile, form=((), ()))
    assert unmasked_rows(problem, GFX942, one, split_k) == expected


def test_rows_that_are_masked():
    """A weight gradient's rows are not contiguous along gemm_k; loads to LDS have their own way."""
    problem = resolve(replace(FORWARD, k=40), GFX942).wgrad
    one = tiling(problem, (64, 64, 32), form=((), ()))
    for change in ({"loads_to_lds": True}, {"merged_groups": 2}, {"taps_in_rows": True}):
        assert unmasked_rows(problem, GFX942, replace(one, **change), 1) == ""
    problem = replace(WINDOWS, k=40)
    assert unmasked_rows(problem, GFX942, tiling(problem, (64, 64, 32), form=((), ())), 1) == ""


@pytest.mark.parametrize("in_rows", [False, True])
def test_uneven_parts_cost_no_vector_operation(in_rows):
    one = tiling(WINDOWS, (64, 64, 32), taps_in_rows=in_rows)
    even, uneven = (
        mma_counts(WINDOWS, GFX942, one, mma_of(GFX942, one), parts).iteration.valu
        for parts in (7, 4)
    )
    assert even == uneven


def test_loads_have_less_than_a_iteration():
    compute = counted(matrix=32, matrix_cycles=512, valu=46, salu=30, lds_reads_8=16, loads=8)
    store = counted(lds_writes_8=8)
    assert load_distance((compute, store), 2) == pytest.approx(1 - 69 / 620)
    assert load_distance((compute, store), 3) == pytest.approx(2 - 69 / 620)
    assert load_distance((compute, store), 1) == 0


def valu(problem, one):
    iteration = mma_counts(
        problem, GFX942, one.tiling, mma_of(GFX942, one.tiling), one.split_k
    ).iteration
    return iteration.valu / iteration.equivalents


def seconds(problem, one):
    return predict(problem, GFX942, one.tiling, one.split_k)


@pytest.mark.parametrize("image", [(40, 40), (25, 25), (9, 9)])
def test_a_leaner_kernel_is_as_fast_and_has_as_many_parts(image):
    problem = ConvProblem(n=32, k=36, c=256, image=image, filter=(3, 3), pad_low=(1, 1))
    ranked = tuple(sorted(candidates(problem, GFX942), key=lambda one: seconds(problem, one)))
    fastest, chosen = ranked[0], prefer_low_valu(problem, GFX942, ranked)[0]
    slower = seconds(problem, chosen) / seconds(problem, fastest) - 1
    if valu(problem, chosen) <= TIE_BREAK.low_valu_instructions:
        assert slower <= TIE_BREAK.alike_share
        assert chosen.split_k == fastest.split_k
    else:
        assert slower <= TIE_BREAK.equal_share
        assert chosen.split_k <= fastest.split_k


@pytest.mark.parametrize(
    ("problem", "chip"),
    [(replace(WINDOWS, filter=(1, 1), pad_low=(0, 0)), "gfx942"), (WINDOWS, "gfx1100")],
)
def test_elsewhere_the_order_stays(problem, chip):
    target = find_target(chip)
    ranked = tuple(
        Strategy(name="implicit_gemm", tiling=one, split_k=3)
        for one in [one for _, one in mma_tilings(problem, target)][:3]
    )
    assert prefer_low_valu(problem, target, ranked) == ranked


# RetinaNet's regression heads: 36 output channels of 256.
@pytest.mark.parametrize("size", [100, 50, 25])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_few_output_channels_get_a_lean_loop(size, dtype):
    problem = ConvProblem(
        n=32, k=36, c=256, image=(size, size), filter=(3, 3), pad_low=(1, 1), dtype=dtype
    )
    assert valu(problem, choose(problem, GFX942)[0]) <= TIE_BREAK.low_valu_instructions
