"""Convolutions and data gradients: random problems on the CPU and on every virtual chip."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conv_compiler.problem import ConvProblem
from conv_compiler.targets import TARGETS
from conv_compiler.verify import verify, verify_artifact
from tests.problems import for_drawn, problems_with_split

CHIPS = [name for name, row in TARGETS.items() if row.backend == "rocm"]
DIRECTIONS = ("bwd_data", "fwd")


def check(problem, target, split_k="auto"):
    """Integer data exactly, random data within tolerance."""
    report = verify(problem, target, split_k=split_k, budget=0.0).require()
    verify_artifact(report.artifact, data="random", seed=1).require()


def random_problems(direction, target, examples):
    """Check so many drawn problems on a target; the same ones every time."""

    @for_drawn(problems_with_split(direction=direction), examples, f"{direction} {target}")
    def run(drawn):
        problem, split_k = drawn
        check(problem, target, split_k)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("target", ["cpu", *CHIPS])
def test_some_random_problems(target, direction):
    random_problems(direction, target, 16 if target == "cpu" else 4)


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("target", ["cpu", *CHIPS])
def test_many_random_problems(target, direction):
    random_problems(direction, target, 250 if target == "cpu" else 50)


# What a phase of a stride or a window may look like.
ODD = {
    "1x1 with a stride: most pixels get nothing": {"filter": (1, 1), "stride": (2, 3)},
    "a stride beyond the window": {"filter": (2, 2), "stride": (3, 4)},
    "phases without taps": {"filter": (2, 2), "stride": (4, 2), "dilation": (2, 2)},
    "phases of uneven taps": {"filter": (3, 2), "stride": (2, 2), "pad_low": (1, 0)},
    "a dilation and a stride without a common divisor": {
        "filter": (3, 3),
        "stride": (2, 3),
        "dilation": (3, 2),
    },
    "pads wider than the window": {"filter": (2, 1), "pad_low": (4, 2), "pad_high": (5, 0)},
    "pixels behind the last window": {"image": (10, 11), "filter": (2, 3), "stride": (4, 5)},
    "an image of one pixel": {"image": (1, 1), "filter": (3, 2), "pad_low": (1, 1)},
    "a window that never meets the image": {
        "image": (1, 2),
        "filter": (2, 2),
        "dilation": (3, 1),
        "pad_low": (1, 0),
        "pad_high": (2, 0),
    },
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_odd_windows(target, direction, what):
    sizes = {"n": 3, "k": 5, "c": 4, "image": (9, 8), **ODD[what]}
    check(ConvProblem(direction=direction, **sizes, dtype="f16"), target)


# The problem that Composable Kernel's example 17 runs when it is given nothing, fewer pixels.
EXAMPLE_17 = ConvProblem(
    direction="bwd_data",
    n=1,
    k=256,
    c=256,
    image=(15, 15),
    filter=(3, 3),
    stride=(2, 2),
    pad_low=(1, 1),
    layout="NHWC_KYXC_NHWK",
)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "i8"])
def test_example_17(dtype):
    check(replace(EXAMPLE_17, dtype=dtype, weight_dtype=""), "gfx942")


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("chip", "instruction"), [("gfx942", "mfma"), ("gfx1201", "wmma")])
def test_matrix_instructions_compute_them(chip, instruction, direction):
    problem = replace(EXAMPLE_17, direction=direction)
    report = verify(problem, chip, budget=0.0).require()
    main = report.artifact.main_kernel
    assert any(instruction in name for name in main.mma)
    assert main.spills == main.scratch_bytes == 0
