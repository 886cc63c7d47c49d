#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Make the pictures of docs/pictures.md anew: tools/gallery.py [FOLDER]"""

from __future__ import annotations

import sys
from pathlib import Path

from conv_compiler import ConvProblem, compile
from conv_compiler.cli import main
from conv_compiler.model.module import model_module
from conv_compiler.model.trace import trace
from conv_compiler.pictures.lanes import lanes_pictures
from conv_compiler.pictures.timeline import timeline_picture

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
LAYER = ConvProblem(n=32, k=128, c=128, image=(28, 28), filter=(3, 3), pad_low=1)
SMALL = ["-n", "2", "-k", "16", "-c", "16", "--image", "14x14", "--filter", "3x3", "--pad", "1"]


def made(folder: Path) -> None:
    """Write every picture of the page."""
    folder.mkdir(exist_ok=True)
    artifact = compile(LAYER, "gfx942")
    kernel = model_module(artifact.vmfb).main
    (folder / "timeline.svg").write_text(timeline_picture(trace(kernel)))
    for name, picture in lanes_pictures(artifact.strategy.mma).items():
        (folder / f"lanes-{name.lower()}.svg").write_text(picture)
    layers = str(Path(__file__).parents[1] / "conv_compiler" / "problems" / "resnet50.txt")
    for words in (
        ["roofline", layers, "--batch", "32", "--target", "gfx942", "--plot", "roofline.svg"],
        ["sweep", *SMALL, "--target", "gfx942", "--split-k", "1,2,4", "--plot", "tiles.svg"],
        ["inspect", *SMALL, "--target", "gfx942", "--html", "kernel.html"],
    ):
        if status := main([*words[:-1], str(folder / words[-1])]):
            sys.exit(status)


if __name__ == "__main__":
    made(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
