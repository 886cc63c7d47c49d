"""A filter of one tap met no input pixel, for the pads and the stride were beyond the image. The
weight was read as it lies all the same, and the data gradient was not zero."""

from __future__ import annotations

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.verify import verify

# Image, filter, stride, pads: no pixel is met, none of one axis, all of a phase.
AXES = {
    "none": ((4,), (6,), (1,), (3,)),
    "none of an axis": ((3, 2), (1, 5), (0, 2), (0, 2)),
    "one phase": ((9, 8), (3, 2), (1, 1), (0, 1)),
    "the first phase": ((9, 8), (2, 3), (0, 0), (0, 0)),
}


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
@pytest.mark.parametrize("name", AXES)
def test_one_tap(name, target):
    image, stride, low, high = AXES[name]
    problem = ConvProblem(
        n=2, k=8, c=5, image=image, filter=(1,) * len(image), stride=stride, pad_low=low,
        pad_high=high, direction="bwd_data",
    )  # fmt: skip
    device = None if target == "cpu" else "vgpu"
    assert verify(problem, target, device=device, budget=0.0).require().passed
