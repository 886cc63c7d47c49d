"""What commands print: times by where they are from, CSV, 80 columns, helps, completions."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import pytest

from conv_compiler.cli import COMMANDS, main
from conv_compiler.commands.speed import measured, peak_share, tflops_text, time_text
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.times import Times
from conv_compiler.storage.notices import is_quiet, quiet
from conv_compiler.targets import find_target
from tests.problems import SMALL as PROBLEM

pytestmark = pytest.mark.usefixtures("empty_cache")
VGPU = ("--target", "gfx942", "--device", "vgpu")
SQUARE = ConvProblem(n=8, k=256, c=256, image=(32, 32), filter=(1, 1))


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_a_clock_gives_times_and_speeds(capfd) -> None:
    assert main(["verify", *PROBLEM, "--json"]) == 0
    (row,) = json.loads(capfd.readouterr().out)
    assert row["time"] == "measured"
    assert 0 < row["min_seconds"] <= row["seconds"] <= row["max_seconds"]
    assert row["calls"] >= 3
    flops = 2 * 2 * 8 * 4 * 8 * 8 * 9
    assert row["tflops"] == pytest.approx(flops / row["seconds"] / 1e12)
    moved = 4 * (2 * 64 * 4 + 2 * 64 * 8 + 8 * 4 * 9)
    assert row["gb_per_s"] == pytest.approx(moved / row["seconds"] / 1e9)
    assert row["of_peak"] is None  # no peak of this host is known
    assert "modelled_seconds" not in row
    assert main(["verify", *PROBLEM]) == 0
    head, _ = capfd.readouterr().out.splitlines()
    # A time and a speed of many digits leave no room for the strategy.
    columns = [word for word in head.split() if word != "strategy"]
    assert columns == ["problem", "target", "split-K", "time", "speed", "result"]


def test_a_virtual_gpu_gives_a_modelled_time(capfd) -> None:
    assert main(["verify", *PROBLEM, *VGPU, "--json"]) == 0
    (row,) = json.loads(capfd.readouterr().out)
    assert row["time"] == "modelled"
    assert row["modelled_seconds"] > 0
    assert row["seconds"] is None
    assert not {"min_seconds", "tflops", "gb_per_s", "of_peak"} & set(row)
    assert main(["verify", *PROBLEM, *VGPU]) == 0
    head, line = capfd.readouterr().out.splitlines()
    assert " us modelled  exact" in line
    assert "speed" not in head
    assert main(["verify", *PROBLEM, *VGPU, "--dynamic-batch", "-v"]) == 0
    head, line = capfd.readouterr().out.splitlines()
    assert line.endswith("model a static batch")
    assert "us modelled" not in line


def test_times_of_calls() -> None:
    assert Times.of([3.0, 1.0, 2.0, 9.0]) == Times(least=1.0, median=2.5, most=9.0, calls=4)


def test_speeds_and_times_as_text() -> None:
    assert tflops_text(1.234) == "1.23 TFLOP/s"
    assert tflops_text(0.8534) == "853 GFLOP/s"
    assert time_text({"seconds": 0.00123}) == "1.23 ms"
    assert time_text({"seconds": None, "modelled_seconds": 12.3e-6}) == "12.3 us modelled"
    assert time_text({}) == "-"


def test_a_share_of_the_peak() -> None:
    """1307 TFLOP/s of f16 on an MI300X, by AMD's data sheet; none of a CPU or an NVIDIA row."""
    time = SQUARE.flops / 1307.4e12
    assert peak_share(SQUARE, find_target("gfx942"), 4 * time) == pytest.approx(0.25, rel=1e-3)
    assert peak_share(SQUARE, find_target("cpu"), time) is None
    assert peak_share(SQUARE, find_target("sm_80"), time) is None
    row = measured(SQUARE, find_target("gfx942"), Times.of([2 * time]))
    assert row["of_peak"] == pytest.approx(0.5, rel=1e-3)
    assert row["tflops"] == pytest.approx(653.7)


@pytest.mark.parametrize(
    "words",
    [
        ["compile", *PROBLEM],
        ["verify", *PROBLEM, "--split-k", "1,2"],
        ["sweep", *PROBLEM, "--strategy", "cpu_loops"],
        ["inspect", *PROBLEM],
        ["inspect", *PROBLEM, *VGPU[:2], "--model"],
        ["list", "targets"],
        ["list", "dtypes"],
        ["cache"],
    ],
)
def test_csv(words: list[str], capfd) -> None:
    main(["compile", *PROBLEM])
    capfd.readouterr()
    assert main([*words, "--csv", "-q"]) == 0
    out, err = capfd.readouterr()
    header, *rows = csv.reader(io.StringIO(out))
    assert rows
    assert len({*header}) == len(header)
    assert {len(row) for row in rows} == {len(header)}
    assert not err


@pytest.mark.parametrize(
    "words",
    [
        ["compile", *PROBLEM, "--target", "cpu,gfx942"],
        ["verify", *PROBLEM, "--target", "cpu,gfx942"],
        ["verify", *PROBLEM, "--data", "random", "--split-k", "1,999"],
        ["inspect", *PROBLEM, "--target", "gfx942", "--model"],
        ["inspect", *PROBLEM, "--target", "gfx942", "--run"],
        ["cache"],
        *(["list", what] for what in ("targets", "layouts", "dtypes", "elementwise", "strategies")),
    ],
)
def test_tables_have_80_columns(words: list[str], capfd) -> None:
    main(words)
    out = capfd.readouterr().out.splitlines()
    shown = [line for line in out if "/" not in line]  # paths stay whole, to be copied
    assert shown
    assert max(map(len, shown)) <= 80


def test_kernels_by_number(capfd) -> None:
    words = ["inspect", *PROBLEM, *VGPU[:2]]
    assert main([*words, "--json"]) == 0
    names = [kernel["name"] for kernel in json.loads(capfd.readouterr().out)["kernels"]]
    assert main(words) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [f"{number}  {name}" for number, name in enumerate(names, 1)] == lines[-len(names) :]
    assert main([*words, "-v"]) == 0
    assert names[-1] in capfd.readouterr().out.splitlines()[-1]


def test_targets_take_a_line_each(capfd) -> None:
    assert main(["list", "targets"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert main(["list", "targets", "--json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert [line.split()[0] for line in lines[1:]] == [row["name"] for row in rows]
    by_name = {line.split()[0]: line for line in lines}
    assert by_name["gfx942"].endswith("f16 bf16 f32 xf32 i8 f8")
    assert main(["list", "targets", "--verbose"]) == 0
    assert "MFMA_F32_16x16x16_F16" in capfd.readouterr().out


def test_quiet_says_nothing_beside(capfd) -> None:
    words = ["verify", *PROBLEM, "--split-k", "1,2"]
    assert main(words) == 0
    assert "[1/2] verify" in capfd.readouterr().err
    assert main([*words, "--quiet"]) == 0
    out, err = capfd.readouterr()
    assert "exact" in out
    assert not err
    line = "verify -q MIOpenDriver conv -n 2 -c 4 -H 8 -W 8 -k 8 -F 4 -i 5"
    assert main(line.split()) == 0
    assert not capfd.readouterr().err
    with quiet():
        assert is_quiet()
    assert not is_quiet()


def test_no_words_print_the_help(capfd) -> None:
    assert main([]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("usage: conv-compiler ")
    assert all(f"\n    {name} " in out for name in COMMANDS)
    assert not err


# `run` has four operands more than the others, `bench` and `inspect` more kinds of output.
@pytest.mark.parametrize("command", COMMANDS)
def test_a_help_is_a_screen(command: str, capfd) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) <= {"run": 26, "bench": 32}.get(command, 24)
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith(f"example: conv-compiler {command}")
    assert not [line for line in lines if "--dilation" in line]


def test_the_flags_of_a_problem_have_a_help(capfd) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["verify", "--help-problem"])
    out = capfd.readouterr().out
    assert "--dilation" in out
    assert "--runs" not in out


def completions(line: str) -> list[str]:
    """What a shell is offered behind a line."""
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_STDOUT_FILENAME": "/dev/stdout",
    }
    command = [sys.executable, "-m", "conv_compiler"]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return found.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("conv-compiler ver", ["verify"]),
        ("conv-compiler verify --target gfx95", ["gfx950"]),
        ("conv-compiler verify --target cpu,gfx90", ["cpu,gfx908", "cpu,gfx90a"]),
        ("conv-compiler compile --strategy cpu_pa", ["cpu_packed"]),
        ("conv-compiler verify --layout NHWC_", ["NHWC_KYXC_NHWK", "NHWC_KCYX_NHWK"]),
        ("conv-compiler verify --dtype bf", ["bf16"]),
        ("conv-compiler verify --direction bwd_d", ["bwd_data"]),
        ("conv-compiler run --device vgpu-", ["vgpu-checked"]),
        ("conv-compiler inspect --stage sched", ["schedule", "scheduled"]),
        ("conv-compiler list la", ["layouts"]),
    ],
)
def test_completions(line: str, offered: list[str]) -> None:
    assert completions(line) == offered


def test_who_does_not_complete_imports_no_completion() -> None:
    code = (
        "import sys\nfrom conv_compiler.cli import main\n"
        "assert main([]) == 0\n"
        "assert not {'argcomplete', 'csv', 'rich', 'numpy'} & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
