"""What README.md shows works as it stands there, and tables in docs are those of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from conv_compiler.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
FIRST = re.search(r"```\npip install \.\n(conv-compiler .*)\n```", README)
# These compile dozens of kernels.
LONG = tuple(
    f"conv-compiler {words}" for words in ("sweep", "tune", "doctor", "list targets --check")
)
SHELL = re.search(r"```sh\n(.*?)```", README, re.DOTALL)[1].splitlines()
COMMANDS = [
    pytest.param(line, marks=[pytest.mark.slow] * line.startswith(LONG))
    for line in SHELL
    if not line.startswith("#")
]


@pytest.fixture(scope="module", autouse=True)
def _place(tmp_path_factory: pytest.TempPathFactory):
    """A folder and a cache of its own for the commands, which use one another's files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONV_COMPILER_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.chdir(tmp_path_factory.mktemp("readme"))
        yield


def test_the_first_result(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is, how to install it and a first result stand in the first 20 lines, as printed."""
    shown = re.search(r"^    (target .*)\n    (.*)$", README, re.MULTILINE)
    assert README[: shown.end()].count("\n") < 20
    program, *words = shlex.split(FIRST[1])
    assert program == "conv-compiler"
    monkeypatch.setenv("COLUMNS", "80")
    assert main(words) == 0
    head, row = (re.split(r"  +", line) for line in capfd.readouterr().out.splitlines())
    printed = dict(zip(head, row, strict=True))
    told = dict(zip(*(re.split(r"  +", text) for text in shown.groups()), strict=True))
    if not printed["time"].endswith("modelled"):  # a card's, where there is one
        del told["time"]
    assert {name: printed[name] for name in told} == told


def test_the_python_example() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands(line: str, capfd: pytest.CaptureFixture[str]) -> None:
    program, *words = shlex.split(line)
    assert program == "conv-compiler"
    assert main(words) == 0
    assert capfd.readouterr().out


def test_the_types_of_the_docs(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "dtypes", "--verbose"]) == 0
    assert capfd.readouterr().out in (ROOT / "docs" / "types.md").read_text()
