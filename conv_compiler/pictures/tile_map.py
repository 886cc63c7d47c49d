# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The times of a problem's strategies as a map: tiles down, splits across."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conv_compiler.pictures.plots import new_figure, save

# Inches of a square and around them.
_SQUARE, _NAMES, _MARGINS = 0.55, 4.5, 1.8
# Ratio at which a colour is dark.
_DARK = 2.3


def draw_tile_map(times: Mapping[tuple[str, int], float], path: Path, title: str) -> None:
    """Write the picture: `times` has seconds by strategy and split-K factor.

    The colour and the number are the time over the least one; what has no time stays white.
    """
    best = min(times.values())
    fastest: dict[str, float] = {}
    for (strategy, _), seconds in times.items():
        fastest[strategy] = min(seconds, fastest.get(strategy, seconds))
    strategies = sorted(fastest, key=lambda name: fastest[name])
    splits = sorted({split for _, split in times})
    figure, axes = new_figure(
        _NAMES + _SQUARE * len(splits), _MARGINS + _SQUARE * len(strategies) * 0.6
    )
    ratios = [
        [times.get((name, split), float("nan")) / best for split in splits] for name in strategies
    ]
    axes.imshow(ratios, cmap="YlOrRd", vmin=1, vmax=3, aspect="auto")
    for (name, split), seconds in times.items():
        at = splits.index(split), strategies.index(name)
        colour = "white" if seconds / best > _DARK else "black"
        axes.text(*at, f"{seconds / best:.2f}", ha="center", va="center", fontsize=7, color=colour)
    axes.set_xticks(range(len(splits)), [str(split) for split in splits])
    axes.set_yticks(range(len(strategies)), strategies, fontsize=7)
    axes.set_xlabel("split-K factor")
    figure.suptitle(f"{title}\ntime / least time, {best * 1e6:.4g} us", fontsize=8)
    save(figure, path)
