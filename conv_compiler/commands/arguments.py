# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The problems of a command line, on the targets and with the splits that it names."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conv_compiler.commands.report import say
from conv_compiler.errors import UnsupportedProblem, UnsupportedTarget
from conv_compiler.frontends import (
    Request,
    SplitK,
    ck_examples,
    parse_split_k,
    parse_text,
    parse_tokens,
    read_file,
)
from conv_compiler.frontends.flags import (
    add_problem_flags,
    every_from_values,
    size,
    stated,
)
from conv_compiler.frontends.request import is_number
from conv_compiler.parser import NAMED_GROUP, Parser
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.targets import TARGETS, Target, find_target
from conv_compiler.targets.reproducible import reproducible


@dataclass(frozen=True, kw_only=True)
class Job:
    """One thing to build: a problem, a target, a split."""

    problem: ConvProblem
    target: Target
    split_k: SplitK
    label: str = ""

    @property
    def name(self) -> str:
        """What the user calls it, else the problem's name."""
        return self.label or self.problem.name

    @property
    def text(self) -> str:
        """The name with what tells it from its neighbours."""
        return f"{self.name} {self.target.name} split-K {self.split_k}"


def add_problems(parser: argparse.ArgumentParser) -> None:
    """Every way of giving problems, `--help-problem`, and `--batch` and `--split-k`."""
    parser.usage = f"{parser.prog} [PROBLEM ...] [options]"
    parser.add_argument(
        "problems",
        nargs="*",
        metavar="PROBLEM",
        help="flags (see --help-problem), a tool's line, JSON, a file, -",
    )
    parser.add_argument_group(NAMED_GROUP).add_argument(
        "--help-problem", action=_HelpProblem, help="print the flags that state a problem"
    )
    add_problem_flags(parser)
    parser.add_argument(
        "--split-k",
        metavar="S",
        help="parts of gemm_k: auto, occupancy, all, or some: 1,2,4",
    )
    parser.add_argument("--batch", type=size, metavar="N", help="a batch size for all problems")


class _HelpProblem(argparse.Action):
    """Print the flags of a problem and exit."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print and exit."""
        assert isinstance(parser, Parser)
        print(parser.problem_help(), end="")
        parser.exit()


# Arguments beside the problems whose values are files to read.
READ = ("schedule", "input", "weight", "d_output", "d")
# What says how to build, and means nothing for what is built.
_BUILD = ("split_k", "batch", "target", "strategy", "tile", "schedule")


def requests(args: argparse.Namespace) -> tuple[Request, ...]:
    """The problems a command line asks for, in its order.

    Raises UnsupportedProblem when there is none, when flags contradict another source, and for
    whatever is wrong in a line or a file. Of a file with sound problems the unsound lines are
    reported instead, and `args.refused` counts them.
    """
    given = stated(vars(args))
    dynamic = given.pop("dynamic_batch", False)  # of problems from anywhere, as --batch
    found = [request for word in args.problems for request in _read(word, args)]
    if args.line:
        found += parse_tokens(args.line)
    for note in dict.fromkeys(request.note for request in found if request.note):
        say(note)
    if ignored := dict.fromkeys(word for request in found for word in request.ignored):
        say(f"{', '.join(ignored)}: how another program measures, not used here")
    if given and found:
        flag = flag_of(next(iter(given)))
        raise UnsupportedProblem(f"{flag}: contradicts the problem given as a line; use one form")
    if not found and not given:
        raise UnsupportedProblem("problem: none given; use flags, a line, a file or JSON")
    found = found or [Request(problem=problem) for problem in every_from_values(given)]
    split_k = () if args.split_k is None else parse_split_k(args.split_k)
    found = [request.with_split_k(split_k).with_batch(args.batch) for request in found]
    return tuple(request.with_dynamic_batch() for request in found) if dynamic else tuple(found)


def flag_of(name: str) -> str:
    """An option as it is typed, by the name of its value."""
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"


def _read(word: str, args: argparse.Namespace) -> tuple[Request, ...]:
    """The problems of one positional word: a line when it has blanks or braces, else a file.

    Raises UnsupportedProblem for a word that is no file and has numbers beside it, as a program's
    name has.
    """

    def refused(error: UnsupportedProblem) -> None:
        args.refused = getattr(args, "refused", 0) + 1
        print(f"conv-compiler: error: {error}", file=sys.stderr)

    if word == "-":
        return parse_text(sys.stdin.read(), "stdin", refused)
    if re.search(r"[\s{[]", word) and not os.path.isfile(word):
        return parse_text(word, "")
    if any(map(is_number, args.problems)) and not os.path.exists(word):
        what = "a number" if is_number(word) else "no file, nor a program known here"
        raise UnsupportedProblem(
            f"{word}: {what}; a line starts with MIOpenDriver, ckProfiler, or one of "
            f"{', '.join(ck_examples.EXAMPLES)}"
        )
    return read_file(Path(word), refused)


def read_files(args: argparse.Namespace) -> tuple[Path, ...]:
    """The files that a command line names for reading, whatever they hold."""
    named = [*args.problems, *(value for name in READ if (value := getattr(args, name, None)))]
    return tuple(Path(word) for word in named if word != "-" and os.path.exists(word))


def targets(args: argparse.Namespace) -> tuple[Target, ...]:
    """The rows `--target` names; UnsupportedTarget for one that is in no row."""
    if args.target == "all":
        return tuple(TARGETS.values())
    settle = reproducible if getattr(args, "reproducible", False) else lambda row: row
    names = ["cpu"] if args.target is None else [n for n in args.target.split(",") if n]
    if not names:
        raise UnsupportedTarget("target: none given; see conv-compiler list targets")
    return tuple({row.name: row for row in map(settle, map(find_target, names))}.values())


def artifact_path(args: argparse.Namespace) -> Path | None:
    """The `.vmfb` that PROBLEM names, if it does.

    Raises UnsupportedProblem where something else of a problem or a build is given with it.
    """
    given = [word for word in args.problems if word.endswith(".vmfb")]
    if not given:
        return None
    if len(args.problems) > 1 or args.line:
        raise UnsupportedProblem(
            f"{given[0]}: not the only problem given; {args.command} takes one"
        )
    values = vars(args)
    others = [*stated(values), *(name for name in _BUILD if values.get(name) is not None)]
    if others:
        flag = f"-{others[0]}" if len(others[0]) == 1 else f"--{others[0].replace('_', '-')}"
        raise UnsupportedProblem(f"{flag}: {given[0]} is compiled already; leave it out")
    return Path(given[0])


def jobs(args: argparse.Namespace) -> tuple[Job, ...]:
    """Every problem on every target with every split asked for."""

    def every() -> Iterator[Job]:
        for request in requests(args):
            for target in targets(args):
                for split_k in request.splits:
                    yield Job(
                        problem=request.problem,
                        target=target,
                        split_k=split_k,
                        label=request.label,
                    )

    return tuple(every())


def one(args: argparse.Namespace) -> Job:
    """The only job; UnsupportedProblem when there are several."""
    found = jobs(args)
    if len(found) > 1:
        raise UnsupportedProblem(
            f"problem: {len(found)} given, counting targets and splits; {args.command} takes one"
        )
    return found[0]
