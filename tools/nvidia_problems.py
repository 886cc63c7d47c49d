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


def _solid(n: int, image: tuple[int, ...], c: int, k: int, window: tuple[int, ...]) -> ConvProblem:
    """A weight gradient in three dimensions, padded to keep the size, channels last."""
    return ConvProblem(
        n=n, c=c, k=k, image=image, filter=window, pad_low=tuple(taps // 2 for taps in window),
        layout="NDHWC_KZYXC_NDHWK",
    )  # fmt: skip


_TWO = {"stride": (2, 2)}
SETS = {
    "retinanet": {
        "tower 100x100": square_layer(8, 100, 256, 256),
        "tower 50x50": square_layer(8, 50, 256, 256),
        "tower 25x25": square_layer(8, 25, 256, 256),
        "tower 13x13": square_layer(8, 13, 256, 256),
        "head 100x100, 36": square_layer(8, 100, 256, 36),
        "head 25x25, 36": square_layer(8, 25, 256, 36),
        "classes 50x50, 819": square_layer(8, 50, 256, 819),
        "classes 25x25, 819": square_layer(8, 25, 256, 819),
        "lateral 100x100": square_layer(8, 100, 512, 256, 1),
        "lateral 25x25": square_layer(8, 25, 2048, 256, 1),
        "P6 25x25 s2": square_layer(8, 25, 2048, 256, 3, **_TWO),
    },
    "resnext50": {
        "32 groups of 4, 56x56": square_layer(32, 56, 4, 4, g=32),
        "32 groups of 8, 56x56 s2": square_layer(32, 56, 8, 8, g=32, **_TWO),
        "32 groups of 8, 28x28": square_layer(32, 28, 8, 8, g=32),
        "32 groups of 16, 28x28 s2": square_layer(32, 28, 16, 16, g=32, **_TWO),
        "32 groups of 16, 14x14": square_layer(32, 14, 16, 16, g=32),
        "32 groups of 32, 14x14 s2": square_layer(32, 14, 32, 32, g=32, **_TWO),
        "32 groups of 32, 7x7": square_layer(32, 7, 32, 32, g=32),
    },
    "volumes": {
        "3D U-Net 32->64, 64^3": _solid(2, (64, 64, 64), 32, 64, (3, 3, 3)),
        "3D U-Net 64->64, 64^3": _solid(2, (64, 64, 64), 64, 64, (3, 3, 3)),
        "3D U-Net 128->128, 32^3": _solid(2, (32, 32, 32), 128, 128, (3, 3, 3)),
        "3D U-Net 256->256, 16^3": _solid(2, (16, 16, 16), 256, 256, (3, 3, 3)),
        "video 1x3x3, 64, 8x56x56": _solid(8, (8, 56, 56), 64, 64, (1, 3, 3)),
        "video 3x1x1, 64, 8x56x56": _solid(8, (8, 56, 56), 64, 64, (3, 1, 1)),
        "video 1x3x3, 256, 8x14x14": _solid(8, (8, 14, 14), 256, 256, (1, 3, 3)),
        "video 3x1x1, 256, 8x14x14": _solid(8, (8, 14, 14), 256, 256, (3, 1, 1)),
    },
}


def layers(
    name: str, batch: int, types: str, directions: str, compute: str = ""
) -> dict[str, ConvProblem]:
    """The problems of a set, or of a list of layers, by label, in each type and direction."""
    named = SETS.get(name) or {
        request.label: request.with_batch(batch).problem
        for request in read_file(LISTS / f"{name}.txt")
    }
    return {
        f"{label} {direction} {dtype}": replace(
            problem, dtype=dtype, weight_dtype="", direction=direction, compute=compute
        )
        for dtype in types.split(",")
        for direction in directions.split(",")
        for label, problem in named.items()
    }
