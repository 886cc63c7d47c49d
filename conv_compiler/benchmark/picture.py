# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bars of the times against ours, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.errors import InvalidArray
from conv_compiler.storage.outputs import Kind, check_output, write

if TYPE_CHECKING:
    from conv_compiler.benchmark.measure import Result

# Inches; a bar of a problem has room for its name.
_WIDTH, _BAR, _MARGINS = 8.0, 0.22, 1.6


def _is_svg(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_BEGINS)) == _BEGINS


_BEGINS = b"<?xml"
SVG = Kind(name="an .svg", is_one=_is_svg)


def check_plot(path: Path, read: Sequence[Path]) -> None:
    """Raise unless a picture can be drawn there, before anything is measured.

    `read` are files that it may not replace.
    """
    if path.suffix != ".svg":
        raise InvalidArray(f"plot {path}: not a .svg; name one")
    check_output(path, SVG, read)
    if find_spec("matplotlib") is None:
        raise InvalidArray("plot: needs matplotlib; pip install 'conv-compiler[plot]'")


def draw(results: Sequence[Result], path: Path, title: str) -> None:
    """Write a bar a peer and problem: how many times as fast ours is. 1 is a line.

    A peer without a time has no bar, and its verdict in its place.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    peers = list(dict.fromkeys(peer for one in results for peer in one.peers))
    height = _MARGINS + _BAR * len(results) * (len(peers) + 1)
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    size = 1 / (len(peers) + 1)
    for number, peer in enumerate(peers):
        found = [(at, one, one.ratio(peer)) for at, one in enumerate(results) if peer in one.sides]
        shift = (number - (len(peers) - 1) / 2) * size
        bars = [(at + shift, ratio) for at, _, ratio in found if ratio]
        axes.barh([at for at, _ in bars], [ratio for _, ratio in bars], size, label=peer)
        for at, one, ratio in found:
            word = f" {ratio:.2f}" if ratio else f" {peer}: {_word(one, peer)}"
            axes.text(ratio or 0, at + shift, word, va="center", fontsize=7)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(results)), [one.name for one in results], fontsize=8)
    axes.set_ylim(len(results) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.margins(x=0.12)
    axes.set_xlabel("time of the peer / time of ours, medians (right of the line ours is faster)")
    axes.set_title(title, fontsize=9)
    if peers:
        axes.legend(loc="lower right", fontsize=8)
    write(path, SVG, lambda file: figure.savefig(file, format="svg"))


def _word(result: Result, peer: str) -> str:
    ours = result.sides["ours"]
    text = result.sides[peer].verdict if ours.timing else f"ours {ours.verdict}"
    return text.partition(":")[0]
