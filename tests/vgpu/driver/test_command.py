"""The command `vgpu`: a kernel listed, run, checked and counted from files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from conv_compiler.vgpu_tool.cli import main
from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

CHIP, SIZE = "gfx1100", 1000
KERNEL = "main_dispatch_0_elementwise_1000_f32"


@pytest.fixture
def folder(tmp_path: Path, compile_for: CompileFor) -> Path:
    """A module, its operands, and what it computes of them."""
    (tmp_path / "k.vmfb").write_bytes(compile_for(BY_NAME["multiply_add_f32"].mlir, CHIP))
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-8, 9, SIZE).astype(np.float32) for _ in range(2))
    for name, array in {"a": a, "b": b, "want": a * b + a}.items():
        np.save(tmp_path / f"{name}.npy", array)
    return tmp_path


def words(folder: Path, command: str, *more: str, out: str = f"out:f32:{SIZE}") -> list[str]:
    given = (f"in:f32:{folder}/a.npy", f"in:f32:{folder}/b.npy", out)
    arguments = [word for one in given for word in ("--arg", one)]
    return [command, f"{folder}/k.vmfb", "--grid", "32", *arguments, *more]


def test_list(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", f"{folder}/k.vmfb", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["chip"], row["kernel"]) == (CHIP, KERNEL)
    assert row["arguments"] == "global_buffer:8 global_buffer:8 global_buffer:8"
    assert main(["list", f"{folder}/k.vmfb", "--chip", "gfx90a"]) == 2
    assert "has no AMD code object" in capsys.readouterr().err


def test_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = f"out:f32:{SIZE}:{folder}/c.npy"
    assert main(words(folder, "run", "--kernel", KERNEL, "--chip", CHIP, out=out)) == 0
    want = np.load(folder / "want.npy")
    assert np.array_equal(np.load(folder / "c.npy"), want)
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["argument", "shape", "least", "most", "begins"]
    assert f" {want.min():g} " in line
    assert f" {want.max():g} " in line


def test_check_finds_nothing_or_names_the_instruction(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(folder, "check")) == 0
    assert capsys.readouterr().out == "no findings\n"
    short, sarif = f"out:f32:{SIZE // 2}", folder / "found.sarif"
    assert main(words(folder, "check", "--json", "--sarif", str(sarif), out=short)) == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert row["kind"] == "out of allocation"
    assert row["text"].startswith("buffer_store_b32")
    (run,) = json.loads(sarif.read_text())["runs"]
    (result,) = run["results"]
    assert result["ruleId"] == "out of allocation"
    assert (
        result["locations"][0]["physicalLocation"]["address"]["absoluteAddress"] == row["address"]
    )


def test_profile(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(folder, "profile", "--json")) == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts["kernel"] == KERNEL
    assert counts["global_write_bytes"] == 4 * SIZE
    assert counts["workgroups"] == 32
    assert main(words(folder, "profile")) == 0
    assert "global write bytes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--kernel", "x"], f"kernel x: not in the file; it has {KERNEL}"),
        (["--chip", "gfx942"], f"has kernels for {CHIP} only; give a file with code for gfx942"),
        (["--chip", "gfx123"], "gfx123"),
        (["--arg", "i32:1"], f"kernel {KERNEL}: 4 arguments; it takes 3"),
        (["--grid", "1,2,3,4"], "not one to three numbers"),
        (["--grid", "0"], "no dimension may be zero"),
        (["--wat"], "--wat: not known here"),
    ],
)
def test_one_line_says_what_is_refused(
    change: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words(folder, "run"), *change]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert (shown.err.count("\n"), shown.out) == (1, "")


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "none.hsaco"]) == 2
    assert "vgpu: error: file none.hsaco: No such file" in capsys.readouterr().err


def test_without_a_word_it_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in ("list", "run", "check", "profile"))
