"""Tuning by several processes of this machine: the same as by one, and what kills them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conv_compiler.cli import main
from conv_compiler.errors import UnsupportedTarget, WorkersUnavailable
from conv_compiler.targets import find_target
from conv_compiler.tuning.processes import processes
from conv_compiler.tuning.task import Plan, identity, plan


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_and_refusals_by_number(jobs: int) -> None:
    with processes(jobs) as run:
        found = dict(run(find_target, ["gfx942", "wat", "gfx1100"]))
        again = dict(run(find_target, ["gfx950"]))
    assert isinstance(found[1], UnsupportedTarget)
    assert [found[number].name for number in (0, 2)] == ["gfx942", "gfx1100"]
    assert again[0].name == "gfx950"


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


PARENT = """
import os, sys
from conv_compiler.tuning.processes import processes
if __name__ == "__main__":
    with processes(2) as run:
        ((_, group),) = run(os.getpgid, [0])
        print(os.getpgid(0), group, flush=True)
        sys.stdin.read()
"""


def test_an_interrupt_is_for_the_one_that_asked(tmp_path: Path) -> None:
    """Its processes have groups of their own, and do not outlive it however it ends."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        [sys.executable, str(script)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        ours, theirs = map(int, parent.stdout.readline().split())
        assert ours != theirs
        parent.kill()
        deadline = time.monotonic() + 20
        while not _gone(theirs) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert _gone(theirs)


def test_a_process_that_is_killed_is_told() -> None:
    with (
        pytest.raises(WorkersUnavailable, match=r"jobs 2: a process was killed, .* is kept"),
        processes(2) as run,
    ):
        list(run(os._exit, [9]))


@pytest.mark.parametrize("jobs", [1, 2])
def test_other_sources_end_it(jobs: int) -> None:
    other = Plan(problem={}, target="gfx942", splits=(), made_by=("0.0", identity()[1]))
    with processes(jobs) as run, pytest.raises(WorkersUnavailable, match="install the same"):
        list(run(plan, [other]))


@pytest.mark.slow
def test_two_processes_tune_as_one(tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("CONV_COMPILER_TUNING", str(tmp_path / "t.sqlite"))
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path))
    words = ["tune", "-n", "2", "-k", "8", "-c", "8", "--image", "5x6", "--filter", "3x2"]
    words += ["--target", "gfx942", "-q", "--json", "--again", "--jobs"]
    assert main([*words, "2"]) == 0
    by_two = json.loads(capfd.readouterr().out)
    assert main([*words, "1"]) == 0
    assert json.loads(capfd.readouterr().out) == by_two
