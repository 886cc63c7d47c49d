# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`vgpu debug`: a kernel run step by step, at a terminal or by commands of a script."""

from __future__ import annotations

import argparse
import sys

from conv_compiler.vgpu_tool.launching import add_launch, asked


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_launch(parser)
    parser.add_argument("--checks", action="store_true", help="stop at every finding, too")
    parser.add_argument(
        "-x",
        dest="commands",
        action="append",
        default=[],
        metavar="COMMAND",
        help="do this and no more; may be given again",
    )


def run(args: argparse.Namespace) -> int:
    """Debug it: 0, or 1 where it stands at a finding or has failed when the commands of -x are
    done."""
    from conv_compiler.vgpu.debugger import Debugger
    from conv_compiler.vgpu_tool.debug_shell import Shell

    launch = asked(args, checks=args.checks)
    with launch.prepared() as prepared, Debugger(prepared) as debugger:
        shell = Shell(debugger, launch.kernel, prepared, sys.stdout)
        if not args.commands:
            shell.converse()
            return 0
        for command in args.commands:
            if shell.do(command):
                break
        return int(shell.is_wrong)
