"""Direct kernels are exact in either direction: every product, odd sizes, strides and pads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import conv_compiler as cc
from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu.cpu_direct import misfit, product_of
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve

DIRECTIONS = ("fwd", "bwd_data")
CPUS = (
    "cpu-x86-64",
    "cpu-x86-64-v2",
    "cpu-x86-64-v3",
    "cpu-x86-64-v4",
    "cpu-znver3",
    "cpu-znver4",
    "cpu-znver5",
    "cpu-sapphirerapids",
    "cpu-neoverse-n1",
    "cpu-neoverse-v1",
    "cpu-neoverse-v2",
)
PROBLEMS = {
    "channels": ConvProblem(n=2, k=16, c=24, image=(9, 8), filter=(3, 3), pad_low=1),
    "phases": ConvProblem(
        n=2, k=8, c=12, image=(11, 9), filter=(3, 4), stride=(2, 3), pad_low=(1, 2),
        pad_high=(2, 0),
    ),
    "gaps": ConvProblem(n=2, k=8, c=8, image=(10, 7), filter=(1, 2), stride=(3, 2)),
    "dilated": ConvProblem(
        n=1, k=16, c=8, image=(11, 12), filter=(3, 2), dilation=(2, 3), pad_low=(3, 1),
        pad_high=(0, 4),
    ),
    "groups": ConvProblem(n=3, g=24, k=1, c=1, image=(9, 13), filter=(3, 5), pad_low=(1, 2)),
    "group_phases": ConvProblem(
        n=2, g=8, k=1, c=1, image=(11, 13), filter=(5, 3), stride=2, pad_low=(2, 0),
        pad_high=(1, 1), layout="NHWGC_GKCYX_NHWGK",
    ),
    "small_groups": ConvProblem(n=2, g=3, k=4, c=8, image=(7, 7), filter=(3, 3), pad_low=1),
    "odd": ConvProblem(n=2, g=2, k=20, c=12, image=(7, 9), filter=(3, 2), pad_low=1),
    "odd_square": ConvProblem(n=1, k=36, c=8, image=(5, 9), filter=(1, 1)),
    "few": ConvProblem(n=2, k=3, c=16, image=(8, 17), filter=(3, 3), pad_low=1),
    "blocks_that_overlap": ConvProblem(n=2, k=87, c=94, image=(5, 6), filter=(3, 2), pad_low=1),
    "grouped_blocks_that_overlap": ConvProblem(
        n=1, g=2, k=83, c=90, image=(7, 3), filter=(2, 3), stride=(2, 1), pad_high=1,
        layout="NGCHW_GKCYX_NGKHW",
    ),
    "groups_that_overlap": ConvProblem(n=2, g=37, k=1, c=1, image=(9, 8), filter=(3, 3), pad_low=1),
    "few_groups_that_overlap": ConvProblem(
        n=2, g=5, k=1, c=1, image=(6, 11), filter=(3, 4), stride=2, pad_low=1,
    ),
    "planes": ConvProblem(
        n=2, k=8, c=12, image=(5, 6, 7), filter=(3, 2, 3), pad_low=(1, 0, 1), pad_high=(1, 1, 0),
    ),
    "plane_phases": ConvProblem(
        n=1, k=12, c=8, image=(5, 4, 7), filter=(3, 1, 2), stride=(2, 3, 2), dilation=(2, 1, 1),
        pad_low=(1, 0, 1),
    ),
    "group_planes": ConvProblem(
        n=2, g=8, k=1, c=1, image=(4, 6, 9), filter=(2, 3, 3), stride=(1, 2, 1), pad_low=1,
    ),
    "first": ConvProblem(
        n=2, k=16, c=24, image=(9, 7), filter=(3, 3), pad_low=1, layout="NGCHW_GKCYX_NGKHW"
    ),
    "first_phases": ConvProblem(
        n=2, k=36, c=30, image=(5, 3), filter=(3, 2), stride=(2, 1), pad_low=1,
        layout="NGCHW_GKCYX_NGKHW",
    ),
    "wave": ConvProblem(
        n=3, k=8, c=16, image=(41,), filter=(5,), stride=2, pad_low=2,
        layout="NWGC_GKXC_NWGK",
    ),
}  # fmt: skip


def fits(problem, target="cpu"):
    row = find_target(target)
    return not misfit(resolve(problem, row).wgrad, row)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "i8", "f64"])
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_integers_are_exact(name, direction, dtype):
    problem = replace(PROBLEMS[name], direction=direction, dtype=dtype, weight_dtype="")
    if not fits(problem):
        pytest.skip("not of this kind in this direction")
    cc.verify(problem, "cpu", strategy="cpu_direct", data="integers", budget=0).require()


@pytest.mark.parametrize("name", ["channels", "groups", "few"])
def test_random_data_are_within_the_tolerance(name):
    problem = replace(PROBLEMS[name], direction="fwd", dtype="f32", weight_dtype="")
    cc.verify(problem, "cpu", strategy="cpu_direct", data="random", budget=0).require()


@pytest.mark.parametrize("text", ["relu", "scale(0.5)", "scale_add(0.5):f32"])
@pytest.mark.parametrize("name", ["channels", "groups", "few"])
def test_the_elementwise_op_is_in_the_kernel(name, text):
    problem = replace(
        PROBLEMS[name], direction="fwd", dtype="f32", weight_dtype="", elementwise=text
    )
    artifact = cc.compile(problem, "cpu", strategy="cpu_direct")
    cc.verify(problem, "cpu", strategy="cpu_direct", budget=0).require()
    assert artifact.strategy.name == "cpu_direct"


def test_each_product_is_met():
    found = {
        product_of(replace(problem, direction=direction, dtype="f32", weight_dtype=""), 8)
        for problem in PROBLEMS.values()
        for direction in DIRECTIONS
    }
    assert {"results", "groups", "sources"} <= found


def sizes_of(ndim):
    """Image, filter, stride, dilation and pads of so many dimensions."""
    bounds = ((1, 13 if ndim < 3 else 6), (1, 4), (1, 3), (1, 2), (0, 3), (0, 3))
    return st.tuples(*(st.tuples(*[st.integers(*one)] * ndim) for one in bounds))


@settings(max_examples=6, deadline=None)
@given(
    direction=st.sampled_from(DIRECTIONS),
    channels=st.sampled_from(
        [
            (1, 1, 12),
            (8, 12, 1),
            (4, 4, 2),
            (16, 1, 1),
            (5, 8, 1),
            (12, 20, 1),
            (13, 9, 2),
            (6, 7, 1),
            (85, 83, 1),
            (1, 1, 19),
        ]
    ),
    sizes=st.integers(1, 3).flatmap(sizes_of),
    n=st.integers(1, 3),
)
@example(
    direction="bwd_data",
    channels=(8, 12, 1),
    sizes=((1, 13), (1, 4), (3, 2), (1, 2), (0, 3), (3, 0)),
    n=1,
)
def test_any_sizes(direction, channels, sizes, n):
    c, k, g = channels
    image, filter, stride, dilation, pad_low, pad_high = sizes
    try:
        problem = ConvProblem(
            direction=direction,
            n=n,
            g=g,
            k=k,
            c=c,
            image=image,
            filter=filter,
            stride=stride,
            dilation=dilation,
            pad_low=pad_low,
            pad_high=pad_high,
            dtype="f32",
            weight_dtype="",
        )
    except UnsupportedProblem:
        return
    if not fits(problem):
        return
    cc.verify(problem, "cpu", strategy="cpu_direct", data="integers", budget=0).require()


@pytest.mark.parametrize("cpu", CPUS)
def test_every_named_cpu_compiles(cpu):
    for name in ("channels", "groups"):
        problem = replace(PROBLEMS[name], direction="bwd_data", dtype="f32", weight_dtype="")
        assert cc.compile(problem, cpu).strategy.name == "cpu_direct"


def test_two_runs_give_the_same_bits():
    problem = replace(PROBLEMS["channels"], direction="fwd", dtype="f32", weight_dtype="", n=8)
    kernel = cc.load(cc.compile(problem, "cpu"))
    rng = np.random.default_rng(0)
    operands = [rng.random(shape, np.float32) for shape in problem.operand_shapes]
    found = {kernel(*operands).tobytes() for _ in range(10)}
    assert len(found) == 1
