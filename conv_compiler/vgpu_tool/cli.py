# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `vgpu`: kernels of any compiler, and programs of HIP, on the virtual GPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import MappingProxyType

from conv_compiler.errors import ConvError
from conv_compiler.parser import Parser

# command -> what it does; each is the module of that name beside this one.
COMMANDS = MappingProxyType(
    {
        "list": "list the kernels of a file",
        "run": "run a kernel on arrays",
        "check": "run it and report races, bounds, waits and unwritten memory",
        "profile": "run it and count what it executes, by instruction and source line",
        "debug": "run it step by step, forwards and backwards",
        "exec": "run a program of HIP with this library in the place of AMD's",
    }
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command: 0 when all went well, 1 for findings, 2 with one line for a refusal."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        parser = build_parser(next((word for word in words if word in COMMANDS), ""))
        if not words:
            parser.print_help()
            return 0
        args = parser.parse_args(words)
        status: int = args.run(args)
        sys.stdout.flush()
        return status
    except ConvError as error:
        print(f"vgpu: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        what = f"file {error.filename or '(standard output)'}: {error.strerror or error}"
        print(f"vgpu: error: {what}; see that it may be read or written", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def build_parser(command: str) -> Parser:
    """The parser of the whole command line, with the arguments of one command only: the modules of
    the others are not imported."""
    parser = Parser(prog="vgpu", description="Run kernels of AMD machine code without a card.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help in COMMANDS.items():
        child = commands.add_parser(name, help=help, description=help)
        if name == command:
            module = import_module(f"conv_compiler.vgpu_tool.{name}")
            module.configure(child)
            child.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
