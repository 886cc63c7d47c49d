# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of a forward pass or data gradient for kernels that are written as a convolution."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from conv_compiler.problem.slides import Spaced
from conv_compiler.problem.weight_steps import channels, weight_steps

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem


@dataclass(frozen=True, kw_only=True)
class ConvolutionSizes:
    """The convolution that a pass computes; the pass's own options come on top.

    `batch` and `groups` count images and groups, `sources` and `results` the channels of a group in
    the source and in the result. `weight_steps` has the distance in memory, in elements, between
    weights of adjacent groups, result channels, taps and source channels. The others are sizes of
    the spatial dimensions of the convolution in `direction`, outermost first.
    """

    direction: str
    batch: int
    groups: int
    sources: int
    results: int
    weight_steps: tuple[int, ...]
    image: tuple[int, ...]
    outs: tuple[int, ...]
    filter: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pad: tuple[int, ...]

    @property
    def dimensions(self) -> tuple[Spaced, ...]:
        """The spatial dimensions, outermost first."""
        sizes = (self.image, self.outs, self.filter, self.stride, self.dilation, self.pad)
        return tuple(
            Spaced(image=image, outs=outs, taps=taps, stride=stride, dilation=dilation, pad=pad)
            for image, outs, taps, stride, dilation, pad in zip(*sizes, strict=True)
        )


def sizes_of(problem: ConvProblem) -> dict[str, Any]:
    """The fields of `ConvolutionSizes` of a problem of `fwd` or `bwd_data`."""
    sources, results = channels(problem)
    return asdict(
        ConvolutionSizes(
            direction=problem.direction,
            batch=problem.n,
            groups=problem.g,
            sources=sources,
            results=results,
            weight_steps=tuple(weight_steps(problem)),
            image=problem.image,
            outs=problem.out_image,
            filter=problem.filter,
            stride=problem.stride,
            dilation=problem.dilation,
            pad=problem.pad_low,
        )
    )
