"""Kernels with a tail: which rows each kind of tile has, LDS, refusals, and the code."""

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
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import wgmma_gemm_cost as gemm_cost
from conv_compiler.strategies.gpu import wgmma_pixels_cost as cost
from conv_compiler.strategies.gpu.pixel_tilings import tilings
from conv_compiler.strategies.gpu.wgmma_pixels import WGMMA_PIXELS, passes
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

# So few units that small problems have whole rounds.
FEW = replace(find_target("sm_90a"), compute_units=3)
LAYER = ConvProblem(
    n=9, k=200, c=136, image=(11, 9), filter=(3, 1), pad_low=(1, 0), layout="NHWC_KYXC_NHWK",
    direction="fwd",
)  # fmt: skip


def _strategies(problem):
    return [
        Strategy(name=WGMMA_PIXELS.name, tiling=one, split_k=1)
        for one in tilings(problem, FEW)
        if one.tail
    ]


def _step(problem, one):
    step, *_ = passes(resolve(problem, FEW, one.mma).wgrad, FEW, one)
    return step


@given(
    n=st.integers(1, 40),
    image=st.integers(1, 30),
    k=st.integers(3, 400),
    c=st.integers(3, 300),
    window=st.integers(1, 3),
    stride=st.integers(1, 2),
    direction=st.sampled_from(["fwd", "bwd_data"]),
    dtype=st.sampled_from(["f16", "i8", "f8E5M2"]),
)
@settings(max_examples=60, deadline=None)
def test_each_row_is_of_one_tile(n, image, k, c, window, stride, direction, dtype):
    """Of each column too; and the cost counts the workgroups and the LDS that the pass writes."""
    try:
        problem = ConvProblem(
            n=n, k=k, c=c, image=(image, image), filter=(window, window), stride=(stride, stride),
            layout="NHWC_KYXC_NHWK", direction=direction, dtype=dtype,
        )  # fmt: skip
    except UnsupportedProblem:
        assume(False)
    for one in _strategies(problem):
        step = _step(problem, one)
        step.check()
        kernel, rows = step.kernel, math.prod(step.units)
        found = [0] * rows
        starts = 0, step.head_rows
        for own, start in zip(kernel.kinds, starts, strict=True):
            m, total = own.sizes.tile_m, own.row_tiles
            assert total > 0
            assert own.column_tiles * own.sizes.tile_n >= step.gemm_n
            # A tile tests its rows only where the problem's are no whole tiles of it.
            assert start % m == 0
            assert rows % m or start + total * m <= rows
            for row in range(start, min(start + total * m, rows)):
                found[row] += 1
            assert start + (total - 1) * m < rows
        assert set(found) == {1}
        assert kernel.grid == (cost.workgroups(problem, one.tiling), 1, 1)
        count = cost.k_tiles(problem, one.tiling)
        for is_narrow in (False, True):
            lds = max(
                gemm_cost.lds_bytes(kind, min(kind.stages, count), is_narrow)
                for kind in one.tiling.kinds
            )
            assert 4 * kernel.lds_floats(is_narrow=is_narrow) == lds <= FEW.lds_bytes


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"split_k": 2}, "its kernel is one of wave groups, of one group, part and phase"),
        ({"groups": 2}, "its kernel is one of wave groups, of one group, part and phase"),
        ({"row_workgroups": 2}, "a workgroup of several row tiles is one of wave groups"),
        (
            {"direction": "bwd_data", "stride": (2, 2), "outs": (6, 5)},
            "its kernel is one of wave groups, of one group, part and phase",
        ),
        ({"tail": (1, 64, 128, 1, 1, 4)}, "its workgroups have as many threads as others"),
        ({"tail": (1, 256, 64, 2, 1, 4)}, "a larger tile has whole tiles of its rows"),
        ({"tail": (1, 64, 96, 1, 2, 4)}, "tile 64x96x64: n is whole blocks of 64 channels"),
        ({"tail": (7, 64, 128, 1, 2, 4)}, "it has rows, behind others"),
        ({"tail": (0, 64, 128, 1, 2, 4)}, "all of 1 or more; mend it"),
        ({"tail": (1, 64, 128)}, "it has head_tiles, tile_m, tile_n, groups_m, groups_n, stages"),
    ],
    ids=str,
)
def test_a_tail_that_no_kernel_has_is_refused(changes, rule):
    step = replace(
        _step(LAYER, _strategies(LAYER)[0]),
        tile_m=128, tile_n=256, groups_m=2, groups_n=1, stages=4, tail=(1, 64, 128, 1, 2, 4),
    )  # fmt: skip
    step.check()
    with pytest.raises(UnsupportedStrategy, match=rule):
        replace(step, **changes).check()


@pytest.mark.parametrize(
    ("changes", "large"),
    [
        ({}, (128, 256)),
        ({"direction": "bwd_data", "dtype": "bf16", "weight_dtype": ""}, (256, 128)),
        ({"elementwise": "bias>relu", "k": 75}, (128, 128)),
        ({"dtype": "i8", "weight_dtype": ""}, (128, 128)),
    ],
    ids=str,
)
def test_both_kinds_of_tiles_are_in_one_kernel(tmp_path, changes, large):
    """Their products have different columns, and one array of LDS serves both."""
    problem = replace(LAYER, **changes)
    one, *_ = (one for one in _strategies(problem) if one.tile[:2] == large)
    text = stage_texts(resolve(problem, FEW, one.mma), one, tmp_path)["isa"]
    columns = {kind.workgroup[1] // kind.warp_groups[1] for kind in one.tiling.kinds}
    found = {int(n) for n in re.findall(r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k", text)}
    assert found == columns
    entry = text[text.index(".entry wgmma_pixels(") :]
    assert "ret;" in entry
    assert len(re.findall(r"\.shared \.align", text)) == 1
    assert ".local" not in text


def test_tails_are_of_the_table():
    found = {
        (one.tiling.tail.tile, one.tiling.tail.warp_groups)
        for problem, direction in product([LAYER, replace(LAYER, k=40)], ["fwd", "bwd_data"])
        for one in _strategies(replace(problem, direction=direction))
    }
    assert found <= set(WGMMA_PIXELS.table.tail_tiles)
    assert len(found) > 1
