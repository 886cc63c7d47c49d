"""The window coordinates of im2col are listed by the rank of their axes in the image.

A first version listed them in the order (batch, space, channel) whatever the layout, and read the
wrong elements where the channel axis comes before space: NGCHW. Seen on an NVIDIA GPU; the kernels
compiled without a word. `input_k_perm[i]` is the rank, among the axes a window moves along, of the
i-th one in the order (batch, space..., channel).
"""

from __future__ import annotations

import re

import pytest
from iree.compiler import ir

from conv_compiler.build import build
from conv_compiler.passes.im2col import Im2col
from conv_compiler.passes.split_k import SplitK
from conv_compiler.passes.sum_parts import SumParts
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.layouts import LAYOUTS, find_layout
from tests.checks import wrong_on_the_cpu

PERM = re.compile(
    r'operand = "b"}.*?m_pos = \[([^]]*)\] k_pos = \[([^]]*)\] input_k_perm = \[([^]]*)\]'
)


def problem_of(layout, ndim, taps=2):
    return ConvProblem(
        n=2, g=2, k=2, c=2, image=(2, 3, 2)[:ndim], filter=(taps, 2, 1)[:ndim],
        layout=layout, dtype="f32",
    )  # fmt: skip


def as_gemm(problem, split_k=1):
    """The payload of a problem as a GEMM on tiles of one element."""
    with ir.Context(), ir.Location.unknown():
        module = build(problem)
        for step in (
            Im2col(tile_m=1, tile_n=1, tile_k=1),
            SplitK(split_k=split_k, tile_k=1),
            SumParts(),
        ):
            step.apply(module)
        return str(module)


def numbers(text):
    return [int(word) for word in text.split(",")]


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("row", LAYOUTS, ids=lambda row: row.spell(2))
def test_windows_are_listed_by_rank(row, ndim):
    pixels, columns, perm = PERM.search(as_gemm(problem_of(row.spell(ndim), ndim))).groups()
    axes = [*numbers(pixels), *numbers(columns)]
    assert numbers(perm) == [sorted(axes).index(axis) for axis in axes]
    # Channels last is the identity; a channel before space comes right after the batch, and behind
    # space may stand the unit axis of test_channels_first_window.py.
    identity = list(range(ndim + 2))
    channels_first = row.grouped.input.index("C") < row.grouped.input.index("*")
    assert numbers(perm)[: ndim + 2] == ([0, *identity[2:], 1] if channels_first else identity)


CASES = [(row.spell(2), 2) for row in LAYOUTS]
CASES += [(find_layout("NGCHW_GKCYX_NGKHW", ndim).spell(ndim), ndim) for ndim in (1, 3)]


@pytest.mark.parametrize(("layout", "ndim"), CASES)
def test_gemm_reads_the_right_elements(layout, ndim, tmp_path):
    problem = problem_of(layout, ndim)
    assert wrong_on_the_cpu(problem, as_gemm(problem, split_k=2), tmp_path) == 0


def test_the_identity_is_wrong_for_channels_first(tmp_path):
    problem = problem_of("NGCHW_GKCYX_NGKHW", 2)
    text = as_gemm(problem)
    assert "input_k_perm = [0, 2, 3, 1, 4]" in text
    broken = text.replace("input_k_perm = [0, 2, 3, 1, 4]", "input_k_perm = [0, 1, 2, 3, 4]")
    assert wrong_on_the_cpu(problem, broken, tmp_path) > 0
