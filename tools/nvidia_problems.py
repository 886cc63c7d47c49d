# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The problems that `tools/nvidia_bench.py` measures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from conv_compiler.frontends.files import read_file
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS

LISTS = Path(__file__).parents[1] / "conv_compiler" / "problems"
LAYOUT = "NHWC_KYXC_NHWK"


def square_layer(n: int, image: int, c: int, k: int, window: int = 3, **more: Any) -> ConvProblem:
    """A weight gradient of square images and windows, padded to keep the size, channels last."""
    pad = window // 2
    sizes = {"n": n, "c": c, "k": k, "image": (image, image), "filter": (window, window)}
    return ConvProblem(**{**sizes, "pad_low": (pad, pad), "layout": LAYOUT, **more})


PROBLEMS = {
    "ResNet-50 layer1 3x3": square_layer(32, 56, 64, 64),
    "ResNet-50 layer2 3x3": square_layer(32, 28, 128, 128),
    "ResNet-50 layer3 3x3": square_layer(32, 14, 256, 256),
    "ResNet-50 layer3 3x3 bf16": square_layer(32, 14, 256, 256, dtype="bf16"),
    "ResNet-50 layer4 3x3": square_layer(32, 7, 512, 512),
    "ResNet-50 layer1 1x1": square_layer(32, 56, 64, 256, 1),
    "ResNet-50 layer3 1x1": square_layer(32, 14, 1024, 256, 1),
    "ResNet-50 stem": square_layer(32, 224, 3, 64, 7, stride=(2, 2)),
    "RetinaNet tower": square_layer(8, 100, 256, 256),
    "RetinaNet head": square_layer(8, 100, 256, 36),
    "RetinaNet classes": square_layer(8, 25, 256, 819),
    "ResNeXt-50 layer1 3x3": square_layer(32, 56, 4, 4, g=32),
    "MobileNet depthwise": square_layer(32, 56, 1, 1, g=144),
}

_GROUPS = {
    "MobileNet 144, 56x56": square_layer(32, 56, 1, 1, g=144),
    "MobileNet 144, 56x56 bf16": square_layer(32, 56, 1, 1, g=144, dtype="bf16"),
    "MobileNet 96, 112x112 s2": square_layer(32, 112, 1, 1, g=96, stride=(2, 2)),
    "MobileNet 384, 14x14": square_layer(32, 14, 1, 1, g=384),
    "MobileNet 960, 7x7": square_layer(32, 7, 1, 1, g=960),
    "ConvNeXt 96, 56x56 7x7": square_layer(32, 56, 1, 1, 7, g=96),
    "32 groups of 4, 56x56": square_layer(32, 56, 4, 4, g=32),
    "32 groups of 8, 28x28": square_layer(32, 28, 8, 8, g=32),
    "32 groups of 16, 14x14": square_layer(32, 14, 16, 16, g=32),
}
SMALL_GROUPS = {
    f"{label} {direction}": replace(problem, direction=direction)
    for label, problem in _GROUPS.items()
    for direction in DIRECTIONS
}


def layers(name: str, batch: int, types: str) -> dict[str, ConvProblem]:
    """The weight gradients of a list, by label, in each type."""
    return {
        f"{request.label} {dtype}": replace(
            request.with_batch(batch).problem, dtype=dtype, weight_dtype=""
        )
        for dtype in types.split(",")
        for request in read_file(LISTS / f"{name}.txt")
    }
