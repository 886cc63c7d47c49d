"""How many dies read an operand: each workgroup of the grid put on its die, and counted."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.problem.canonical import equivalent_wgrad
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.die_reads import dies_reading
from conv_compiler.strategies.gpu.grid import tile_grid
from conv_compiler.strategies.strategy import GpuTiling

TILING = GpuTiling(workgroup=(128, 64, 32), subgroups=(2, 2))
POINTWISE = ConvProblem(n=32, k=256, c=512, image=(4, 3), filter=(1, 1), layout="NHWC_KYXC_NHWK")


def counted(wgrad, split_k, dies):
    """The dies that read each tile of the operands of a 1x1 problem: the most, by bytes."""
    grid = tile_grid(wgrad, TILING)
    assert grid.outer == 1
    readers = defaultdict(set)
    every = product(range(grid.rows), range(grid.columns), range(split_k))
    for number, (row, column, part) in enumerate(every):
        readers["a", row, part].add(number % dies)
        readers["b", column, part].add(number % dies)
    most = {
        side: max(len(found) for key, found in readers.items() if key[0] == side) for side in "ab"
    }
    sizes = {"a": math.prod(wgrad.output_shape), "b": math.prod(wgrad.input_shape)}
    return sum(sizes[side] * most[side] for side in "ab") / sum(sizes.values())


@settings(deadline=None)
@given(
    direction=st.sampled_from(["fwd", "bwd_data"]),
    k=st.integers(1, 1200),
    c=st.integers(1, 1200),
    n=st.integers(1, 60),
    split_k=st.integers(1, 9),
    dies=st.sampled_from([1, 2, 4, 8]),
)
def test_of_tiles_with_pixels_of_their_own(direction, k, c, n, split_k, dies):
    problem = replace(POINTWISE, k=k, c=c, n=n, direction=direction)
    wgrad = equivalent_wgrad(problem)
    found = dies_reading(wgrad, TILING, split_k, dies)
    assert found == pytest.approx(counted(wgrad, split_k, dies))


@pytest.mark.parametrize(("split_k", "dies"), [(1, 8), (4, 2), (6, 4), (7, 8), (16, 1)])
def test_of_a_weight_gradient(split_k, dies):
    """Each part's pixels are on so many dies."""
    assert dies_reading(POINTWISE, TILING, split_k, 8) == dies


def test_windows_bring_a_pixel_to_several_tiles():
    """A 3x3 filter brings each pixel to the tiles of nine taps, a 1x1 one to one of them."""
    image = {"image": (14, 14), "direction": "fwd"}
    one, nine = (
        equivalent_wgrad(replace(POINTWISE, filter=(size, size), **image)) for size in (1, 3)
    )
    assert dies_reading(one, TILING, 1, 8) < dies_reading(nine, TILING, 1, 8)
