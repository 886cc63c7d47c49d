"""Direct kernels by pairs along a row of taps, run: odd channels, taps, strides and pads."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import conv_compiler as cc
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu.cpu_dot_direct import CPU_DOT_DIRECT
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from tests.checks import check

NAME = CPU_DOT_DIRECT.name
FIRST = "NGCHW_GKCYX_NGKHW"
FORWARD = {
    "stem": ConvProblem(n=2, k=64, c=3, image=(9, 23), filter=7, stride=2, pad_low=3),
    "small_stem": ConvProblem(n=2, k=16, c=3, image=(8, 61), filter=3, stride=2, pad_low=1),
    "one_tap": ConvProblem(n=3, k=20, c=5, image=(5, 7), filter=(3, 1), stride=(1, 3)),
    "one_element": ConvProblem(n=2, k=16, c=1, image=(4, 9), filter=(3, 1), pad_low=1),
    "one_channel": ConvProblem(
        n=2, k=48, c=1, image=(6, 33), filter=(2, 6), stride=(1, 5), pad_low=(0, 4), pad_high=(1, 2)
    ),
    "no_pads": ConvProblem(n=2, k=32, c=7, image=(5, 12), filter=(2, 4)),
    "long_window": ConvProblem(n=1, k=64, c=5, image=(8, 19), filter=7, pad_low=(2, 5), stride=2),
    "deep": ConvProblem(n=1, k=20, c=33, image=(4, 9), filter=3, pad_low=1),
    "outside": ConvProblem(n=1, k=16, c=3, image=(2, 2), filter=(2, 5), pad_low=(1, 4)),
    "planes": ConvProblem(
        n=2, k=64, c=3, image=(3, 5, 14), filter=(3, 3, 7), stride=(1, 2, 2), pad_low=(1, 1, 3)
    ),
    "wave": ConvProblem(
        n=2, k=48, c=1, image=(60,), filter=(10,), stride=5, layout="NWGC_GKXC_NWGK"
    ),
    "first": ConvProblem(n=2, k=16, c=3, image=(7, 9), filter=3, pad_low=1, layout=FIRST),
    "short_vectors": ConvProblem(n=1, k=8, c=3, image=(6, 11), filter=3, pad_low=1),
}
BACKWARD = {
    "reversed": ConvProblem(n=2, k=3, c=16, image=(7, 19), filter=3, pad_low=1),
    "asymmetric": ConvProblem(n=1, k=5, c=20, image=(6, 17), filter=(2, 6), pad_low=(1, 4)),
    "row_phases": ConvProblem(n=2, k=1, c=48, image=(9, 12), filter=(3, 5), stride=(2, 1)),
    "few_taps_meet": ConvProblem(n=1, k=3, c=16, image=(3, 2), filter=(1, 5), pad_low=(0, 3)),
    "planes": ConvProblem(n=1, k=7, c=64, image=(4, 3, 9), filter=(2, 2, 3), pad_low=1),
    "first": ConvProblem(n=2, k=3, c=16, image=(6, 8), filter=3, pad_low=1, layout=FIRST),
}
PROBLEMS = {
    f"{direction}-{name}": replace(problem, direction=direction)
    for direction, several in (("fwd", FORWARD), ("bwd_data", BACKWARD))
    for name, problem in several.items()
}


def of(name, dtype="bf16"):
    """A problem; skipped where the host multiplies no pairs."""
    problem = replace(PROBLEMS[name], dtype=dtype, weight_dtype="")
    row = find_target("cpu")
    if row.cpu.pair_instruction(dtype) is None:
        pytest.skip("no pairs on this host")
    assert not CPU_DOT_DIRECT.refusal(resolve(problem, row).wgrad, row)
    return problem


@pytest.mark.parametrize("dtype", ["bf16", "i8"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_integers_are_exact(name, dtype):
    report = cc.verify(of(name, dtype), "cpu", strategy=NAME, data="integers", budget=0).require()
    assert report.artifact.strategy.tiling.product == "windows"


@pytest.mark.parametrize("name", ["fwd-stem", "fwd-long_window", "bwd_data-asymmetric"])
@pytest.mark.parametrize("text", ["", "relu", "bias>relu", "scale(0.5)"])
def test_random_data_and_ops(name, text):
    check(replace(of(name), elementwise=text), strategy=NAME)


@pytest.mark.parametrize("name", ["fwd-small_stem", "fwd-deep", "fwd-short_vectors"])
def test_results_of_another_type(name):
    check(replace(of(name), weight_dtype="f32", direction="fwd"), strategy=NAME)


@pytest.mark.parametrize("data", ["special", "denormal"])
@pytest.mark.parametrize("name", ["fwd-small_stem", "fwd-no_pads", "fwd-long_window"])
def test_numbers_that_are_not_finite_or_denormal(name, data):
    cc.verify(of(name), "cpu", strategy=NAME, data=data, budget=0).require()


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1, 5, -1])
@pytest.mark.parametrize(
    "name", ["fwd-small_stem", "fwd-one_tap", "fwd-no_pads", "fwd-long_window", "fwd-one_element"]
)
def test_a_pixel_reaches_the_windows_that_it_is_of_alone(name, place, number):
    problem = replace(of(name), n=1)
    rng = np.random.default_rng(0)
    data, weight = (
        rng.integers(1, 3, shape).astype(ml_dtypes.bfloat16) for shape in problem.operand_shapes
    )
    kernel = cc.load(cc.compile(problem, "cpu", strategy=NAME))
    rows = data.reshape(*problem.image, problem.c)
    rows[-1, place] = number
    found = np.isfinite(np.asarray(kernel(data, weight)).astype(np.float32))
    found = found.reshape(*problem.out_image, problem.k)
    at = problem.image[0] - 1, place % problem.image[1]
    for index in np.ndindex(problem.out_image):
        taps = [
            pixel + pad - stride * one
            for pixel, pad, stride, one in zip(
                at, problem.pad_low, problem.stride, index, strict=True
            )
        ]
        reads = all(0 <= tap < size for tap, size in zip(taps, problem.filter, strict=True))
        assert found[index].all() != reads
        assert found[index].any() != reads


@pytest.mark.parametrize("cpu", ["cpu-znver4", "cpu-sapphirerapids", "cpu-x86-64-v3"])
@pytest.mark.parametrize("dtype", ["bf16", "i8"])
def test_other_cpus_compile(cpu, dtype):
    for name in ("fwd-stem", "bwd_data-reversed"):
        problem = replace(PROBLEMS[name], dtype=dtype, weight_dtype="")
        one = cc.compile(problem, cpu).strategy
        assert (one.name == NAME) == (find_target(cpu).cpu.fast_pairs(dtype) is not None)


def test_two_runs_give_the_same_bits():
    problem = of("fwd-stem")
    kernel = cc.load(cc.compile(problem, "cpu", strategy=NAME))
    rng = np.random.default_rng(0)
    operands = [
        rng.random(s, np.float32).astype(ml_dtypes.bfloat16) for s in problem.operand_shapes
    ]
    assert len({np.asarray(kernel(*operands)).tobytes() for _ in range(5)}) == 1
