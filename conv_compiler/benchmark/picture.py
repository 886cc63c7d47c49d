# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bars of the times against ours, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.pictures.plots import new_figure, save

if TYPE_CHECKING:
    from conv_compiler.benchmark.measure import Result

# Inches; a bar of a problem has room for its name.
_WIDTH, _BAR, _MARGINS = 8.0, 0.22, 1.6


def draw(results: Sequence[Result], path: Path, title: str) -> None:
    """Write a bar a peer and problem: how many times as fast ours is. 1 is a line.

    A peer without a time has no bar, and its verdict in its place.
    """
    peers = list(dict.fromkeys(peer for one in results for peer in one.peers))
    height = _MARGINS + _BAR * len(results) * (len(peers) + 1)
    figure, axes = new_figure(_WIDTH, height)
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
    save(figure, path)


def _word(result: Result, peer: str) -> str:
    ours = result.sides["ours"]
    text = result.sides[peer].verdict if ours.timing else f"ours {ours.verdict}"
    return text.partition(":")[0]
