# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers that tools/cpu_bench.py measures, one a row: a few known shapes, and real models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem

# Channels last and channels first; in PyTorch channels_last (or channels_last_3d) and contiguous.
LAST, FIRST = "NHWGC_GKYXC_NHWGK", "NGCHW_GKCYX_NGKHW"


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A weight gradient under a name; `problem` is that of f32 data."""

    name: str
    problem: ConvProblem

    @property
    def model(self) -> str:
        """Key of MODELS, for a layer of that set."""
        return self.name.partition(".")[0]


def _layer(
    name: str, layout: str, n: int, c: int, k: int, image: tuple[int, ...], size: Any, **more: Any
) -> Layer:
    problem = ConvProblem(
        n=n, c=c, k=k, image=image, filter=size, layout=layout, dtype="f32", **more
    )
    return Layer(name=name, problem=problem)


# Layers are named as in the model's usual code (torchvision, torchaudio), sizes are per group.
MODELS = MappingProxyType(
    {
        "resnet50": "ResNet-50 v1.5, images of 224x224",
        "resnext50": "ResNeXt-50 32x4d, images of 224x224",
        "mobilenet_v2": "MobileNetV2, images of 224x224",
        "mobilenet_v3": "MobileNetV3 large, images of 224x224",
        "efficientnet_b0": "EfficientNet-B0, images of 224x224",
        "retinanet": "RetinaNet with ResNet-50 FPN, images of 800x800, the smaller levels",
        "r3d_18": "3D ResNet-18, clips of 8 frames of 56x56",
        "wavenet": "WaveNet, 64 residual and 256 skip channels, 4096 samples, no pads",
        "wav2vec2": "wav2vec 2.0 base: encoder on 0.4 s; positions on 1 s, 32 of 128 taps",
    }
)

# fmt: off
_FACTS = (
    _layer("r56", LAST, 8, 64, 64, (56, 56), 3, pad_low=1),
    _layer("r28", LAST, 8, 128, 128, (28, 28), 3, pad_low=1),
    _layer("r14", LAST, 8, 256, 256, (14, 14), 3, pad_low=1),
    _layer("p56", LAST, 8, 64, 256, (56, 56), 1),
    _layer("rx56", LAST, 8, 4, 4, (56, 56), 3, g=32, pad_low=1),
    _layer("rx14", LAST, 8, 16, 16, (14, 14), 3, g=32, pad_low=1),
    _layer("dw", LAST, 8, 1, 1, (56, 56), 3, g=144, pad_low=1),
    _layer("ret", LAST, 8, 256, 256, (25, 25), 3, pad_low=1),
    _layer("ret_s2", LAST, 8, 256, 256, (25, 25), 3, stride=2, pad_low=1),
)
# Of forward passes and data gradients: few and odd channels, strides, depthwise.
_WAYS = (
    _layer("3x3.56", LAST, 8, 64, 64, (56, 56), 3, pad_low=1),
    _layer("3x3.28", LAST, 8, 128, 128, (28, 28), 3, pad_low=1),
    _layer("3x3.14", LAST, 8, 256, 256, (14, 14), 3, pad_low=1),
    _layer("3x3.7", LAST, 8, 512, 512, (7, 7), 3, pad_low=1),
    _layer("1x1.wide", LAST, 8, 64, 256, (56, 56), 1),
    _layer("1x1.narrow", LAST, 8, 256, 64, (56, 56), 1),
    _layer("1x1.deep", LAST, 2, 1024, 256, (14, 14), 1),
    _layer("1x1.s2", LAST, 8, 256, 512, (56, 56), 1, stride=2),
    _layer("3x3.s2", LAST, 8, 128, 128, (56, 56), 3, stride=2, pad_low=1),
    _layer("7x7.s2", LAST, 2, 3, 64, (224, 224), 7, stride=2, pad_low=3),
    _layer("few.1", LAST, 1, 32, 1, (128, 128), 3, pad_low=1),
    _layer("few.8", LAST, 1, 32, 8, (128, 128), 3, pad_low=1),
    _layer("few.16", LAST, 1, 32, 16, (128, 128), 3, pad_low=1),
    _layer("few.source", LAST, 1, 3, 32, (128, 128), 3, pad_low=1),
    _layer("odd.20", LAST, 8, 20, 20, (28, 28), 3, pad_low=1),
    _layer("dw.56", LAST, 8, 1, 1, (56, 56), 3, g=144, pad_low=1),
    _layer("dw5.28", LAST, 8, 1, 1, (28, 28), 5, g=240, pad_low=2),
    _layer("dw.s2", LAST, 4, 1, 1, (112, 112), 3, g=96, stride=2, pad_low=1),
    _layer("g32.4", LAST, 8, 4, 4, (56, 56), 3, g=32, pad_low=1),
    _layer("g32.16", LAST, 8, 16, 16, (28, 28), 3, g=32, pad_low=1),
)
_MODELS = (
    _layer("resnet50.conv1", LAST, 8, 3, 64, (224, 224), 7, stride=2, pad_low=3),
    _layer("resnet50.layer1.1.conv1", FIRST, 16, 256, 64, (56, 56), 1),
    _layer("resnet50.layer2.0.conv2", FIRST, 8, 128, 128, (56, 56), 3, stride=2, pad_low=1),
    _layer("resnet50.layer3.0.downsample", LAST, 8, 512, 1024, (28, 28), 1, stride=2),
    _layer("resnet50.layer3.1.conv1", LAST, 8, 1024, 256, (14, 14), 1),
    _layer("resnet50.layer4.1.conv2", LAST, 8, 512, 512, (7, 7), 3, pad_low=1),
    _layer("resnet50.layer4.1.conv3", LAST, 8, 512, 2048, (7, 7), 1),
    _layer("resnext50.layer1.0.conv2", FIRST, 8, 4, 4, (56, 56), 3, g=32, pad_low=1),
    _layer("resnext50.layer2.0.conv2", LAST, 16, 8, 8, (56, 56), 3, g=32, stride=2, pad_low=1),
    _layer("resnext50.layer3.1.conv2", FIRST, 32, 16, 16, (14, 14), 3, g=32, pad_low=1),
    _layer("resnext50.layer4.1.conv2", LAST, 32, 32, 32, (7, 7), 3, g=32, pad_low=1),
    _layer("mobilenet_v2.features.1.dw", LAST, 8, 1, 1, (112, 112), 3, g=32, pad_low=1),
    _layer("mobilenet_v2.features.2.dw", FIRST, 8, 1, 1, (112, 112), 3, g=96, stride=2, pad_low=1),
    _layer("mobilenet_v2.features.3.expand", FIRST, 16, 24, 144, (56, 56), 1),
    _layer("mobilenet_v2.features.8.project", LAST, 32, 384, 64, (14, 14), 1),
    _layer("mobilenet_v2.features.18", LAST, 16, 320, 1280, (7, 7), 1),
    _layer("mobilenet_v3.features.0", LAST, 16, 3, 16, (224, 224), 3, stride=2, pad_low=1),
    _layer("mobilenet_v3.features.4.dw", FIRST, 16, 1, 1, (56, 56), 5, g=72, stride=2, pad_low=2),
    _layer("mobilenet_v3.features.8.dw", LAST, 32, 1, 1, (14, 14), 3, g=200, pad_low=1),
    _layer("mobilenet_v3.features.15.dw", LAST, 16, 1, 1, (7, 7), 5, g=960, pad_low=2),
    _layer("efficientnet_b0.features.1.dw", FIRST, 8, 1, 1, (112, 112), 3, g=32, pad_low=1),
    _layer("efficientnet_b0.features.3.1.dw", LAST, 8, 1, 1, (28, 28), 5, g=240, pad_low=2),
    _layer("efficientnet_b0.features.5.1.expand", FIRST, 16, 112, 672, (14, 14), 1),
    _layer("efficientnet_b0.features.6.0.dw", LAST, 32, 1, 1, (14, 14), 5, g=672, stride=2, pad_low=2),  # noqa: E501
    _layer("retinanet.fpn.inner.2", FIRST, 8, 2048, 256, (25, 25), 1),
    _layer("retinanet.fpn.p7", LAST, 16, 256, 256, (13, 13), 3, stride=2, pad_low=1),
    _layer("retinanet.head.cls_logits", FIRST, 8, 256, 819, (13, 13), 3, pad_low=1),
    _layer("retinanet.head.bbox_reg", LAST, 8, 256, 36, (50, 50), 3, pad_low=1),
    _layer("r3d_18.stem", LAST, 8, 3, 64, (8, 56, 56), (3, 7, 7), stride=(1, 2, 2), pad_low=(1, 3, 3)),  # noqa: E501
    _layer("r3d_18.layer2.0.conv1", FIRST, 8, 64, 128, (8, 28, 28), 3, stride=2, pad_low=1),
    _layer("r3d_18.layer2.0.downsample", LAST, 32, 64, 128, (8, 28, 28), 1, stride=2),
    _layer("r3d_18.layer3.1.conv1", LAST, 8, 256, 256, (2, 7, 7), 3, pad_low=1),
    _layer("wavenet.dilated.1", FIRST, 8, 64, 128, (4096,), 2),
    _layer("wavenet.dilated.32", LAST, 8, 64, 128, (4096,), 2, dilation=32),
    _layer("wavenet.dilated.512", FIRST, 8, 64, 128, (4096,), 2, dilation=512),
    _layer("wavenet.skip", LAST, 8, 64, 256, (4096,), 1),
    _layer("wav2vec2.conv_layers.0", FIRST, 16, 1, 512, (6400,), 10, stride=5),
    _layer("wav2vec2.conv_layers.3", LAST, 8, 512, 512, (319,), 3, stride=2),
    _layer("wav2vec2.conv_layers.5", FIRST, 8, 512, 512, (79,), 2, stride=2),
    _layer("wav2vec2.pos_conv_embed", FIRST, 8, 48, 48, (49,), 32, g=16, pad_low=16),
)
# fmt: on
SETS = MappingProxyType({"facts": _FACTS, "ways": _WAYS, "models": _MODELS})


def find_layers(patterns: Iterable[str]) -> tuple[Layer, ...]:
    """The layers of all sets whose names match one of the patterns, such as `resnet50.*`.

    Raises UnsupportedProblem for a pattern that matches none.
    """
    rows = [row for layers in SETS.values() for row in layers]
    found: dict[str, Layer] = {}
    for pattern in patterns:
        matching = {row.name: row for row in rows if fnmatchcase(row.name, pattern)}
        if not matching:
            known = ", ".join(row.name for row in rows)
            raise UnsupportedProblem(f"layer {pattern}: in no set; known: {known}")
        found |= matching
    return tuple(found.values())
