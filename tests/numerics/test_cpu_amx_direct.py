"""Direct kernels of tiles, run: both directions, dimensions, strides, pads, odd rows, groups, ops.

Where the host has no AMX, its instructions are written out in plain vectors (tests/tiles.py): all
else of the kernels is the same.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu.cpu_amx_direct import misfit
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.verification.verify import verify
from tests import tiles
from tests.checks import check
from tests.problems import small_images
from tests.turns import in_turn

DIRECTIONS = ("fwd", "bwd_data")
PROBLEMS = {
    "pads": ConvProblem(n=2, k=32, c=32, image=(5, 9), filter=(3, 3), pad_low=1),
    "pixels of no image": ConvProblem(n=2, k=32, c=32, image=(7, 7), filter=(1, 1)),
    "stride": ConvProblem(n=2, k=32, c=48, image=(7, 11), filter=(3, 3), stride=2, pad_low=1),
    "gaps": ConvProblem(n=2, k=32, c=64, image=(8, 12), filter=(1, 1), stride=2),
    "groups": ConvProblem(
        n=2, g=2, k=32, c=16, image=(6, 20), filter=(2, 3), dilation=(1, 2), pad_low=(1, 0),
        pad_high=(0, 3),
    ),
    "planes": ConvProblem(n=1, k=32, c=32, image=(3, 4, 18), filter=(2, 3, 3), pad_low=1),
    "empty lanes": ConvProblem(n=2, g=2, k=36, c=40, image=(5, 9), filter=(3, 3), pad_low=1),
    "blocks that overlap": ConvProblem(
        n=1, g=2, k=120, c=104, image=(3, 9), filter=(1, 3), pad_low=(0, 1)
    ),
    "channels first": ConvProblem(
        n=2, k=16, c=48, image=(7, 11), filter=(3, 3), stride=2, pad_low=1,
        layout="NGCHW_GKCYX_NGKHW",
    ),
    "few pixels of a phase": ConvProblem(n=2, k=32, c=32, image=(5, 2), filter=1, stride=(1, 3)),
    "one dimension": ConvProblem(
        n=3, k=16, c=32, image=(41,), filter=(5,), stride=2, pad_low=2, layout="NWGC_GKXC_NWGK"
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _tiles(monkeypatch, tmp_path):
    tiles.on_any_host(monkeypatch, tmp_path)


def fits(problem):
    row = find_target("cpu")
    return not misfit(resolve(problem, row).wgrad, row)


@pytest.mark.parametrize(
    ("name", "direction", "dtype"), in_turn(PROBLEMS, DIRECTIONS, ["bf16", "i8"])
)
def test_integers_are_exact(name, direction, dtype):
    problem = replace(PROBLEMS[name], direction=direction, dtype=dtype, weight_dtype="")
    if not fits(problem):
        pytest.skip("not of this type in this direction")
    verify(problem, "cpu", "cpu_amx_direct", data="integers", budget=0).require()


@pytest.mark.parametrize("fields", [{"elementwise": "relu"}, {"weight_dtype": "f32"}])
def test_ops_and_types(fields):
    problem = replace(PROBLEMS["pads"], direction="fwd", dtype="bf16", weight_dtype="")
    check(replace(problem, **fields), strategy="cpu_amx_direct")


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(problem=small_images([(16, 16, 1), (32, 48, 1), (64, 16, 2), (80, 32, 1)], "bf16"))
def test_any_sizes(problem):
    if fits(problem):
        verify(problem, "cpu", "cpu_amx_direct", data="integers", budget=0).require()
