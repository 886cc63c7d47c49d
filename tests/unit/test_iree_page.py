"""What docs/iree.md shows works as it stands there, and makes the same bytes as `compile`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conv_compiler import ConvProblem, compile
from conv_compiler.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "iree.md").read_text()
BLOCKS = re.findall(r"```(sh|python)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where every block of the page was run, in order."""
    folder = tmp_path_factory.mktemp("page")
    tools = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CONV_COMPILER_CACHE": str(folder / "cache"),
    }
    for kind, text in BLOCKS:
        command = ["sh", "-ec", text] if kind == "sh" else [sys.executable, "-c", text]
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stderr}"
    return folder


def test_the_tools_compute_the_gradient(folder):
    """Ones times ones: each element is the number of pixels."""
    for name, c, k in (("d_weight", 4, 8), ("chip", 16, 16)):
        result = np.load(folder / f"{name}.npy")
        assert result.shape == (1, k, 3, 3, c)
        assert (result == 2 * 4 * 4).all()


def test_the_script_makes_the_artifacts_module(folder):
    artifact = compile(ConvProblem(n=2, k=16, c=16, image=(6, 6), filter=(3, 3)), "gfx942")
    assert (folder / "steps" / "module.vmfb").read_bytes() == artifact.module


@pytest.mark.parametrize(
    "target", ["cpu", "sm_90a", pytest.param("gfx1100", marks=pytest.mark.slow)]
)
def test_other_targets_are_reproduced(target, tmp_path, monkeypatch, capsys):
    tools = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    steps, path = tmp_path / "a b", tmp_path / "x.vmfb"
    artifact = compile(ConvProblem(n=2, k=8, c=8, image=(5, 4), filter=(3, 2)), target)
    module = artifact.module
    artifact.save(path)
    assert main(["inspect", str(path), "--reproduce", str(steps)]) == 0
    assert capsys.readouterr().out == f"sh {steps}/compile.sh\n"
    subprocess.run(["sh", str(steps / "compile.sh")], check=True, capture_output=True)
    assert (steps / "module.vmfb").read_bytes() == module


def test_a_folder_in_use_is_refused(tmp_path, capsys):
    (tmp_path / "x").write_text("mine")
    words = [
        "-n",
        "1",
        "-k",
        "2",
        "-c",
        "2",
        "--image",
        "4x4",
        "--filter",
        "1x1",
        "--target",
        "cpu",
    ]
    assert main(["inspect", *words, "--reproduce", str(tmp_path)]) == 2
    assert "holds files already; name an empty one" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
