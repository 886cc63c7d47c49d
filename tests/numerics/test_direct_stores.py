"""The matrix kernel stores the result itself: one kernel, sums rounded in registers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu.reversed_taps import reads_reversed
from conv_compiler.strategies.gpu.stored_sums import stores_result
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.verification.verify import verify
from tests.checks import check
from tests.chips import EXECUTED
from tests.turns import in_turn

# One by default, the others with the slow tests.
SOME = [
    pytest.param(chip, marks=[] if chip == "gfx942" else [pytest.mark.slow]) for chip in EXECUTED
]
FIELDS = {"n": 8, "k": 64, "c": 32, "image": (8, 8), "filter": (3, 3), "pad_low": (1, 1)}
PROBLEM = ConvProblem(**FIELDS)
# gfx90a multiplies the f16 operands of gradients as bf16, each converted by a kernel, unless it is
# told to take denormals as 0 (docs/types.md).
AS_F16 = {"compute": "f16"}


def check_kernels(problem, target, kernels=1):
    """Right, with so many kernels."""
    report = check(problem, target, 1, "implicit_gemm")
    assert len(report.artifact.kernels) == kernels, report.artifact.kernels


# Where the columns lie in the result: taps around channels, channels around taps, apart.
PLACES = {
    "weight": {},
    "weight of images with channels first": {"layout": "NGCHW_GKYXC_NGKHW", "g": 2},
    "weight of one tap": {"filter": (1, 1), "pad_low": (0, 0), "layout": "NCHW_KCYX_NKHW"},
    "output": {"direction": "fwd", "n": 32},
    "output, groups outermost": {"direction": "fwd", "layout": "GNHWC_GKYXC_GNHWK", "g": 2},
    "output of a small batch": {"direction": "fwd", "n": 2},
    "output of one tap": {"direction": "fwd", "filter": (1, 1), "pad_low": (0, 0)},
    "output in 3D": {
        "direction": "fwd",
        "image": (4, 4, 4),
        "filter": (1, 3, 3),
        "pad_low": (0, 1, 1),
    },
    "output in 1D": {"direction": "fwd", "image": (64,), "filter": (3,), "pad_low": (1,)},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("chip", SOME)
def test_where_the_columns_lie(chip, place):
    check_kernels(ConvProblem(**{**FIELDS, **AS_F16, **PLACES[place]}), chip)


# What no tile divides: pixels, channels of a multiple of four, of two and of one, both, in groups.
RESTS = {
    "pixels": {},
    "channels": {"n": 8, "image": (8, 8), "k": 60, "c": 60},
    "pairs of channels": {"k": 58, "c": 30, "dtype": "bf16"},
    "odd channels": {"k": 57, "c": 29},
    "groups": {"g": 3, "k": 20, "c": 24},
    "groups outermost": {"g": 2, "k": 20, "c": 12, "layout": "GNHWC_GKYXC_GNHWK"},
    "bytes": {"k": 36, "c": 36, "dtype": "i8"},
    "sums": {"k": 37, "c": 31, "weight_dtype": "f32"},
    "1D": {"image": (67,), "filter": (3,), "pad_low": (1,), "k": 36},
    "3D": {"image": (3, 5, 4), "filter": (1, 3, 3), "pad_low": (0, 1, 1), "k": 36},
}


@pytest.mark.parametrize(("chip", "rest", "direction"), in_turn(SOME, RESTS, ["fwd", "bwd_data"]))
def test_a_rest_of_the_tiles_costs_no_kernel(chip, direction, rest):
    """A data gradient has one that arranges the weight, where taps are not outside the tile."""
    compute = {} if "dtype" in RESTS[rest] else AS_F16
    fields = {**FIELDS, "n": 3, "image": (9, 7), **compute}
    problem = ConvProblem(direction=direction, **{**fields, **RESTS[rest]})
    check_kernels(problem, chip, 1 + arranges(problem, chip))


def arranges(problem, chip):
    """Whether a kernel arranges the weight of a data gradient without a stride."""
    target = find_target(chip)
    first, *_ = choose(problem, target, "implicit_gemm", 1)
    roles = resolve(problem, target, first.mma).wgrad
    return problem.direction == "bwd_data" and not reads_reversed(roles, target, first.tiling)


@pytest.mark.parametrize("rest", ["pixels", "odd channels", "groups"])
def test_nothing_is_stored_outside_the_result(rest):
    fields = {"n": 3, "k": 64, "c": 32, "image": (9, 7), "filter": (1, 1)}
    problem = ConvProblem(direction="fwd", **{**fields, **RESTS[rest]})
    report = check(problem, "gfx942", 1, "implicit_gemm", device="vgpu-checked")
    assert [kernel.role for kernel in report.artifact.kernels] == ["contraction"]


@pytest.mark.parametrize("fields", [{}, {"weight_dtype": "f32"}], ids=str)
@pytest.mark.parametrize("op", ["relu", "bilinear(0.5,2)"])
def test_an_elementwise_op_behind_a_rest(op, fields):
    """What it reads is lengthened to whole tiles; an op that keeps the sums' type is apart."""
    problem = replace(PROBLEM, direction="fwd", n=3, k=37, c=31, elementwise=op, **fields)
    kernels = 1 if (op, fields) == ("relu", {}) else 2
    check_kernels(problem, "gfx942", kernels)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("chip", ["gfx942", "gfx1201"])
def test_data_gradients(chip, stride):
    """The matrix kernel alone; with a stride behind the kernel that arranges the weight."""
    check_kernels(replace(PROBLEM, direction="bwd_data", stride=stride), chip, stride)


@pytest.mark.parametrize(
    "fields",
    [
        {"elementwise": "bilinear(0.5,2):f32"},
        {"elementwise": "sigmoid", "dtype": "bf16", "weight_dtype": "f32"},
        {"elementwise": "scale_add(0.5)", "dtype": "f32", "weight_dtype": "f32"},
        {"elementwise": "relu", "dtype": "i8", "weight_dtype": "i8"},
        {"dtype": "i8", "weight_dtype": "i32"},
    ],
    ids=lambda fields: " ".join(fields.values()),
)
@pytest.mark.parametrize("direction", ["bwd_weight", "fwd"])
@pytest.mark.parametrize("chip", [pytest.param("gfx90a", marks=pytest.mark.slow), "gfx942"])
def test_an_elementwise_op_costs_no_kernel(chip, direction, fields):
    compute = {} if "dtype" in fields else AS_F16
    problem = replace(PROBLEM, **{"weight_dtype": "", "direction": direction, **compute, **fields})
    check_kernels(problem, chip)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"elementwise": "bilinear(0.5,2):f32", "weight_dtype": "f32"},
        {"elementwise": "relu", "dtype": "bf16", "weight_dtype": ""},
        {"direction": "fwd", "filter": (1, 1), "pad_low": (0, 0)},
    ],
    ids=str,
)
def test_one_kernel_on_nvidia(fields):
    """`tools/nvidia_check.py` runs such kernels."""
    artifact = compile(replace(PROBLEM, **fields), "sm_80", "implicit_gemm", 1)
    (kernel,) = artifact.kernels
    assert kernel.role == "contraction"
    assert kernel.mma_count


def test_what_is_stored_through_a_reduction():
    """More parts, weights with a rest of the tiles, columns in two places of the result."""
    gfx942 = find_target("gfx942")
    report = verify(PROBLEM, "gfx942", "implicit_gemm", 1, budget=0.0).require()
    tiling = report.artifact.strategy.tiling
    assert stores_result(PROBLEM, gfx942, tiling, 1)
    assert not stores_result(PROBLEM, gfx942, tiling, 2)
    assert not stores_result(replace(PROBLEM, k=63), gfx942, tiling, 1)
    assert not stores_result(PROBLEM, gfx942, replace(tiling, taps_in_rows=True), 1)
    assert stores_result(PROBLEM, find_target("sm_80"), tiling, 1)
    flat = replace(tiling, taps_outside=False, outside=(), inside=())
    assert stores_result(PROBLEM, gfx942, flat, 1)
    first = replace(PROBLEM, layout="NHWGC_GKCYX_NHWGK")
    assert not stores_result(first, gfx942, flat, 1)
    assert not stores_result(first, gfx942, replace(flat, taps_outside=True), 1)
    for fields in ({"k": 60}, {"c": 30}, {"direction": "fwd", "layout": "NGCHW_GKCYX_NGKHW"}):
        check_kernels(replace(PROBLEM, **fields), "gfx942", 2)
