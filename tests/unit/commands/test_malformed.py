"""Malformed command lines: exit code 2 and one line, whatever is wrong.

By hand, for more than the quick draws here: `python -m tests.unit.commands.test_malformed 1000`.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import traceback
from pathlib import Path

import pytest

from conv_compiler.cli import main
from tests.malformed import Lines, Words

DRAWS = 100


def complaint(words: Words) -> str:
    """What is wrong with how a line is refused; nothing where all is well."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(words)
    except BaseException:
        return traceback.format_exc()
    lines = err.getvalue().splitlines()
    if status != 2:
        return f"exit code {status}: {out.getvalue()[:200]} {err.getvalue()[:300]}"
    # Of several jobs, or with a note, the refusal is the last line.
    refusals = [line for line in lines if line.startswith("conv-compiler: error: ")]
    if len(refusals) != 1 or lines[-1:] != refusals or len(refusals[0]) < 30:
        return f"not one line: {err.getvalue()[:500]!r}"
    return "" if len(refusals[0]) < 2000 else f"{len(refusals[0])} characters long"


@pytest.mark.parametrize("seed", range(4))
def test_every_one_is_refused_in_one_line(seed: int, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    draw = Lines(seed, tmp_path)
    found = [(words, why) for _ in range(DRAWS // 4) if (why := complaint(words := draw()))]
    assert not found, found[0]


def by_hand(count: int, seed: int) -> int:
    """Draw many, print what is not refused as it should be, and count it."""
    wrong = 0
    sys.stdin = io.StringIO("")
    with tempfile.TemporaryDirectory() as folder:
        draw = Lines(seed, Path(folder))
        for number in range(count):
            words = draw()
            if why := complaint(words):
                wrong += 1
                shown = [
                    word if len(word) < 80 else f"{word[:60]}...({len(word)})" for word in words
                ]
                print(f"{number}: {shown!r}\n    {why}")
    return wrong


if __name__ == "__main__":
    draws, seed = (int(word) for word in [*sys.argv[1:], "0"][:2])
    print(f"{draws} drawn with seed {seed}, {by_hand(draws, seed)} not refused in one line")
