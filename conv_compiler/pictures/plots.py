# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where plots are written: SVG files that matplotlib draws, an extra of its own."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.errors import InvalidArray
from conv_compiler.storage.outputs import Kind, check_output, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BEGINS = b"<?xml"
SVG = Kind(name="an .svg", is_one=lambda path: path.read_bytes().startswith(_BEGINS))


def check_plot(path: Path, read: Sequence[Path]) -> None:
    """Raise unless a picture can be drawn there, before anything is measured.

    `read` are files that it may not replace.
    """
    if path.suffix != ".svg":
        raise InvalidArray(f"plot {path}: not a .svg; name one")
    check_output(path, SVG, read)
    if find_spec("matplotlib") is None:
        raise InvalidArray("plot: needs matplotlib; pip install 'conv-compiler[plot]'")


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure of that many inches, and its axes."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure, figure.add_subplot()


def save(figure: Figure, path: Path) -> None:
    """Write the picture, the same bytes for the same figure."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "conv_compiler"}):
        write(
            path,
            SVG,
            lambda file: figure.savefig(file, format="svg", metadata={"Date": None}),
        )
