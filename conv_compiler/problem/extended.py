# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images that are padded by their own pixels: circular, reflected or replicated.

Such a problem is computed as one without pads over the extended image. A kernel of its own extends
the image; in a data gradient it adds what the pads got to the pixels that they repeat. Schedules
know the problem without pads alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from conv_compiler.problem.pad_modes import PIXELS

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem


def is_extended(problem: ConvProblem) -> bool:
    """Whether pads repeat pixels."""
    return bool(problem.pad_mode) and any((*problem.pad_low, *problem.pad_high))


def over_extended(problem: ConvProblem) -> ConvProblem:
    """The problem without pads over the extended image; itself where pads are zeros."""
    if not problem.pad_mode:
        return problem
    none = (0,) * problem.ndim
    return replace(problem, image=problem.padded_image, pad_low=none, pad_high=none, pad_mode="")


@cache
def pixels_of(mode: str, low: int, size: int, high: int) -> tuple[int, ...]:
    """The pixel at each place of an extended dimension."""
    pixel = PIXELS[mode]
    return tuple(pixel(at, size) for at in range(-low, size + high))


@cache
def places_of(mode: str, low: int, size: int, high: int) -> tuple[tuple[int, ...], ...]:
    """The places at which each pixel of a dimension stands, its own first."""
    found: list[list[int]] = [[low + pixel] for pixel in range(size)]
    for place, pixel in enumerate(pixels_of(mode, low, size, high)):
        if place != low + pixel:
            found[pixel].append(place)
    return tuple(map(tuple, found))


def most_places(problem: ConvProblem) -> int:
    """Places at which any pixel stands at most."""
    most = 1
    if problem.pad_mode:
        for low, size, high in zip(problem.pad_low, problem.image, problem.pad_high, strict=True):
            most *= max(map(len, places_of(problem.pad_mode, low, size, high)))
    return most
