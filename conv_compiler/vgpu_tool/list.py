# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`vgpu list`: the kernels of a file, and what they need."""

from __future__ import annotations

import argparse

from conv_compiler.commands.report import add_output, left, output, right, show
from conv_compiler.errors import InvalidArtifact
from conv_compiler.vgpu_tool.launching import add_file, notes

KERNELS = (
    left("chip", "chip"),
    left("kernel", "kernel"),
    left("arguments", "arguments"),
    right("threads", "threads"),
    right("VGPRs", "vgprs"),
    right("LDS bytes", "lds_bytes"),
    right("scratch bytes", "scratch_bytes", rank=1),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_file(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Print a row for each kernel."""
    rows = [
        {
            "chip": chip,
            "kernel": note.name,
            "arguments": " ".join(
                f"{one.value_kind}:{one.size}" for one in note.args if not one.is_hidden
            ),
            "threads": note.max_flat_workgroup_size,
            "vgprs": note.vgpr_count,
            "lds_bytes": note.group_segment_fixed_size,
            "scratch_bytes": note.private_segment_fixed_size,
        }
        for chip, note in notes(args.file)
        if args.chip in (None, chip)
    ]
    if not rows:
        raise InvalidArtifact(f"{args.file}: has no AMD code object; give a file that has one")
    show(rows, KERNELS, output(args))
    return 0
