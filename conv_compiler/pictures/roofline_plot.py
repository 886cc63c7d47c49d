# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The roofline of a chip with the kernels of some problems under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.pictures.plots import new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from conv_compiler.targets import Target

# Inches; of more points than this the names are left out.
_WIDTH, _HEIGHT, _MOST_NAMES = 8.0, 5.5, 16


@dataclass(frozen=True, kw_only=True)
class Point:
    """One problem: operations, bytes that are moved at least, and the time of its kernels."""

    name: str
    series: str
    flops: float
    bytes: float
    seconds: float

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.flops / self.bytes

    @property
    def tflops(self) -> float:
        """10^12 operations a second."""
        return self.flops / self.seconds / 1e12


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """What a chip reaches at most: 10^12 operations a second, and gigabytes a second."""

    name: str
    tflops: float
    gb_per_s: float

    def at(self, intensity: float) -> float:
        """10^12 operations a second at so many operations a byte."""
        return min(self.tflops, intensity * self.gb_per_s / 1e3)


def ceilings(target: Target, operands: tuple[str, str]) -> tuple[Ceiling, ...]:
    """A chip's ceilings for two operand types: at its peaks, and sustained where published.

    Raises UnsupportedTarget for a chip without facts.
    """
    from conv_compiler.model.roofline import peak_flops, sustained_rates

    if target.memory_gb_per_s is None:
        return ()
    peak = Ceiling(
        name="peak",
        tflops=peak_flops(operands, target) / 1e12,
        gb_per_s=target.memory_gb_per_s,
    )
    rates = sustained_rates(operands, target)
    if rates is None:
        return (peak,)
    flops, gb_per_s = rates
    return peak, Ceiling(name="sustained", tflops=flops / 1e12, gb_per_s=gb_per_s)


def draw_roofline(
    points: Sequence[Point], roofs: Sequence[Ceiling], path: Path, title: str
) -> None:
    """Write the picture; both axes are logarithmic."""
    figure, axes = new_figure(_WIDTH, _HEIGHT)
    most = max(one.intensity for one in points)
    ridge = max(roof.tflops * 1e3 / roof.gb_per_s for roof in roofs)
    span = min(one.intensity for one in points) / 2, 2 * max(most, ridge)
    for roof, dashes in zip(roofs, ("-", "--"), strict=False):
        _roof(axes, roof, span, dashes)
    for series in dict.fromkeys(one.series for one in points):
        mine = [one for one in points if one.series == series]
        axes.scatter(
            [one.intensity for one in mine], [one.tflops for one in mine], 22, label=series
        )
    if len(points) <= _MOST_NAMES:
        for one in points:
            left = one.intensity > (span[0] * span[1]) ** 0.5
            axes.annotate(
                one.name,
                (one.intensity, one.tflops),
                xytext=(-5 if left else 5, -2),
                textcoords="offset points",
                horizontalalignment="right" if left else "left",
                fontsize=6,
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*span)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.set_xlabel("operations a byte, each tensor moved once")
    axes.set_ylabel("TFLOP/s")
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.3, which="both", linewidth=0.4)
    axes.legend(loc="upper left", fontsize=8)
    save(figure, path)


def _roof(axes: Axes, roof: Ceiling, span: tuple[float, float], dashes: str) -> None:
    ridge = roof.tflops * 1e3 / roof.gb_per_s
    corners = sorted({span[0], min(max(ridge, span[0]), span[1]), span[1]})
    name = f"{roof.name}: {roof.tflops:.4g} TFLOP/s, {roof.gb_per_s:.4g} GB/s"
    heights = [roof.at(x) for x in corners]
    axes.plot(corners, heights, dashes, color="black", linewidth=1, label=name)
