"""PyTorch's side and ours through its call: right in every direction and layout, not copied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.benchmark.bench import bench, shared_operands, variants
from conv_compiler.benchmark.measure import OURS, check_of
from conv_compiler.benchmark.peers import PEERS
from conv_compiler.benchmark.sides import Case, PeerRefused
from conv_compiler.benchmark.turns import Plan
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.targets import find_target

torch = pytest.importorskip("torch")

PROBLEM = ConvProblem(
    n=2, g=2, k=3, c=5, image=(9, 8), filter=(3, 2), stride=(2, 1), pad_low=1, dtype="f32"
)
ONE_D = ConvProblem(n=2, k=3, c=5, image=(19,), filter=(3,), dilation=2, pad_low=1, dtype="f32")
THREE_D = ConvProblem(n=1, k=3, c=2, image=(4, 5, 6), filter=(2, 3, 1), pad_low=0, dtype="f32")
CPU = find_target("cpu")


def _case(problem):
    operands = shared_operands(problem, CPU, "integers", 0)
    return Case(problem=problem, operands=operands, target=CPU, device="cpu")


@pytest.mark.parametrize("direction", ["bwd_weight", "bwd_data", "fwd"])
@pytest.mark.parametrize(
    "layout", ["NHWGC_GKYXC_NHWGK", "NGCHW_GKCYX_NGKHW", "NHWC_KCYX_NHWK", "NCHW_KYXC_NKHW"]
)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
def test_pytorch_is_right(direction, layout, dtype):
    for problem in (PROBLEM, ONE_D, THREE_D):
        stated = replace(
            problem, direction=direction, layout=layout, dtype=dtype, weight_dtype=dtype
        )
        case = _case(stated)
        side = PEERS["torch"].side(case)
        assert check_of(case, "integers")(side.result()) == "exact", stated.name
        assert side.detail


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "i8", "weight_dtype": "i32"},
        {"weight_dtype": "f32", "dtype": "f16"},
        {"pad_high": (0, 1)},
        {"layout": "GNHWC_GKYXC_GNHWK"},
        {"elementwise": "relu"},
        {"pad_mode": "circular"},
    ],
)
def test_what_pytorch_cannot_state(change):
    with pytest.raises(PeerRefused, match="torch: has no call for"):
        PEERS["torch"].side(_case(replace(PROBLEM, **change)))


def test_tensors_are_the_arrays():
    case = _case(replace(PROBLEM, layout="NHWC"))
    side = PEERS["torch"].side(case)
    before = side.result()
    case.operands[0][:] = 0
    assert before.any()
    assert not side.result().any()


def test_variants_are_two_types_in_two_layouts():
    made = variants(PROBLEM)
    assert list(made) == ["f32 NCHW", "f32 NHWC", "bf16 NCHW", "bf16 NHWC"]
    assert made["bf16 NHWC"].layout == "NHWC_KYXC_NHWK"
    assert made["f32 NCHW"].layout == "NCHW_KCYX_NKHW"
    assert {one.dtype for one in made.values()} == {one.weight_dtype for one in made.values()}
    assert {one.g for one in made.values()} == {2}


@pytest.mark.parametrize("word", ["f32 NCHW", "bf16 NHWC"])
def test_through_pytorchs_call(word):
    problem = variants(PROBLEM)[word]
    ticks = iter(range(10**6))
    result = bench(
        "p",
        problem,
        CPU,
        "cpu",
        [PEERS["torch"]],
        through="torch",
        plan=Plan(rounds=1, calls=1, warm_up=0, most_seconds=1e9),
        clock=lambda: float(next(ticks)),
    )
    assert [found.verdict for found in result.sides.values()] == ["exact", "exact"]
    assert result.sides[OURS].detail == "torch.ops.conv_compiler.bwd_weight"
    assert result.ratio("torch") == 1.0


def test_ours_directly_beside_iree():
    ticks = iter(range(10**6))
    problem = replace(PROBLEM, dtype="f16", weight_dtype="f16")
    plan = Plan(rounds=1, calls=1, warm_up=0, most_seconds=1e9)
    clock = lambda: float(next(ticks))  # noqa: E731
    result = bench("p", problem, CPU, "cpu", [PEERS["iree"]], plan=plan, clock=clock)
    assert [found.verdict for found in result.sides.values()] == ["exact", "exact"]
    assert result.ratio("iree") == 1.0


def test_random_data_are_what_ours_multiplies():
    problem = replace(PROBLEM, dtype="f16", weight_dtype="f16")
    shared = shared_operands(problem, find_target("gfx90a"), "random", 0)
    import ml_dtypes

    for array in shared:
        assert array.dtype == np.float16
        assert (array.astype(ml_dtypes.bfloat16).astype(np.float16) == array).all()
    plain = shared_operands(problem, CPU, "random", 0)
    assert (plain[0].astype(ml_dtypes.bfloat16).astype(np.float16) != plain[0]).any()
