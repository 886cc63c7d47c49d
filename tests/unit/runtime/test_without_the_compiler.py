"""Where the compiler is not installed, compiled modules are run, judged and looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conv_compiler import ConvProblem, compile
from conv_compiler.vgpu import library_path

ROOT = Path(__file__).parents[3]
PROBLEM = ConvProblem(n=1, k=4, c=4, image=(5, 5), filter=(3, 3))
RUN = """
import sys
import numpy as np
import conv_compiler as cc
image = np.ones((1, 5, 5, 1, 4), np.float16)
d_output = np.ones((1, 3, 3, 1, 4), np.float16)
assert (cc.run(sys.argv[1], image, d_output) == 9).all()
from conv_compiler.verification.verify import verify_artifact
assert verify_artifact(cc.Artifact.load(sys.argv[1])).passed
"""
COMMAND = "import sys; from conv_compiler.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of this environment without the compiler's."""
    folder = tmp_path_factory.mktemp("packages")
    (folder / "iree").mkdir()
    for place in map(Path, [*sys.path, str(ROOT)]):
        for part in ("", "iree"):
            for one in (place / part).glob("*") if place.is_dir() else ():
                link = folder / part / one.name
                if one.name not in ("compiler", "iree", "tests") and not link.exists():
                    link.symlink_to(one)
    _link_package(folder / "conv_compiler")
    return folder


def _link_package(link: Path) -> None:
    """The package of the tree, with the library of the virtual GPU wherever that is installed."""
    if link.is_symlink():
        link.unlink()
    gpu = link / "vgpu"
    gpu.mkdir(parents=True)
    for source, folder in ((ROOT / "conv_compiler", link), (ROOT / "conv_compiler/vgpu", gpu)):
        for one in source.iterdir():
            if not (folder / one.name).exists():
                (folder / one.name).symlink_to(one)
    if not (gpu / "lib").exists():
        (gpu / "lib").symlink_to(library_path().parent)


@pytest.fixture
def without(packages: Path):
    """Run code with these packages only."""

    def run(*words: str, code: str = COMMAND) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-S", "-c", code, *words],
            env={**os.environ, "PYTHONPATH": str(packages)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=packages,
        )

    return run


@pytest.fixture(scope="module", params=["cpu", "gfx942"])
def vmfb(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("out") / "x.vmfb"
    return compile(PROBLEM, request.param).save(path).vmfb


def test_a_module_is_called_and_verified(vmfb, without):
    done = without(str(vmfb), code=RUN)
    assert done.returncode == 0, done.stderr


def test_a_module_is_run_and_inspected_by_the_commands(vmfb, without, tmp_path):
    words = []
    for flag, shape in (("--input", PROBLEM.input_shape), ("--d-output", PROBLEM.output_shape)):
        np.save(tmp_path / f"{flag}.npy", np.ones(shape, np.float16))
        words += [flag, str(tmp_path / f"{flag}.npy")]
    result = tmp_path / "d_weight.npy"
    done = without("run", str(vmfb), *words, "-o", str(result))
    assert done.returncode == 0, done.stderr
    assert (np.load(result) == 9).all()
    done = without("inspect", str(vmfb))
    assert done.returncode == 0, done.stderr


def test_compiling_says_what_is_missing(without, tmp_path, monkeypatch):
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path))
    words = ["-n", "1", "-k", "4", "-c", "4", "--image", "5x5", "--filter", "3x3"]
    done = without("compile", *words, "--target", "cpu", "-q")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("conv-compiler: error: iree-base-compiler")
