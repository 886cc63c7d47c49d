"""Pads that repeat pixels of the image, in every direction, on the CPU and on virtual chips."""

from __future__ import annotations

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.problem.pad_modes import PIXELS
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.reference import plain, reference
from conv_compiler.verification.verify import inputs, verify
from tests.checks import check
from tests.turns import in_turn

SIZES = {"n": 3, "g": 2, "k": 8, "c": 6, "image": (7, 6), "filter": (3, 2)}
PADS = {"pad_low": (2, 1), "pad_high": (1, 3)}
NUMPY = {"circular": "wrap", "reflect": "reflect", "replicate": "edge"}


@pytest.mark.parametrize(
    ("mode", "direction", "layout", "target"),
    in_turn(PIXELS, DIRECTIONS, ["NHWC", "NCHW"], ["cpu", "gfx942", "gfx1201"]),
)
def test_exact(mode, direction, layout, target):
    problem = ConvProblem(
        **SIZES, **PADS, pad_mode=mode, direction=direction, layout=layout, stride=(2, 1)
    )
    assert check(problem, target).tolerance.exact


@pytest.mark.parametrize("mode", PIXELS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_definition_is_numpys(mode, direction):
    """By the image as `numpy.pad` makes it, and the data gradient as the adjoint of the forward
    pass."""
    problem = ConvProblem(**SIZES, **PADS, pad_mode=mode, direction=direction)
    first, second = inputs(problem)
    found = reference(problem, first, second)
    assert np.array_equal(found, plain(problem, first, second))
    none = {"pad_low": 0, "pad_mode": "", "image": problem.padded_image}
    widths = [(0, 0), *zip(*PADS.values(), strict=True), (0, 0), (0, 0)]
    without = ConvProblem(**{**SIZES, **none}, direction=direction)
    if direction != "bwd_data":
        padded = np.pad(first, widths, mode=NUMPY[mode])
        assert np.array_equal(found, reference(without, padded, second))
        return
    image = np.random.default_rng(0).integers(-3, 4, problem.input_shape)
    padded = np.pad(image, widths, mode=NUMPY[mode])
    assert (image * found).sum() == (padded * reference(without, first, second)).sum()


def test_more_features():
    fields = {**SIZES, **PADS, "pad_mode": "reflect", "direction": "bwd_data"}
    check(ConvProblem(**fields, elementwise="bilinear(0.5,2)"))
    weight = ConvProblem(**{**fields, "direction": "bwd_weight"}, dynamic_batch=True)
    verify(weight, budget=0.0).require()


@pytest.mark.parametrize(("image", "pads"), [((9,), 2), ((3, 4, 5), (1, 0, 2))])
def test_one_and_three_dimensions(image, pads):
    sizes = {"n": 2, "k": 5, "c": 3, "image": image, "filter": (2,) * len(image)}
    check(ConvProblem(**sizes, pad_low=pads, pad_mode="circular", direction="bwd_data"))


def test_zeros_is_the_default():
    problem = ConvProblem(**SIZES, **PADS)
    assert ConvProblem(**SIZES, **PADS, pad_mode="zeros") == problem
    assert ConvProblem(**SIZES, pad_mode="reflect").name != ConvProblem(**SIZES).name
    kernel = load(compile(ConvProblem(**SIZES, pad_mode="circular")))
    operands = inputs(ConvProblem(**SIZES))
    assert np.array_equal(kernel(*operands), load(compile(ConvProblem(**SIZES)))(*operands))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pad_mode": "circlar"}, "did you mean circular"),
        ({"pad_mode": "reflect", "pad_low": (0, 6)}, "more than reflect has of an image of 6"),
        ({"pad_mode": "circular", "pad_low": (8, 0)}, "more than circular has of an image of 7"),
    ],
)
def test_refused(fields, message):
    with pytest.raises(UnsupportedProblem, match=message):
        ConvProblem(**{**SIZES, **fields})
