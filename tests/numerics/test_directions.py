"""Convolutions and data gradients, and problems of any kind, on the CPU and every virtual chip."""

from __future__ import annotations

import shlex
from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.cli import main
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import InvalidArray
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS as PROBLEM_DIRECTIONS
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import plain
from conv_compiler.verification.verify import verify
from tests.checks import check
from tests.turns import in_turn

DIRECTIONS = ("bwd_data", "fwd")


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


@pytest.mark.parametrize(
    ("what", "direction", "target"), in_turn(ODD, DIRECTIONS, ["cpu", "gfx942"])
)
def test_odd_windows(what, direction, target):
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


@pytest.mark.parametrize(
    ("target", "direction", "stride", "op"),
    in_turn(["cpu", "gfx942"], DIRECTIONS, [1, 2], ["bilinear(0.5,2):f32", "add", "sigmoid"]),
)
def test_an_elementwise_op_meets_d_in_its_place(target, direction, stride, op):
    problem = replace(EXAMPLE_17, direction=direction, k=16, c=24, stride=stride)
    check(replace(problem, elementwise=op), target)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_names_of_the_operands(direction):
    """A kernel knows what it computes: what a wrong shape is said to be."""
    problem = ConvProblem(direction=direction, n=1, k=3, c=2, image=(5,), filter=(2,))
    kernel = load(compile(problem))
    names, result = PROBLEM_DIRECTIONS[direction]
    assert tuple(tensor.name for tensor in kernel.operands) == names
    assert kernel.result.name == result
    first, second = inputs(problem)
    with pytest.raises(InvalidArray, match=rf"^{names[1]} \(.*\): not the kernel's shape"):
        kernel(first, second[..., :1])


def test_the_command_runs_a_convolution(tmp_path):
    words = shlex.split("-n 2 -k 4 -c 3 --image 6x6 --filter 3x3 --stride 2 --dtype f32")
    problem = ConvProblem(
        direction="fwd", n=2, k=4, c=3, image=(6, 6), filter=(3, 3), stride=(2, 2), dtype="f32"
    )
    image, weight = inputs(problem)
    np.save(tmp_path / "image.npy", image)
    np.save(tmp_path / "weight.npy", weight)
    files = ["--input", str(tmp_path / "image.npy"), "--weight", str(tmp_path / "weight.npy")]
    output = tmp_path / "output.npy"
    assert main(["run", *words, "--direction", "fwd", *files, "-o", str(output)]) == 0
    np.testing.assert_array_equal(np.load(output), plain(problem, image, weight))
