# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `conv-compiler`: finds the subcommand, turns every refusal into one line."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TextIO

from conv_compiler import __version__
from conv_compiler.errors import ConvError
from conv_compiler.parser import Parser
from conv_compiler.storage.notices import ConvWarning, quiet

# command -> what it does; each is the module of that name in conv_compiler.commands.
COMMANDS = MappingProxyType(
    {
        "compile": "build problems for a target and keep the .vmfb",
        "run": "run a problem or a .vmfb on .npy files",
        "verify": "run problems on a device and compare with a float64 reference",
        "bench": "time problems beside PyTorch, IREE, ckProfiler and MIOpen",
        "sweep": "time every strategy and split of a problem, and verify the fastest",
        "roofline": "model problems' kernels beside what the chip can do at most",
        "tune": "find the fastest kernels of many problems, for compile to take",
        "tuning": "list, export or import what was tuned",
        "inspect": "print the stages of a problem and the facts of its kernels",
        "list": "list targets, layouts, types, elementwise ops or strategies",
        "doctor": "try a card and write a file about it that can be sent to us",
        "cache": "show or clear the cache of compiled problems",
        "demo": "build, run and verify the layers of ResNet-50",
    }
)

# Options whose value is a path: one that is called like a problem line's first word opens none.
_PATHS = (
    "-o",
    "--output",
    "--input",
    "--d-output",
    "--d",
    "--schedule",
    "--html",
    "--trace",
    "--plot",
)

_EPILOG = """\
A problem is given by flags, by a line of MIOpenDriver or ckProfiler (quoted, or
unquoted as the last thing), by a file of such lines, or as JSON:

  conv-compiler verify -n 4 -k 64 -c 64 --image 56x56 --filter 3x3 --pad 1
  conv-compiler verify MIOpenDriver convfp16 -n 8 -c 64 -H 14 -W 14 -k 64 -F 4
  conv-compiler verify problems.txt --json
"""
# What a shell that asks for completions sets: a mark for argcomplete, and the line as typed.
_COMPLETING, _TYPED = "_ARGCOMPLETE", "COMP_LINE"


def build_parser(command: str) -> Parser:
    """The parser of the whole command line, with the arguments of one command only.

    The other commands' modules are not imported: start-up is on the way of every cached compile.
    """
    parser = Parser(
        prog="conv-compiler",
        description="Compile, run and verify gradients of grouped convolutions.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"conv-compiler {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help in COMMANDS.items():
        child = commands.add_parser(name, help=help, description=help)
        if name == command:
            module = import_module(f"conv_compiler.commands.{name}")
            module.configure(child)
            child.set_defaults(run=module.run)
            example = f"example: conv-compiler {module.EXAMPLE}"
            child.epilog = f"{child.epilog}\n{example}" if child.epilog else example
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns 0 when all went well, 1 when lines of a file were refused and the others went well, and
    2 with one line on stderr when the command was refused. Without a word it prints the help.
    """
    if _COMPLETING in os.environ:
        _complete(os.environ.get(_TYPED, ""))
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        build_parser("").print_help()
        return 0
    words, line = _without_line(words)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        return _run(words, line)


def _without_line(words: list[str]) -> tuple[list[str], list[str]]:
    """The words before an unquoted line of another program, and the line: all the rest."""
    if not any(word in COMMANDS for word in words):
        return words, []
    # A help needs no formats, and their import is half of the start-up.
    from conv_compiler.frontends import starts_line

    before = ["", *words]
    for i, word in enumerate(words):
        if starts_line(word) and before[i] not in _PATHS:
            return words[:i], words[i:]
    return words, []


def _complete(typed: str) -> None:
    """Print what may come next on a command line to the shell that asked, and exit."""
    import argcomplete

    command = next((word for word in typed.split() if word in COMMANDS), "")
    argcomplete.autocomplete(build_parser(command))


def _run(words: list[str], line: list[str]) -> int:
    try:
        parser = build_parser(next((word for word in words if word in COMMANDS), ""))
        args = parser.parse_args(words)
        args.line = line
        with quiet(args.quiet):
            status: int = args.run(args)
        sys.stdout.flush()
        return status or int(getattr(args, "refused", 0) > 0)
    except ConvError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        # The reader (`| head`) is gone; keep the interpreter's last flush from complaining.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # What writes files names them; of the rest only the output is left.
        what = f"file {error.filename or '(standard output)'}: {error.strerror or error}"
        return _refuse(f"{what}; see that it exists and may be read or written")
    except MemoryError:
        return _refuse("memory: the problem does not fit; give a smaller --batch")
    except KeyboardInterrupt:
        return 130


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """One line, as for errors; of warnings that are not ours Python's own words."""
    if issubclass(category, ConvWarning):
        text = f"conv-compiler: warning: {' '.join(str(message).split())}\n"
    else:
        text = warnings.formatwarning(message, category, filename, lineno, line)
    print(text, end="", file=file or sys.stderr)


# A longer word of a message is what someone typed or a file holds; its beginning and end will do.
_LONGEST_WORD = 300


def _refuse(message: str) -> int:
    words = (
        word if len(word) <= _LONGEST_WORD else f"{word[:100]}...{word[-50:]}"
        for word in message.split()
    )
    print(f"conv-compiler: error: {' '.join(words)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
