# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which bytes of an image kernels read (`model/met_pixels.py`)."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conv_compiler.model.met_pixels import ReadImage, Steps, met_places, met_share, read_image
from conv_compiler.problem.canonical import equivalent_wgrad
from conv_compiler.problem.conv_problem import ConvProblem

STRIDED = ConvProblem(n=3, k=64, c=64, image=(9, 12), filter=(1, 1), stride=(2, 3))


@pytest.mark.parametrize(
    ("change", "share"),
    [
        ({}, 5 / 9 * 4 / 12),  # 128 bytes a pixel
        ({"c": 63}, 5 / 9),  # neighbours in a row share lines
        ({"c": 32, "dtype": "f32", "weight_dtype": "f32"}, 5 / 9 * 4 / 12),
        ({"c": 32, "g": 2}, 5 / 9 * 4 / 12),  # groups of a pixel are adjacent
        ({"c": 4}, 1.0),  # 96 bytes a row: rows share lines too
        ({"filter": (3, 3), "pad_low": (1, 1), "pad_high": (1, 1)}, 11 / 12),  # not the last column
        ({"layout": "NCHW"}, 1.0),  # a row has 24 bytes
        ({"layout": "NCHW", "image": (9, 64)}, 5 / 9),
    ],
)
def test_pixels_are_left_out_by_whole_lines(change, share):
    assert met_share(replace(STRIDED, **change)) == pytest.approx(share)


def test_an_image_is_known_by_its_size():
    size = 3 * 9 * 12 * 64 * 2
    expected = ReadImage(bytes=size, met_bytes=3 * 5 * 4 * 64 * 2)
    assert read_image(STRIDED) == read_image(replace(STRIDED, direction="fwd")) == expected
    assert read_image(replace(STRIDED, direction="bwd_data")) is None  # is written, and whole
    assert read_image(replace(STRIDED, stride=(1, 1))) is None
    assert read_image(replace(STRIDED, layout="NCHW", image=(9, 64))) is None
    # The output gradient has as many bytes: 9 * 12 / (3 * 4) times the channels.
    same = replace(STRIDED, image=(9, 12), stride=(3, 3), k=9 * 64)
    assert same.output_shape[0] * 9 * 64 * 3 * 4 == 3 * 9 * 12 * 64
    assert read_image(same) is None


def test_roles_meet_what_their_direction_meets():
    """A forward convolution is a weight gradient whose filter is the output's pixels."""
    sizes = product((5, 8, 13), (1, 2, 3), (1, 2, 3, 4), (1, 2), (0, 1))
    for image, taps, stride, dilation, pad in sizes:
        problem = ConvProblem(
            n=2, k=8, c=64, image=(image, 9), filter=(taps, 1), stride=(stride, 2),
            dilation=(dilation, 1), pad_low=(pad, 0), direction="fwd",
        )  # fmt: skip
        assert met_share(equivalent_wgrad(problem)) == pytest.approx(met_share(problem))


STEPS = st.builds(Steps, step=st.integers(1, 12), count=st.integers(1, 12))


@settings(max_examples=1000, deadline=None, derandomize=True)
@given(size=st.integers(1, 40), start=st.integers(-30, 0), one=STEPS, other=STEPS)
def test_places_are_those_of_the_list(size, start, one, other):
    pairs = product(range(one.count), range(other.count))
    listed = {start + i * one.step + j * other.step for i, j in pairs}
    assert met_places(size, start, one, other) == len(listed & set(range(size)))
