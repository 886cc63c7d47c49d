"""Kernels of tiles, run: directions, layouts, odd sizes and batches, splits, ops.

Where the host has no AMX, its instructions are written out in plain vectors (tests/tiles.py): all
else of the kernels is the same.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.problem.canonical import canonical
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.strategies.cpu import work_distribution
from conv_compiler.strategies.cpu.amx_tiles import tile_candidates
from conv_compiler.targets import find_target
from conv_compiler.targets.host import TILE_INSTRUCTIONS, host_flags
from tests import tiles
from tests.checks import check
from tests.problems import for_drawn, problems_with_split
from tests.turns import in_turn

CPU = find_target("cpu")
DTYPES = [row.dtype for row in TILE_INSTRUCTIONS.values()]
PROBLEM = ConvProblem(
    n=5, g=2, k=20, c=17, image=(9, 8), filter=(3, 2), stride=(2, 1), pad_low=(1, 0), dtype="bf16"
)
KINDS = {
    "even": {"n": 8, "k": 32, "c": 32},
    "two images": {"n": 2},
    "channels first": {"layout": "NGCHW_GKCYX_NGKHW"},
    "groups first": {"layout": "GNHWC_GKYXC_GNHWK"},
    "dilated": {"stride": (1, 1), "dilation": (2, 3)},
    "rows of two tiles, the last one short": {"image": (5, 37), "stride": 1, "pad_low": 1},
    "few pixels, many images": {"n": 33, "image": (4, 3), "filter": (2, 2), "stride": 1},
    "three taps in a tile": {"k": 16, "c": 32, "filter": (3, 3), "stride": 1, "pad_low": 1},
    "chunks": {"g": 1, "n": 4, "k": 64, "c": 64, "image": (20, 40), "stride": 1},
    "1D": {"image": (53,), "filter": (5,), "stride": 1, "pad_low": (2,)},
    "1D, dilated": {
        "g": 1,
        "image": (203,),
        "filter": (3,),
        "stride": 2,
        "dilation": 9,
        "pad_low": 0,
    },
    "3D": {"image": (5, 6, 7), "filter": (2, 3, 1), "stride": 1, "pad_low": 1},
    "1x1": {"filter": (1, 1), "stride": 1, "pad_low": 0, "n": 6},
    "1x1, stride 2": {"filter": (1, 1), "stride": 2, "pad_low": 0},
    "lanes of k": {"g": 1, "k": 40, "c": 16, "stride": 1, "pad_low": 1},
    "lanes of k, groups": {
        "k": 40,
        "c": 9,
        "stride": 1,
        "pad_low": 1,
        "layout": "GNHWC_GKYXC_GNHWK",
    },
    "lanes of k, 1x1": {"k": 40, "c": 16, "filter": (1, 1), "stride": 1, "pad_low": 0},
    "lanes of k, dilated": {"k": 64, "c": 16, "stride": 1, "dilation": (2, 3), "pad_low": 1},
    "lanes of k, one pixel": {"k": 220, "image": (3, 2), "stride": 1, "pad_low": 0},
    "lanes of k, many images": {"n": 33, "k": 64, "image": (4, 3), "filter": (2, 2), "stride": 1},
    "lanes of k, channels first": {"k": 17, "c": 40, "stride": 1, "layout": "NGCHW_GKCYX_NGKHW"},
    "lanes of k, 3D": {
        "k": 48,
        "c": 16,
        "image": (5, 6, 17),
        "filter": (2, 1, 3),
        "stride": 1,
        "pad_low": (0, 0, 1),
    },
    "any batch": {"dynamic_batch": True},
}


@pytest.fixture(autouse=True)
def _tiles(monkeypatch, tmp_path):
    has_tiles = {row.flag for row in TILE_INSTRUCTIONS.values()} <= host_flags()
    # Every processor with AMX has AVX-512. What LLVM makes of the emulation for AVX2 alone writes
    # past the end of a buffer; no kernel that users have is compiled so.
    if not has_tiles and "avx512f" not in host_flags():
        pytest.skip("the emulation of tile registers needs a host with AVX-512")
    tiles.on_any_host(monkeypatch, tmp_path)


def problem_of(dtype, **fields):
    shape = {"pad_high": (), "dilation": ()} | fields
    return replace(PROBLEM, dtype=dtype, weight_dtype="", **shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_directions(dtype, direction):
    problem = problem_of(dtype, direction=direction, n=9, image=(11, 12))
    assert check(problem, strategy="cpu_amx").strategy.startswith("cpu_amx ")


def deal_only(monkeypatch, packs_first):
    """Let kernels of their own pack the operands, or none, whatever is the cheaper."""
    all_of_them = work_distribution.Distributions.of_at_least

    def chosen(self, *sizes):
        return (one for one in all_of_them(self, *sizes) if one.packs_first == packs_first)

    work_distribution.best_distribution.cache_clear()
    monkeypatch.setattr(work_distribution.Distributions, "of_at_least", chosen)


@pytest.fixture
def _deals(deals, monkeypatch, tmp_path):
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path))
    deal_only(monkeypatch, deals == "packed first")
    yield
    work_distribution.best_distribution.cache_clear()


DEALS = ("copies by workgroups", "packed first")


@pytest.mark.usefixtures("_deals")
@pytest.mark.parametrize(("kind", "deals"), in_turn(KINDS, DEALS))
def test_kinds(kind, deals):
    problem = problem_of("bf16", **KINDS[kind])
    (tiling,) = (one.tiling for one in tile_candidates(problem, CPU))
    tiles = [loop for loop, tile in zip(tiling.loops, tiling.vector_parallel, strict=True) if tile]
    assert tiles[-1] == ("k" if "lanes of k" in kind else "c")
    check(problem, strategy="cpu_amx")


@pytest.mark.usefixtures("_deals")
@pytest.mark.parametrize(
    ("kind", "deals"),
    in_turn(["chunks", "channels first", "even", "few pixels, many images"], DEALS),
)
def test_kinds_of_integers(kind, deals):
    check(problem_of("i8", **KINDS[kind]), strategy="cpu_amx")


@pytest.mark.parametrize(
    "fields", [{"elementwise": "bilinear(0.5,2)"}, {"input_op": "relu", "output_op": "scale(3)"}]
)
def test_ops(fields):
    check(problem_of("bf16", **fields), strategy="cpu_amx")


@pytest.mark.parametrize(("split_k", "dtype"), in_turn([2, 3, 35], DTYPES))
def test_splits(split_k, dtype):
    problem = problem_of(dtype)
    assert check(problem, strategy="cpu_amx", split_k=split_k).split_k == split_k


def random_products(dtype, examples):
    @for_drawn(problems_with_split(), examples, f"cpu_amx {dtype}")
    def run(drawn):
        problem, split_k = drawn
        problem = replace(problem, dtype=dtype, weight_dtype="", compute="")
        if tile_candidates(canonical(problem), CPU):
            check(problem, strategy="cpu_amx", split_k=split_k)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_many_random_products(dtype):
    random_products(dtype, 200)
