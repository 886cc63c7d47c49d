"""The tool where only the packages that docs/vgpu-tool.md names are installed: no IREE, no rich."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from tests.vgpu.support.programs import BY_NAME
from tests.vgpu.support.running import CompileFor

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "vgpu-tool.md").read_text()
NEEDED = re.search(r"^pip install (numpy .*)$", PAGE, re.MULTILINE)[1].split()
# The module of a package of another name.
MODULES = {"pyelftools": "elftools"}
# Refuses every module that belongs to none of the packages that it is told, then is the tool.
HIDDEN = """
import sys
from importlib.abc import MetaPathFinder

known = {*sys.argv.pop(1).split(","), "conv_compiler", *sys.stdlib_module_names}
there = set(sys.modules)

class Hide(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in known and not top.startswith("_editable_"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hide())
"""
MARK = "\n---\n"
TOOL = f"""
import json
from conv_compiler.vgpu_tool.cli import main
for words in json.loads(sys.argv[1]):
    assert main(words) == 0
    print({MARK!r})
"""
# Most commands, and what IREE is needed for.
CODE = """
from conv_compiler import vgpu
assert len(vgpu.CHIPS) > 4
try:
    vgpu.device("gfx942")
except vgpu.VirtualDeviceError as error:
    print(error)
assert "iree" not in sys.modules
"""


def run(code: str, *words: str, cache: Path) -> subprocess.CompletedProcess[str]:
    modules = [re.split("[=<>]", name)[0] for name in NEEDED]
    known = ",".join(MODULES.get(name, name) for name in modules)
    return subprocess.run(
        [sys.executable, "-c", HIDDEN + code, known, *words],
        env={**os.environ, "CONV_COMPILER_CACHE": str(cache), "HOME": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def kernel(tmp_path: Path, compile_for: CompileFor) -> list[str]:
    """The words of a launch."""
    (tmp_path / "k.vmfb").write_bytes(compile_for(BY_NAME["multiply_add_f32"].mlir, "gfx1100"))
    np.save(tmp_path / "a.npy", np.ones(1000, np.float32))
    given = (f"in:f32:{tmp_path}/a.npy", f"in:f32:{tmp_path}/a.npy", "out:f32:1000")
    return [f"{tmp_path}/k.vmfb", "--grid", "32", *(w for one in given for w in ("--arg", one))]


COMMANDS = {
    "list": ([], "gfx1100"),
    "run": ([], " 2 2 2 2"),
    "check": ([], "no findings"),
    "profile": (["--by", "instruction", "--html", "p.html", "--trace", "p.json"], "v_"),
    "debug": (["-x", "step 3", "-x", "back"], "step 2, workgroup (0, 0, 0), wave 0"),
}


def test_the_commands_work(
    kernel: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, *launch = kernel
    lines = [
        [name, file, *(launch if name != "list" else []), *more]
        for name, (more, _) in COMMANDS.items()
    ]
    ran = run(TOOL, json.dumps(lines), cache=tmp_path / "cache")
    assert ran.returncode == 0, ran.stderr
    for part, (name, (_, shown)) in zip(ran.stdout.split(MARK), COMMANDS.items(), strict=False):
        assert shown in part, name
    assert ran.stdout.count(MARK) == len(COMMANDS)


def test_the_device_for_iree_says_what_it_needs(tmp_path: Path) -> None:
    ran = run(CODE, cache=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "iree-base-runtime: not installed" in ran.stdout
    assert "vgpu.Device, which needs no IREE" in ran.stdout


def test_the_packages_are_those_of_the_project() -> None:
    """With the same versions where they are exact; and one that is left out is missed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = {re.split("[=<>]", one)[0]: one for one in project["dependencies"]}
    for one in NEEDED:
        name = re.split("[=<>]", one)[0]
        assert name in stated
        assert ("==" in one) == ("==" in stated[name])
        assert one == stated[name] or "==" not in one
    assert "iree-base-runtime" in stated


def test_the_help_imports_little() -> None:
    """It starts in a tenth of a second: no numpy, no tables of chips."""
    code = "import sys; from conv_compiler.vgpu_tool.cli import main; main([]); print(*sys.modules)"
    words = [sys.executable, "-c", code]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    loaded = ran.stdout.rpartition("\n\n")[2].split() + ran.stdout.split()
    for heavy in ("numpy", "conv_compiler.targets", "conv_compiler.vgpu", "msgspec", "rich"):
        assert heavy not in loaded
