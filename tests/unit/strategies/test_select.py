"""Which strategy is chosen: known problems by golden file, refusals by message.

A change of the heuristics shows as a change of tests/golden/; `pytest --update-golden` writes it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conv_compiler.commands.demo import LAYERS
from conv_compiler.errors import UnsupportedStrategy, UnsupportedTarget
from conv_compiler.frontends import read_file
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import depthwise_cost, grid
from conv_compiler.strategies.registry import STRATEGIES
from conv_compiler.strategies.select import candidates, choose
from conv_compiler.strategies.split_k import LEAST_ITERATIONS
from conv_compiler.strategies.strategy import Strategy, StrategyRequest
from conv_compiler.targets import TARGETS, find_target

DATA = Path(__file__).parents[2] / "data"
# By default one chip of each kind of matrix instructions, and NVIDIA's.
USUAL = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_80")
CHIPS = [
    pytest.param(name, marks=[pytest.mark.slow] * (name not in USUAL))
    for name, row in TARGETS.items()
    if row.is_gpu
]
P = ConvProblem


def retinanet():
    layers = json.loads((DATA / "retinanet_bwd_weight.json").read_text())["layers"]
    keys = set(ConvProblem.__dataclass_fields__)
    return [
        ConvProblem.from_json({k: v for k, v in layer.items() if k in keys} | {"n": 16})
        for layer in layers[::4]
    ]


# Groups of ResNeXt, depthwise layers of MobileNet and EfficientNet, and sizes nobody tunes for.
OTHERS = [
    *(
        P(n=32, g=32, k=width, c=width, image=(size, size), filter=(3, 3), pad_low=(1, 1))
        for width, size in ((4, 56), (8, 28), (16, 14), (32, 7))
    ),
    P(n=32, g=144, k=1, c=1, image=(56, 56), filter=(3, 3), pad_low=(1, 1)),
    P(n=32, g=672, k=1, c=1, image=(14, 14), filter=(5, 5), pad_low=(2, 2), stride=(2, 2)),
    P(n=1, k=1, c=1, image=(1,), filter=(1,)),
    P(n=3, g=2, k=23, c=13, image=(11, 13), filter=(3, 2), pad_low=(1, 0), dtype="bf16"),
    P(n=7, k=17, c=3, image=(37,), filter=(5,), dilation=(2,), dtype="f32"),
    P(n=2, k=65, c=31, image=(9, 10, 11), filter=(3, 3, 3), pad_low=(1, 1, 1), dtype="i8"),
    P(n=4, k=256, c=256, image=(14, 14), filter=(3, 3), pad_low=(1, 1), dtype="f32"),
    P(n=4, k=256, c=256, image=(14, 14), filter=(3, 3), pad_low=(1, 1), dtype="i8"),
]


@pytest.mark.parametrize("chip", CHIPS)
def test_choice_for_known_problems(chip, golden):
    known = [request.problem for request in read_file(LAYERS)] + retinanet() + OTHERS
    lines = [
        f"{problem.name}\n    {choose(problem, find_target(chip))[0].text}" for problem in known
    ]
    golden(f"strategies_{chip}", "\n".join(lines) + "\n")


RESNET = P(n=32, k=64, c=64, image=(56, 56), filter=(3, 3), pad_low=(1, 1))


def test_a_named_strategy_is_kept():
    target = find_target("gfx942")
    for name in ("implicit_gemm", "vector_gemm"):
        assert {one.name for one in choose(RESNET, target, name)} == {name}


def test_a_whole_strategy_is_kept():
    target = find_target("gfx942")
    wanted = choose(RESNET, target)[2].with_split_k(3)
    assert choose(RESNET, target, wanted) == (wanted,)
    assert choose(RESNET, target, wanted, 5) == (wanted.with_split_k(5),)


def test_minus_one_is_automatic():
    target = find_target("gfx90a")
    assert choose(RESNET, target, split_k=-1) == choose(RESNET, target)


def test_split_is_decided_for_every_candidate():
    for target in TARGETS.values():
        assert all(one.split_k >= 1 for one in choose(RESNET, target))
        assert all(one.split_k >= 1 for one in candidates(RESNET, target) if target.is_gpu)


def test_composable_kernels_rule_is_a_choice():
    target = find_target("gfx942")
    chosen = choose(RESNET, target, None, "occupancy")[0]
    # Two workgroups are wanted for each of 304 units.
    assert chosen.split_k == 608 // grid.tiles(RESNET, chosen.tiling)
    with pytest.raises(UnsupportedStrategy, match="split_k occupancy: a rule for GPUs, not cpu"):
        choose(RESNET, find_target("cpu"), None, "occupancy")


def test_the_rule_counts_rounds_of_depthwise_strips():
    problem = P(n=32, g=128, k=1, c=1, image=(56, 56), filter=(3, 3), pad_low=(1, 1))
    chosen = choose(problem, find_target("gfx942"), "depthwise", "occupancy")[0]
    tiling = chosen.tiling
    # 32 images of 8 x 8 strips of 7 x 7 pixels, 32 strips a round; a part keeps four rounds.
    assert (tiling.columns, tiling.rows, tiling.threads // tiling.lanes) == (7, 7, 32)
    assert depthwise_cost.strip_rounds(problem, tiling) == 64
    assert chosen.split_k == 64 // LEAST_ITERATIONS == 16


def test_a_users_script_goes_to_a_schedule_that_has_one():
    problem = P(n=32, g=128, k=1, c=1, image=(56, 56), filter=(3, 3), pad_low=(1, 1))
    target = find_target("gfx942")
    assert choose(problem, target)[0].name == "depthwise"
    (chosen,) = choose(problem, target, StrategyRequest(script="module {}"))
    assert (chosen.name, chosen.script) == ("implicit_gemm", "module {}")
    with pytest.raises(UnsupportedStrategy, match="depthwise on gfx942 has no script to replace"):
        choose(problem, target, StrategyRequest(name="depthwise", script="module {}"))


def test_types_without_an_instruction_get_vector_code_by_name():
    problem = P(n=4, k=64, c=64, image=(14, 14), filter=(3, 3), dtype="f32")
    assert choose(problem, find_target("gfx1100"))[0].name == "vector_gemm"
    with pytest.raises(UnsupportedStrategy, match="implicit_gemm: has no tile for f32 on gfx1100"):
        choose(problem, find_target("gfx1100"), "implicit_gemm")


@pytest.mark.parametrize(
    ("strategy", "split_k", "message"),
    [
        ("nope", "auto", "strategy nope: not in the table; known: .*implicit_gemm"),
        ("cpu_lin", "auto", "strategy cpu_lin: not for gfx942; use implicit_gemm or vector_gemm"),
        (None, "many", "split_k many: not a number"),
        (None, 0, "split_k 0: not from 1"),
        (None, 2000, "split_k 2000: not from 1"),
    ],
)
def test_refusals(strategy, split_k, message):
    with pytest.raises(UnsupportedStrategy, match=message):
        choose(RESNET, find_target("gfx942"), strategy, split_k)


def test_a_whole_strategy_of_an_unknown_row_is_refused():
    foreign = Strategy(name="nope", tiling=choose(RESNET, find_target("gfx942"))[0].tiling)
    with pytest.raises(UnsupportedStrategy, match="strategy nope: not in the table"):
        choose(RESNET, find_target("gfx942"), foreign)


def test_every_row_has_a_name_a_description_and_a_backend():
    for name, row in STRATEGIES.items():
        assert name == row.name
        assert row.description
        assert set(row.backends) <= {target.backend for target in TARGETS.values()}


def test_strategies_survive_json():
    for target in TARGETS.values():
        for one in choose(RESNET, target):
            values = json.loads(json.dumps(one.to_json()))
            assert values == one.to_json()  # of a store, which an entry is compared with
            assert Strategy.from_json(values) == one


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1201", "sm_80"])
def test_f64_is_refused_on_gpus(chip):
    problem = ConvProblem(n=1, k=8, c=8, image=(4,), filter=(1,), dtype="f64")
    with pytest.raises(UnsupportedTarget, match=f"target {chip}: no strategy computes .*_f64 on"):
        choose(problem, find_target(chip))
