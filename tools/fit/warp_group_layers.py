# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers that `tools/fit/warp_groups.py` times, in all directions."""

from __future__ import annotations

from dataclasses import replace

from nvidia_problems import square_layer

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS

TWO = {"stride": (2, 2)}
LAYERS = (
    # ResNet-50, all but the stem.
    *(square_layer(32, 56, 64, 64, window) for window in (1, 3)),
    square_layer(32, 56, 64, 256, 1),
    square_layer(32, 56, 256, 64, 1),
    square_layer(32, 56, 256, 128, 1),
    square_layer(32, 56, 128, 128, 3, **TWO),
    square_layer(32, 28, 128, 512, 1),
    square_layer(32, 56, 256, 512, 1, **TWO),
    square_layer(32, 28, 512, 128, 1),
    square_layer(32, 28, 128, 128),
    square_layer(32, 28, 512, 256, 1),
    square_layer(32, 28, 256, 256, 3, **TWO),
    square_layer(32, 14, 256, 1024, 1),
    square_layer(32, 28, 512, 1024, 1, **TWO),
    square_layer(32, 14, 1024, 256, 1),
    square_layer(32, 14, 256, 256),
    square_layer(32, 14, 1024, 512, 1),
    square_layer(32, 14, 512, 512, 3, **TWO),
    square_layer(32, 7, 512, 2048, 1),
    square_layer(32, 14, 1024, 2048, 1, **TWO),
    square_layer(32, 7, 2048, 512, 1),
    square_layer(32, 7, 512, 512),
    # Others: detectors, larger batches, odd channels, groups.
    square_layer(8, 100, 256, 256),
    square_layer(8, 50, 256, 256),
    square_layer(8, 25, 256, 720),
    square_layer(128, 14, 256, 256),
    square_layer(16, 64, 96, 192),
    square_layer(8, 28, 64, 64, g=8),
    square_layer(4, 40, 320, 320),
    square_layer(64, 8, 1280, 320, 1),
    # Channels that are no multiple of eight, and groups that are merged.
    square_layer(32, 224, 3, 64, 7, **TWO),
    square_layer(8, 100, 256, 36),
    square_layer(8, 25, 256, 819),
    square_layer(32, 56, 4, 4, g=32),
    square_layer(32, 28, 8, 8, g=32),
    square_layer(32, 14, 16, 16, g=32),
    # Weights that workgroups keep: detectors, odd sizes, few channels, groups, an MLP of ConvNeXt.
    square_layer(8, 100, 512, 256, 1),
    square_layer(8, 50, 1024, 256, 1),
    square_layer(3, 71, 192, 320, 1),
    square_layer(32, 56, 96, 384, 1),
    square_layer(32, 28, 40, 240, 1),
    square_layer(8, 56, 64, 128, 1, g=4),
    square_layer(16, 13, 128, 1024, 1),
    square_layer(64, 28, 192, 768, 1),
    square_layer(4, 112, 32, 16, 1),
    square_layer(8, 25, 2048, 256, 3, **TWO),
)


def problem_of(layer: int, direction: str) -> ConvProblem:
    """A layer in a direction."""
    return replace(LAYERS[layer], direction=direction)


PROBLEMS = tuple((layer, one) for layer in range(len(LAYERS)) for one in DIRECTIONS)
