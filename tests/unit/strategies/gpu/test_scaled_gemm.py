"""`scaled_gemm`: which problems it takes, what it promises, and what stands in its artifacts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.problem.canonical import elements_of
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.scaled_gemm import SCALED_GEMM, blocks, misfit
from conv_compiler.strategies.registry import STRATEGIES
from conv_compiler.strategies.scaled_tiling import ScaledTiling
from conv_compiler.strategies.select import choose, decide
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

GFX950 = find_target("gfx950")
PROBLEM = ConvProblem(
    n=32, k=64, c=256, image=(14, 14), filter=(3, 3), pad_low=1, direction="fwd", dtype="f8E4M3FN",
    block_scales="mx",
)  # fmt: skip


def wgrad_of(problem, target=GFX950):
    return resolve(problem, target).wgrad


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({}, ""),
        ({"direction": "bwd_weight"}, ""),
        ({"layout": "GNHWC_GKYXC_GNHWK"}, ""),
        ({"layout": "NHWC", "dtype": "f8E5M2", "weight_dtype": "f16"}, ""),
        ({"dtype": "f6E3M2FN"}, ""),
        ({"dtype": "f4E2M1FN", "direction": "bwd_weight"}, ""),
        ({"direction": "bwd_data"}, "it computes fwd and bwd_weight"),
        ({"layout": "NCHW"}, "channels lie last in the result"),
        ({"input_op": "relu"}, "it takes operands with block scales, as they are given"),
        ({"pad_mode": "circular"}, "it takes operands with block scales, as they are given"),
        ({"compute": "bf16"}, "it takes operands with block scales, as they are given"),
        ({"block_scales": ""}, "it takes operands with block scales, as they are given"),
    ],
)
def test_the_rule_that_a_problem_breaks(fields, rule):
    wgrad = wgrad_of(replace(PROBLEM, **fields))
    assert misfit(wgrad, GFX950) == SCALED_GEMM.refusal(wgrad, GFX950) == rule
    assert bool(SCALED_GEMM.candidates(wgrad, GFX950, 0, ())) == (not rule)


def test_other_chips_know_bf16_alone():
    wgrad = wgrad_of(PROBLEM, find_target("gfx942"))
    assert (elements_of(wgrad), wgrad.dtype) == ("", "bf16")
    assert (elements_of(wgrad_of(PROBLEM)), wgrad_of(PROBLEM).dtype) == ("f8E4M3FN", "bf16")


def test_numbers_and_promises():
    wgrad = wgrad_of(PROBLEM)
    found = SCALED_GEMM.candidates(wgrad, GFX950, 0, (2, 4, 2))
    (one,) = found
    assert one.tile == (2, 4, 2)
    assert one.mma == "MFMA_SCALE_F32_16x16x128_F8E4M3FN"
    promise = SCALED_GEMM.promises(wgrad, GFX950, one)
    assert promise.instruction == "v_mfma_scale_f32_16x16x128_f8f6f4"
    # 64 rows in tiles of 32; 32 images of 14x14 pixels in tiles of 128.
    assert blocks(wgrad, one.tiling) == 2 * 49
    assert SCALED_GEMM.occupancy(wgrad, GFX950, one) == (98, 9 * 2)
    assert Strategy.from_json(json.loads(json.dumps(one.to_json()))) == one
    assert isinstance(one.tiling, ScaledTiling)
    assert SCALED_GEMM.splits(wgrad, GFX950, one) == [1]


def test_packed_elements_have_their_own_instruction_and_sizes():
    """A block of 4 bits is half of one of 8 to read, and its products take half of the time."""
    short = replace(PROBLEM, dtype="f4E2M1FN", k=1024, c=4096)
    (one,) = SCALED_GEMM.candidates(wgrad_of(short), GFX950, 0, (4, 4, 1))
    assert one.mma == "MFMA_SCALE_F32_16x16x128_F4E2M1FN"
    assert wgrad_of(short).dtype == "bf16"
    wide = wgrad_of(replace(short, dtype="f8E5M2"))
    assert SCALED_GEMM.cost(wgrad_of(short), GFX950, one) < SCALED_GEMM.cost(wide, GFX950, one)
    for kind in (SCALED_GEMM, STRATEGIES["implicit_gemm"]):
        backward = replace(short, direction="bwd_weight", k=64, c=64)
        wider = wgrad_of(replace(backward, dtype="f8E5M2"))
        assert kind.in_front(wgrad_of(backward), GFX950) < kind.in_front(wider, GFX950)


@pytest.mark.parametrize(
    ("fields", "taken"),
    [
        ({}, True),
        ({"k": 57}, False),  # whole columns beside a rest of rows: IREE 3.13 fails to verify it
        ({"k": 57, "c": 23}, True),
        ({"k": 57, "direction": "fwd"}, True),
    ],
)
def test_single_columns_of_a_lane(fields, taken):
    problem = replace(PROBLEM, **{"direction": "bwd_weight", "c": 32, **fields})
    assert bool(SCALED_GEMM.candidates(wgrad_of(problem), GFX950, 0, (1, 1, 1))) == taken


def test_a_whole_strategy_of_another_problem_is_refused():
    """It would apply scales in a way that the problem does not state."""
    (one, *_) = choose(PROBLEM, GFX950, "scaled_gemm")
    for other in ({"compute": "bf16"}, {"direction": "bwd_data"}, {"input_op": "relu"}):
        wgrad = wgrad_of(replace(PROBLEM, **other))
        with pytest.raises(UnsupportedStrategy, match=r"scaled_gemm .*: for problems of which"):
            SCALED_GEMM.lower(wgrad, GFX950, one)


def test_costs_count_what_lies_in_front():
    """Copies of its own, or the conversions of all other kinds; nothing of plain operands."""
    other = STRATEGIES["implicit_gemm"]
    assert SCALED_GEMM.in_front(wgrad_of(PROBLEM), GFX950) == 0
    assert SCALED_GEMM.in_front(wgrad_of(replace(PROBLEM, direction="bwd_weight")), GFX950) > 0
    assert other.in_front(wgrad_of(PROBLEM), GFX950) > 0
    for plain in (replace(PROBLEM, compute="bf16"), replace(PROBLEM, block_scales="")):
        assert other.in_front(wgrad_of(plain), GFX950) == 0


def test_no_other_way_stands_in_for_the_chosen():
    """Candidates that are tried one after another all apply the scales as the problem states."""
    found = decide(resolve(PROBLEM, GFX950), "scaled_gemm")
    assert found.problem.asked.compute == ""
    assert {one.name for one in found.strategies} == {"scaled_gemm"}
    wider = decide(resolve(PROBLEM, GFX950), "implicit_gemm")
    assert wider.problem.asked.compute == "bf16"
    assert {one.name for one in wider.strategies} == {"implicit_gemm"}
    of_all = decide(resolve(PROBLEM, GFX950))
    named = {one.name == "scaled_gemm" for one in of_all.strategies}
    assert named == {not of_all.problem.asked.compute}
    assert choose(PROBLEM, GFX950) == of_all.strategies
