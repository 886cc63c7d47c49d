"""The examples of docs/vgpu_tool.md do what they say, each where its compiler is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "vgpu_tool.md").read_text()
SECONDS = 120
X1000, X128 = np.arange(1000, dtype=np.float32), np.arange(128, dtype=np.float32)
# Section -> what the last command leaves in result.npy.
RESULTS = {
    "Triton": 2 * X1000,
    "HIP C++": 3 * X128,
    "IREE": 2 * X1000,
    "Assembly": 2 * X128,
}


def _section(name: str) -> tuple[str, str, str]:
    """File name and text of a section's source, and its commands."""
    (text,) = re.findall(
        rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE
    )
    blocks = re.findall(r"^```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (file,) = re.findall(r"\A(?:#|//|;) (\S+)\n", blocks[0])
    return file, blocks[0], blocks[1]


def _tools(folder: Path) -> dict[str, bool]:
    """Which compilers there are; `ld.lld` is IREE's linker where the system has none."""
    if not shutil.which("ld.lld") and (compiler := find_spec("iree.compiler")):
        (where,) = compiler.submodule_search_locations or ()
        linker = Path(where) / "_mlir_libs" / "iree-lld"
        if linker.exists():
            made = folder / "ld.lld"
            made.write_text(f'#!/bin/sh\nexec "{linker}" -flavor gnu "$@"\n')
            made.chmod(0o755)
    return {
        "Triton": find_spec("triton") is not None,
        "HIP C++": _has_gpu(shutil.which("clang++")),
        "IREE": True,
        "Assembly": shutil.which("llvm-mc") is not None,
    }


def _has_gpu(clang: str | None) -> bool:
    """Whether a clang compiles for gfx90a and links."""
    if not clang:
        return False
    words = [clang, "-print-targets"]
    shown = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return "amdgcn" in shown and shutil.which("lld") is not None


@pytest.mark.parametrize("name", RESULTS)
def test_the_example_works(name: str, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    if not _tools(tools)[name]:
        pytest.skip(f"no compiler for {name}")
    file, source, commands = _section(name)
    (tmp_path / file).write_text(source)
    scripts = sysconfig.get_path("scripts")
    path = os.pathsep.join(
        (scripts, str(Path(sys.executable).parent), os.environ["PATH"], str(tools))
    )
    ran = subprocess.run(
        ["bash", "-euc", commands],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "TRITON_CACHE_DIR": str(tmp_path / "triton")},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert np.array_equal(np.load(tmp_path / "result.npy"), RESULTS[name])
    if "vgpu debug" in commands:
        assert f"{file}:16: " in ran.stdout
    if "vgpu check" in commands:
        assert "no findings" in ran.stdout


def test_every_command_is_told() -> None:
    from conv_compiler.vgpu_tool.cli import COMMANDS

    for command in COMMANDS:
        assert re.search(rf"^\| `{command}` \|", PAGE, re.MULTILINE), command
