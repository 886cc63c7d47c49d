"""A batch cut into tiles of gemm_k, which are shared out among the parts like pixels."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from conv_compiler.build.bwd_weight import BATCH_CHUNKS
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.loop_order import chip_forms, form_iterations
from conv_compiler.strategies.select import candidates
from conv_compiler.targets import find_target
from conv_compiler.verification.verify import verify

CHIPS = ("gfx90a", "gfx942", "gfx1100")
PAD = {"filter": (3, 3), "pad_low": (1, 1), "pad_high": (1, 1)}
PROBLEMS = {
    "windows": ConvProblem(n=64, k=70, c=64, image=(5, 7), **PAD),
    "rows": ConvProblem(n=96, k=36, c=64, image=(5, 4), **PAD),
    "merged": ConvProblem(n=64, g=8, k=8, c=7, image=(5, 4), **PAD),
    "strides": ConvProblem(n=64, k=65, c=40, image=(9, 7), filter=(3, 2), stride=(2, 1)),
    "line": ConvProblem(n=64, k=40, c=24, image=(11,), filter=(3,), dtype="bf16"),
    "pixels": ConvProblem(n=96, k=64, c=72, image=(3, 3), filter=(1, 1)),
    "volume": ConvProblem(n=64, k=33, c=48, image=(3, 2, 5), filter=(2, 1, 3), dtype="i8"),
    "channels_first": ConvProblem(
        n=64, k=40, c=64, image=(3, 5), filter=(1, 1), layout="NCHW_KCYX_NKHW"
    ),
}


def in_chunks(problem, chip, split_k):
    """The best schedule of those that cut the batch, of the smallest tiles of gemm_k."""
    return min(
        (
            one
            for tile in ((64, 64, 32), (32, 32, 32))
            for one in candidates(problem, find_target(chip), "implicit_gemm", split_k, tile)
            if BATCH_CHUNKS in getattr(one.tiling, "outside", ())
        ),
        key=lambda one: one.tile[2],
    )


# Chips take turns by default.
CASES = [
    pytest.param(
        name,
        chip,
        split_k,
        id=f"{split_k}-{name}-{chip}",
        marks=[pytest.mark.slow] if (i + j + turn) % len(CHIPS) else [],
    )
    for i, name in enumerate(PROBLEMS)
    for j, split_k in enumerate((1, 4))
    for turn, chip in enumerate(CHIPS)
]


@pytest.mark.parametrize(("name", "chip", "split_k"), CASES)
def test_every_kind_of_problem(name, chip, split_k):
    problem = PROBLEMS[name]
    strategy = in_chunks(problem, chip, split_k)
    assert problem.n % strategy.tile[2] == 0
    assert verify(problem, chip, strategy, device="vgpu-checked").passed


def test_parts_differ_by_a_tile():
    """49 pixels of 128 images in six parts: 33 tiles of 32 images, where nine pixels are 36."""
    problem = replace(PROBLEMS["windows"], n=128, image=(7, 7))
    target = find_target("gfx942")
    pixels = (("ho", "wo"), ("n",))
    (cut,) = (f for f in chip_forms(problem, target, False, 32) if BATCH_CHUNKS in f[0])
    assert form_iterations(problem, pixels, 32, False, 6) == 9 * 4
    assert form_iterations(problem, cut, 32, False, 6) == math.ceil(49 * 4 / 6)


@pytest.mark.parametrize(
    ("chip", "n", "layout"),
    [
        ("gfx942", 32, "NHWC_KYXC_NHWK"),  # one tile
        ("gfx942", 72, "NHWC_KYXC_NHWK"),  # no whole number
        ("sm_80", 128, "NHWC_KYXC_NHWK"),  # no scalar unit
    ],
)
def test_others_are_not_cut(chip, n, layout):
    problem = replace(PROBLEMS["windows"], n=n, layout=layout)
    forms = chip_forms(problem, find_target(chip), False, 32)
    assert not any(BATCH_CHUNKS in outside for outside, _ in forms)
