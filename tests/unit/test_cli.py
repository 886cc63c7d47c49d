"""The command line: every way in. What it refuses is in commands/test_refusals.py."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.cli import COMMANDS, main
from conv_compiler.commands.batch import require
from conv_compiler.commands.demo import LAYERS
from conv_compiler.commands.report import Output, left, progress, show
from conv_compiler.errors import Mismatch
from conv_compiler.frontends import read_file
from tests.problems import SMALL as PROBLEM

pytestmark = pytest.mark.usefixtures("empty_cache")
NAME = "bwd_weight_n2g1k8c4_i8x8_f3x3_p1x1_nhwgc-gkyxc-nhwgk_f32"


def test_a_path_called_like_a_problem_opens_no_line(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["compile", *PROBLEM, "-o", "conv"]) == 0
    assert list((tmp_path / "conv").glob("*.vmfb"))


def test_the_cache_can_be_seen_and_cleared(tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path))
    assert main(["compile", *PROBLEM, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)[0]["rejected"] == []
    assert main(["cache", "--json"]) == 0
    assert [row["name"] for row in json.loads(capfd.readouterr().out)] == [NAME]
    assert main(["cache", "clear"]) == 0
    assert not list(tmp_path.glob("*.vmfb"))


def test_numbers_json_has_not_become_null(capfd) -> None:
    rows = [{"a": float("nan"), "b": {"c": [float("inf"), 1.5]}}]
    show(rows, (), Output(form="json"))
    assert json.loads(capfd.readouterr().out) == [{"a": None, "b": {"c": [None, 1.5]}}]


def test_a_terminal_gets_a_table_and_a_bar(monkeypatch, capfd) -> None:
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress(2, "verify") as step:
        step("[red]one")
        step("two")
    show([{"name": "[red]a"}, {"name": "WRONG"}], (left("problem", "name"),))
    out, err = capfd.readouterr()
    assert "problem" in out
    assert "[red]a" in out
    assert "2/2" in err


def test_compile_json_and_cache(capfd) -> None:
    assert main(["compile", *PROBLEM, "--json"]) == 0
    (row,) = json.loads(capfd.readouterr().out)
    assert (row["name"], row["target"]) == (NAME, "cpu")
    assert Path(row["vmfb"]).is_file()
    assert main(["compile", *PROBLEM, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)[0]["cached"] is True
    assert main(["cache", "--json"]) == 0
    assert NAME in {entry["name"] for entry in json.loads(capfd.readouterr().out)}
    assert main(["cache"]) == 0
    assert "artifacts" in capfd.readouterr().out


def test_a_truncated_cache_file_is_rebuilt(capfd) -> None:
    words = ["compile", *PROBLEM, "--dilation", "2", "--json"]
    assert main(words) == 0
    vmfb = Path(json.loads(capfd.readouterr().out)[0]["vmfb"])
    whole = vmfb.read_bytes()
    vmfb.write_bytes(whole[: len(whole) // 2])
    assert main(words) == 0
    assert json.loads(capfd.readouterr().out)[0]["cached"] is False
    assert len(vmfb.read_bytes()) == len(whole)


def test_run_by_artifact_and_by_problem(
    tmp_path: Path, vmfb: Path, arrays: list[str], capfd
) -> None:
    first, second = tmp_path / "first.npy", tmp_path / "second.npy"
    assert main(["run", str(vmfb), *arrays, "-o", str(first)]) == 0
    assert main(["run", *PROBLEM, *arrays, "-o", str(second), "--json"]) == 0
    assert '"shape"' in capfd.readouterr().out
    image, gradient = np.load(arrays[1]), np.load(arrays[3])
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0), (0, 0)))
    want = np.zeros((1, 8, 3, 3, 4))
    for y in range(3):
        for x in range(3):
            window = padded[:, y : y + 8, x : x + 8]
            want[:, :, y, x] = np.einsum("nhwgk,nhwgc->gkc", gradient, window)
    np.testing.assert_array_equal(np.load(first), want)
    np.testing.assert_array_equal(np.load(second), want)


def test_run_takes_and_writes_bf16(tmp_path: Path) -> None:

    words = ["run", *PROBLEM[:-1], "bf16", "-o", str(tmp_path / "w.npy")]
    for flag, shape in (("--input", (2, 8, 8, 1, 4)), ("--d-output", (2, 8, 8, 1, 8))):
        path = tmp_path / f"{flag.strip('-')}.npy"
        np.save(path, np.ones(shape, ml_dtypes.bfloat16))
        words += [flag, str(path)]
    assert main(words) == 0
    d_weight = np.load(tmp_path / "w.npy").view(ml_dtypes.bfloat16)
    assert d_weight.shape == (1, 8, 3, 3, 4)
    assert float(d_weight.max()) == 128


def test_iree_run_module_runs_the_artifact(vmfb: Path, arrays: list[str], tmp_path: Path) -> None:
    tool = Path(sys.executable).with_name("iree-run-module")
    output = tmp_path / "out.npy"
    command = [str(tool), f"--module={vmfb}", "--device=local-task", "--function=main"]
    command += [f"--input=@{arrays[1]}", f"--input=@{arrays[3]}", f"--output=@{output}"]
    subprocess.run(command, check=True, capture_output=True)
    assert main(["run", str(vmfb), *arrays, "-o", str(tmp_path / "ours.npy")]) == 0
    np.testing.assert_array_equal(np.load(output), np.load(tmp_path / "ours.npy"))


def test_verify(capfd) -> None:
    line = "ckProfiler grouped_conv_bwd_weight 0 2 1 1 0 1 1 2 4 8 8 3 12 1 1 1 1 all"
    assert main(["verify", "--json", *line.split()]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert [row["split_k"] for row in rows[1:]] == [1, 2, 4, 8, 16, 24]  # gemm_k is 48
    assert all(row["passed"] and row["verdict"] == "exact" for row in rows)
    assert main(["verify", line.replace("all", "-1"), "--data", "random"]) == 0
    assert "right" in capfd.readouterr().out


def test_a_wrong_kernel_is_told_after_the_table() -> None:
    rows = [
        {"name": "a", "passed": True, "verdict": "exact"},
        {"name": "b", "passed": False, "verdict": "WRONG: 1 of 2 elements"},
    ]
    require(rows[:1])
    with pytest.raises(Mismatch, match="1 of 2 wrong: b: 1 of 2 elements"):
        require(rows)


def test_inspect(vmfb: Path, capfd) -> None:
    assert main(["inspect", str(vmfb)]) == 0
    assert f"problem   {NAME}" in capfd.readouterr().out
    assert main(["inspect", *PROBLEM, "--stage", "payload"]) == 0
    assert "linalg.generic" in capfd.readouterr().out
    stages = ("payload", "normalised", "schedule", "scheduled", "configured", "llvm", "isa")
    flags = [word for stage in stages for word in ("--stage", stage)]
    flags += ["--target", "gfx942", "--strategy", "implicit_gemm"]
    assert main(["inspect", *PROBLEM, "--json", *flags]) == 0
    texts = json.loads(capfd.readouterr().out)
    assert tuple(texts) == stages
    assert "v_mfma_f32_16x16x4" in texts["isa"]
    assert "translation_info" in texts["configured"]


def test_inspect_run_counts_what_a_kernel_does(capfd) -> None:
    """In JSON and as a table; the matrix units do at least the problem's work."""
    words = ["inspect", *PROBLEM, "--target", "gfx942", "--strategy", "implicit_gemm", "--run"]
    assert main([*words, "--json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    main_kernel = rows[0]
    assert main_kernel["chip"] == "gfx942"
    assert main_kernel["launches"] == 1
    assert main_kernel["waves"] >= main_kernel["workgroups"] >= 1
    classes = main_kernel["instructions"]
    assert {"matrix", "valu", "salu", "lds_read", "lds_write", "global_read"} <= set(classes)
    assert main_kernel["matrix_flops"] >= 2 * 2 * 8 * 4 * 8 * 8 * 3 * 3
    assert main_kernel["lds_read_bytes"] >= 4 * classes["lds_read"]
    assert main_kernel["global_read_lines"] > 0
    assert main(words) == 0
    table = capfd.readouterr().out.splitlines()
    assert "conflict cycles" in table[0]
    assert str(classes["matrix"]) in table[1].split()
    assert main(["inspect", *PROBLEM, "--target", "sm_80", "--run"]) == 2
    assert "has no virtual device to count on" in capfd.readouterr().err


@pytest.mark.parametrize("what", ["targets", "layouts", "dtypes", "elementwise", "strategies"])
def test_list(what: str, capfd) -> None:
    assert main(["list", what, "-v"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert main(["list", what, "--json"]) == 0
    assert len(json.loads(capfd.readouterr().out)) == len(lines) - 1


def test_demo_on_two_small_layers(tmp_path: Path, capfd) -> None:
    path = tmp_path / "layers.txt"
    path.write_text(
        "convfp16 -n 8 -c 64 -H 14 -W 14 -k 64 -F 4 -p 1 -q 1  # a\n"
        "convfp16 -n 8 -c 64 -H 14 -W 14 -k 64 -y 1 -x 1 -F 4  # b\n"
    )
    assert main(["demo", "--problems", str(path), "--verbose"]) == 0
    out, err = capfd.readouterr()
    assert "v_mfma_f32_" in out
    assert "2 layers: exact on integers" in out
    assert "[4/4] demo b: compile for gfx942" in err


def test_the_demo_has_every_layer_of_resnet50() -> None:
    layers = read_file(LAYERS)
    assert len({layer.problem.name for layer in layers}) == len(layers) == 23
    # How often each shape occurs; with the 2.05e6 of the last layer, one image's forward pass
    # takes the 4.09e9 multiply-adds torchvision states for ResNet-50.
    often = [1, 1, 3, 4, 2, *(1, 1, 4, 1, 3, 3), *(1, 1, 6, 1, 5, 5), *(1, 1, 3, 1, 2, 2)]
    images = [layer.problem.with_batch(1) for layer in layers]
    total = sum(times * image.flops for times, image in zip(often, images, strict=True)) / 2
    assert round((total + 2048 * 1000) / 1e7) == 409


@pytest.mark.parametrize(
    ("words", "most"), [(["--help"], 110), (["compile", *PROBLEM], 300)], ids=["help", "compile"]
)
def test_startup_imports_little(words: list[str], most: int, vmfb: Path) -> None:
    """A command answers before one notices: what it imports is counted, on any machine alike.

    The compile is one from the cache.
    """
    code = (
        "import sys\nfrom conv_compiler.cli import main\ntry:\n"
        f"    assert main({words!r}) == 0\n"
        "except SystemExit as ended:\n    assert ended.code == 0\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    names = done.stderr.splitlines()[-1].split()
    assert not {name.partition(".")[0] for name in names} & {"numpy", "iree", "rich"}
    assert len(names) < most
    asks = words == ["--help"]
    assert ("conv_compiler.frontends" in names) is not asks


@pytest.mark.timed
def test_startup_is_short(vmfb: Path) -> None:
    """Of a compile from the cache."""
    code = f"from conv_compiler.cli import main\nassert main({['compile', *PROBLEM]!r}) == 0\n"
    # CPU time, which a busy machine does not stretch; alone the command takes as long as that.
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.6


def test_help_names_every_command(capfd) -> None:
    for words in (["--help"], *([name, "--help"] for name in COMMANDS)):
        with pytest.raises(SystemExit, match="0"):
            main(words)
    out = capfd.readouterr().out
    assert all(f"usage: conv-compiler {name} " in out for name in COMMANDS)
