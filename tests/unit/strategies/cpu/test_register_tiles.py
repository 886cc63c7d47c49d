"""The CPU rows: which is chosen when, that their tiles divide, and what their passes leave."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.problem.canonical import canonical
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu import loops
from conv_compiler.strategies.cpu.register_tiles import best_tiling, loop_sizes
from conv_compiler.strategies.cpu.split_k import split_parts
from conv_compiler.strategies.cpu.work_distribution import best_distribution
from conv_compiler.strategies.cpu.workgroup_shares import in_runs, load_imbalance, shares
from conv_compiler.strategies.registry import STRATEGIES
from conv_compiler.strategies.select import choose as choices
from conv_compiler.strategies.select import passed_over
from conv_compiler.targets import find_target
from conv_compiler.targets.host import VECTOR_UNITS, host_unit
from conv_compiler.targets.resolve import resolve
from tests.problems import problems, problems_with_split

CPU = find_target("cpu")


def choose(*args):
    """The strategy tried first."""
    return choices(*args)[0]


def _problem(**sizes):
    settings = {"n": 8, "k": 64, "c": 64, "image": (56, 56), "filter": (3, 3), "pad_low": (1, 1)}
    return ConvProblem(**({"dtype": "f32"} | settings | sizes))


@pytest.mark.parametrize(
    ("sizes", "name", "lanes"),
    [
        ({}, "cpu_packed", "c"),
        ({"k": 256, "filter": (1, 1), "pad_low": (0, 0)}, "cpu_packed", "c"),
        ({"filter": (1, 1), "stride": (2, 2), "pad_low": (0, 0)}, "cpu_lin", "c"),
        ({"k": 256, "filter": (1, 1), "pad_low": (0, 0), "dtype": "f16"}, "cpu_packed", "c"),
        ({"c": 3, "filter": (7, 7), "stride": (2, 2), "pad_low": (3, 3)}, "cpu_packed", "k"),
        ({"g": 32, "k": 16, "c": 16}, "cpu_packed", "c"),
        ({"g": 32, "k": 4, "c": 4}, "cpu_packed", "g"),
        ({"g": 32, "k": 8, "c": 8}, "cpu_packed", "g"),
        ({"g": 2, "k": 8, "c": 8}, "cpu_packed", "c"),
        ({"g": 144, "k": 1, "c": 1}, "cpu_packed", "g"),
        ({"g": 144, "k": 1, "c": 1, "filter": (1, 1), "pad_low": (0, 0)}, "cpu_packed", "g"),
        ({"g": 144, "k": 2, "c": 1}, "cpu_packed", "g"),
        ({"g": 2, "k": 3, "c": 2}, "cpu_packed", "g"),
        ({"k": 3, "c": 2}, "cpu_packed", "c"),
        ({"layout": "NGCHW_GKCYX_NGKHW"}, "cpu_packed", "c"),
    ],
)
def test_row_and_lanes(sizes, name, lanes):
    """On a CPU by name: which loop fills the lanes depends on how many there are."""
    strategy = choose(_problem(**sizes), find_target("cpu-x86-64-v4"))
    parallel = [p for p, t in zip(*_tiles(strategy), strict=True) if t]
    assert (strategy.name, parallel[-1]) == (name, lanes)


@pytest.mark.parametrize(
    "sizes",
    [
        {"k": 1, "c": 1},
        {"n": 1, "k": 8, "image": (3, 3), "pad_low": (0, 0)},
    ],
)
def test_loops_where_nothing_fills_lanes_or_nothing_is_summed(sizes):
    assert choose(_problem(**sizes), CPU).name == "cpu_loops"


def test_a_row_that_does_not_fit_is_refused_by_name():
    with pytest.raises(UnsupportedStrategy, match="cpu_grouped: has no tile"):
        choose(_problem(), CPU, "cpu_grouped")
    assert choose(_problem(), CPU, "cpu_loops").name == "cpu_loops"


@pytest.mark.parametrize("unit", VECTOR_UNITS, ids=lambda unit: unit.feature)
def test_each_vector_unit_has_its_tile(unit):
    _, tiling = best_tiling(_problem(), "c", unit)
    *rows, lanes = (tile for tile in tiling.vector_parallel if tile)
    sums = math.prod(rows) * -(-lanes // unit.lanes)
    # Two multiply-adds start in a cycle and each takes four: fewer sums wait for each other.
    assert 8 <= sums <= unit.most_sums
    assert sums + 1 <= unit.most_vectors


@pytest.mark.parametrize("cores", [2, 8])
def test_workgroups_follow_the_cores(cores):
    problem = _problem(k=512, c=512, image=(14, 14))
    _, tiling = best_tiling(problem, "c", host_unit())
    _, share = shares(problem, tiling, 1, cores)
    workgroups = math.prod(loop_sizes(problem)[p] // size for p, size in share.items())
    assert 4 * cores <= workgroups < 8 * cores


def test_auto_split_cuts_small_weights_and_leaves_large_ones():
    two = find_target("cpu-x86-64-v4@2")
    assert choose(_problem(), two).split_k == 8
    assert choose(_problem(k=512, c=512, image=(7, 7)), two).split_k == 1


@pytest.mark.parametrize(
    ("workgroups", "cores", "lost"),
    [
        (8, 2, 0),
        (9, 2, 1 / 9),
        (15, 2, 1 / 15),
        (16, 2, 0),
        (20, 2, 4 / 20),  # 8 and 8, then 4 to one of them
        (24, 2, 8 / 24),
        (36, 2, 4 / 36),
        (24, 4, 0),  # fewer than eight a worker: one by one
        (40, 4, 24 / 40),
        (5, 1, 0),
        (2, 8, 3),
    ],
)
def test_what_the_last_core_makes_the_others_wait(workgroups, cores, lost):
    assert load_imbalance(workgroups, cores) == pytest.approx(lost)


@pytest.mark.parametrize(
    ("sizes", "apart"),
    [
        ({}, False),  # 4.5 vectors of products a byte of the operands
        ({"k": 128, "c": 128, "image": (28, 28)}, False),
        ({"k": 256, "dtype": "f16", "image": (14, 14), "filter": (1, 1), "pad_low": (0, 0)}, True),
    ],
)
def test_cores_read_the_same_at_once_only_where_little_is_multiplied(sizes, apart):
    problem, two = _problem(**sizes), find_target("cpu-x86-64-v4@2")
    strategy = choose(problem, two)
    share = best_distribution(problem, strategy.tiling, strategy.split_k, two.processor).share
    sharing = math.prod(-(-loop_sizes(problem)[p] // n) for p, n in share.items())
    assert (sharing > 1 and not in_runs(strategy.split_k * sharing, 2)) == apart


def test_one_product_cannot_be_split():
    problem = _problem(n=1, image=(3, 3), pad_low=(0, 0))
    with pytest.raises(UnsupportedStrategy, match="one product"):
        split_parts(problem, 2)


@settings(max_examples=60, deadline=None)
@given(problems_with_split())
def test_parts_cover_gemm_k(drawn):
    problem, split_k = drawn
    if split_k == "auto" or problem.gemm_k == 1:
        return
    parts = split_parts(problem, split_k)
    assert math.prod(n for n, _ in parts.values()) == split_k
    sizes = loop_sizes(problem)
    assert all(padded % n == 0 and padded >= sizes[loop] for loop, (n, padded) in parts.items())


@settings(max_examples=60, deadline=None)
@given(problems())
def test_register_tiles_fit_and_shares_are_whole_tiles(problem):
    for strategy in loops.lin_candidates(problem, CPU) + loops.grouped_candidates(problem, CPU):
        tile = {p: t for p, t in zip(*_tiles(strategy), strict=True) if t}
        *rows, lanes = tile.values()
        assert math.prod(rows) * -(-lanes // host_unit().lanes) <= host_unit().most_sums
        share = shares(problem, strategy.tiling, 1, 2)[1]
        for loop, size in share.items():
            padded = -(-loop_sizes(problem)[loop] // tile[loop]) * tile[loop]
            assert size % tile[loop] == padded % size == 0


@settings(max_examples=40, deadline=None)
@given(problems_with_split())
def test_configuration_matches_the_loops_the_passes_leave(drawn):
    from iree.compiler import ir

    from conv_compiler.build import build
    from conv_compiler.ir.loop_nest import find_nests

    problem, split_k = drawn
    found = choices(problem, CPU, None, split_k)
    strategy = next(one for one in found if not one.tiling.instruction)
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        module = build(problem)
        for step in loops.passes(problem, CPU, strategy):
            step.apply(module)
        assert module.operation.verify()
        (nest,) = find_nests(module)
        iterations = [nest.sizes[loop] for loop in nest.loops]
    for info in loops.schedule(problem, CPU, strategy).roles.values():
        levels = [
            [int(number) for number in numbers.split(",")]
            for numbers in re.findall(r"\[([\d, ]+)\]", info.lowering_config)
        ]
        assert [len(level) for level in levels] == [len(iterations)] * 4
        # A unit loop would cost the op its tag, a tile that does not divide its vectors.
        assert min(iterations) > 1
        assert all(
            n % t == 0 for level in levels for n, t in zip(iterations, level, strict=True) if t
        )


def _tiles(strategy):
    return strategy.tiling.loops, strategy.tiling.vector_parallel


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from(["cpu-x86-64-v3", "cpu-znver4", "cpu-sapphirerapids"]))
def test_a_row_says_why_where_it_has_no_candidates(problem, name):
    target, problem = find_target(name), canonical(problem)
    for row in STRATEGIES.values():
        if "llvm-cpu" in row.backends and row.name != "zeros":  # which is never a candidate
            found = row.candidates(problem, target, 0, ())
            assert bool(found) != bool(row.refusal(problem, target)), row.name


@pytest.mark.parametrize(
    ("target", "sizes", "expected"),
    [
        (
            "cpu-x86-64-v4",
            {"filter": (1, 1), "stride": (2, 2), "pad_low": (0, 0)},
            (
                "cpu_amx_direct: it computes fwd and bwd_data",
                "cpu_amx: cpu-x86-64-v4 multiplies no tiles of f32",
                "cpu_pointwise: it computes fwd and bwd_data",
                "cpu_planes: it computes fwd and bwd_data",
                "cpu_dot_direct: it computes fwd and bwd_data",
                "cpu_dot: cpu-x86-64-v4 multiplies no pairs of f32",
                "cpu_direct: it computes fwd and bwd_data",
                "cpu_packed: comes behind cpu_lin for such a problem",
            ),
        ),
        (
            "cpu-sapphirerapids",
            {"c": 3, "dtype": "bf16"},
            (
                "cpu_amx_direct: it computes fwd and bwd_data",
                "cpu_amx: groups of 3 and 64 channels leave tiles empty, 8 do not",
                "cpu_pointwise: it computes fwd and bwd_data",
                "cpu_planes: it computes fwd and bwd_data",
                "cpu_dot_direct: it computes fwd and bwd_data",
                "cpu_dot: comes behind cpu_packed for such a problem",
                "cpu_direct: it computes fwd and bwd_data",
            ),
        ),
        (
            "cpu-znver4",
            {"n": 1, "k": 1, "c": 1, "image": (3, 3), "pad_low": (0, 0), "dtype": "bf16"},
            (
                "cpu_amx_direct: it computes fwd and bwd_data",
                "cpu_amx: one image has no other to go with",
                "cpu_pointwise: it computes fwd and bwd_data",
                "cpu_planes: it computes fwd and bwd_data",
                "cpu_dot_direct: it computes fwd and bwd_data",
                "cpu_dot: one image has no other to go with",
                "cpu_direct: it computes fwd and bwd_data",
                "cpu_packed: c and k of one: nothing for the lanes",
                "cpu_lin: c and k of one: nothing for the lanes",
                "cpu_grouped: g of one: nothing for the lanes",
            ),
        ),
        ("gfx942", {}, ()),
    ],
)
def test_why_strategies_are_passed_over(target, sizes, expected):
    problem, row = _problem(**{"dtype": "f32", **sizes}), find_target(target)
    chosen = choose(problem, row)
    assert passed_over(resolve(problem, row, chosen.mma), chosen) == expected


def test_pixels_that_no_tap_meets_are_not_read():
    layer = ConvProblem(n=8, k=1024, c=512, image=(28, 28), filter=(1, 1), stride=2, dtype="f32")
    whole = replace(layer, image=(14, 14), stride=1)
    for problem in (layer, whole):
        (one,) = loops.lin_candidates(problem, CPU)[:1]
        costs = {parts: shares(problem, one.tiling, parts, 2).cost for parts in (1, 2, 4)}
        assert min(costs, key=costs.get) == 1
