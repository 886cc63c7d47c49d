# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`vgpu run`: a kernel on arrays of files."""

from __future__ import annotations

import argparse

from conv_compiler.commands.report import left, output, show
from conv_compiler.vgpu_tool.launching import add_launch, asked

RESULTS = (
    left("argument", "argument"),
    left("shape", "shape"),
    left("least", "least"),
    left("most", "most"),
    left("begins", "begins"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_launch(parser)


def run(args: argparse.Namespace) -> int:
    """Run it, keep what it wrote where a file is named, and print the range of that."""
    import numpy as np

    launch = asked(args, checks=False)
    launch.run()
    rows = []
    for one in launch.given:
        if not one.is_written:
            continue
        if one.file:
            np.save(one.file, one.value)
        wide = one.value.astype(np.float64)
        rows.append(
            {
                "argument": one.word,
                "shape": "x".join(map(str, one.value.shape)),
                "least": f"{wide.min():.6g}" if wide.size else None,
                "most": f"{wide.max():.6g}" if wide.size else None,
                "begins": " ".join(f"{x:.6g}" for x in wide.flat[:4]),
            }
        )
    show(rows, RESULTS, output(args))
    return 0
