"""ResNet-18 and ConvNeXt, narrow, for images of 64 x 64."""

from __future__ import annotations

import torch
from torch import nn


class Residual(nn.Module):
    """A block of ResNet-18 (He et al., "Deep residual learning for image recognition")."""

    def __init__(self, c: int, k: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(c, k, 3, stride, 1, bias=False),
            nn.BatchNorm2d(k),
            nn.ReLU(),
            nn.Conv2d(k, k, 3, 1, 1, bias=False),
            nn.BatchNorm2d(k),
        )
        same = stride == 1 and c == k
        self.aside = nn.Identity() if same else nn.Conv2d(c, k, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.body(x) + self.aside(x)).relu()


class Normalised(nn.Module):
    """Layer normalisation over the channels."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(c)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x.movedim(1, -1)).movedim(-1, 1)


class Next(nn.Module):
    """A block of ConvNeXt (Liu et al., "A ConvNet for the 2020s")."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(c, c, 7, padding=3, groups=c),
            Normalised(c),
            nn.Conv2d(c, 4 * c, 1),
            nn.GELU(),
            nn.Conv2d(4 * c, c, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


def resnet18(width: int = 8) -> nn.Module:
    """Its stem, eight blocks and head."""
    widths = [width << level for level in range(4)]
    blocks: list[nn.Module] = []
    for c, k in zip([width, *widths], widths, strict=False):
        blocks += [Residual(c, k, 1 if k == width else 2), Residual(k, k, 1)]
    stem = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10)]
    return nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1), *blocks, *head)


def convnext(width: int = 8) -> nn.Module:
    """Its stem, two stages of two blocks, and head."""
    return nn.Sequential(
        nn.Conv2d(3, width, 4, 4),
        *(Next(width) for _ in range(2)),
        nn.Conv2d(width, 2 * width, 2, 2),
        *(Next(2 * width) for _ in range(2)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, 10),
    )
