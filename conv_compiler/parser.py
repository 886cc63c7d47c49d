# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parser of every command line: helps of one screen, and refusals in one line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from conv_compiler.errors import UnsupportedProblem, did_you_mean

_UNKNOWN = "unrecognized arguments: "  # argparse's own words
PROBLEM_GROUP = "problem"
# Flags that have no line of their own in a help: other lines name them.
NAMED_GROUP = "named"


class Help(argparse.RawDescriptionHelpFormatter):
    """A help with a line an option where that fits."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """`-o, --output PATH`, with the value's name once."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class Parser(argparse.ArgumentParser):
    """An argument parser without abbreviations whose refusals are UnsupportedProblem."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=Help, **settings)
        self._positionals.title = self._optionals.title = None  # two lines of every help

    def format_help(self) -> str:
        """The help of a command, one screen: without the flags of a problem, which --help-problem
        prints, and those of the output, which other lines name."""
        every, apart = self._action_groups, (PROBLEM_GROUP, NAMED_GROUP)
        self._action_groups = [group for group in every if group.title not in apart]
        try:
            return super().format_help()
        finally:
            self._action_groups = every

    def problem_help(self) -> str:
        """The help of the flags of a problem."""
        formatter = self._get_formatter()
        for group in self._action_groups:
            if group.title == PROBLEM_GROUP:
                formatter.start_section(group.title)
                formatter.add_text(group.description)
                formatter.add_arguments(group._group_actions)
                formatter.end_section()
        return formatter.format_help()

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print together with its usage."""
        text = message.removeprefix("argument ")
        if text.startswith(_UNKNOWN):
            word = text.removeprefix(_UNKNOWN).split()[0]
            text = f"{word}: not known here; {did_you_mean(word, self.options())}see --help"
        raise UnsupportedProblem(text)

    def options(self) -> set[str]:
        """The flags of this parser and of its commands."""
        found = set(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                found |= {flag for child in action.choices.values() for flag in child.options()}
        return found

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that an argument's choices lack, as for every other table."""
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            what = next(iter(action.option_strings), action.metavar or action.dest)
            raise UnsupportedProblem(
                f"{what} {value}: not in the table; {did_you_mean(str(value), known)}"
                f"known: {', '.join(known)}"
            )


def completed(action: argparse.Action, words: Callable[[], Iterable[str]]) -> None:
    """Let a shell complete an argument; `words` is called when one does, and not for a help."""

    def complete(prefix: str, **_: Any) -> list[str]:
        before, comma, _last = prefix.rpartition(",")  # of several the last
        return [before + comma + word for word in words()]

    action.completer = complete  # type: ignore[attr-defined]
