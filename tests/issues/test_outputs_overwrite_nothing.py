"""`compile layer.json -o layer.vmfb` wrote its record over the user's layer.json, and `run -o`
replaced whatever was there, its own inputs too."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.cli import main
from conv_compiler.errors import InvalidOutput
from conv_compiler.runtime.kernel import load

FIELDS = {"n": 2, "k": 4, "c": 4, "image": [6], "filter": [3], "dtype": "f32"}
SHAPES = {"input": (2, 6, 1, 4), "d-output": (2, 4, 1, 4)}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory):
    """A cache for the module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONV_COMPILER_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A problem in layer.json and its operands, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, shape in SHAPES.items():
        np.save(f"{name}.npy", np.ones(shape, np.float32))
    Path("layer.json").write_text(json.dumps(FIELDS))
    return tmp_path


def refused(capfd: pytest.CaptureFixture[str], line: str) -> str:
    """The one line of a refused command, which leaves every file as it was."""

    def files() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}

    before = files()
    capfd.readouterr()
    assert main(line.split()) == 2
    assert files() == before
    (message,) = capfd.readouterr().err.strip().splitlines()
    return message.removeprefix("conv-compiler: error: ")


RUN = "run layer.json --input input.npy --d-output d-output.npy -o"


def test_the_record_lies_in_the_vmfb(layer: Path) -> None:
    before = Path("layer.json").read_text()
    assert main(["compile", "layer.json", "-o", "layer.vmfb"]) == 0
    assert Path("layer.json").read_text() == before
    assert Artifact.load("layer.vmfb").problem.to_json()["image"] == FIELDS["image"]
    assert sorted(os.listdir()) == ["d-output.npy", "input.npy", "layer.json", "layer.vmfb"]
    first = Path("layer.vmfb").read_bytes()
    assert main(["compile", "layer.json", "-o", "layer.vmfb"]) == 0  # one of ours may be replaced
    assert Path("layer.vmfb").read_bytes() == first
    image, gradient = (np.load(f"{name}.npy") for name in SHAPES)
    np.testing.assert_array_equal(load("layer.vmfb")(image, gradient), np.full((1, 4, 3, 4), 8))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("compile in.vmfb.d/../layer.json -o layer.json", "-o layer.json: not a .vmfb"),
        (f"{RUN} input.npy", "file input.npy: is read by this command"),
        (f"{RUN} ./link.npy", "file link.npy: is read by this command"),
        (f"{RUN} hard.npy", "file hard.npy: is read by this command"),
        (f"{RUN} layer.json", "file layer.json: is read by this command"),
        (f"{RUN} notes.txt", "file notes.txt: there already, and not a .npy"),
        (f"{RUN} in.vmfb.d", "file in.vmfb.d: is a folder"),
        (f"{RUN} none/x.npy", "folder none: No such file or directory; make it"),
        (f"{RUN} notes.txt/x.npy", "folder notes.txt: not a folder"),
        ("compile layer.json -o notes.vmfb", "file notes.vmfb: there already, and not a .vmfb of"),
        ("compile layer.json -o plain.vmfb", "file plain.vmfb: there already, and not a .vmfb of"),
        ("compile layer.json -o none/x.vmfb", "folder none: No such file or directory; make it"),
        ("compile layer.json -o notes.txt/x", "folder notes.txt/x: cannot be made"),
    ],
)
def test_nothing_else_is_written_over(layer: Path, line: str, message: str, capfd) -> None:
    Path("in.vmfb.d").mkdir()
    Path("notes.txt").write_text("mine")
    Path("notes.vmfb").write_text("mine")
    Path("link.npy").symlink_to("input.npy")
    Path("hard.npy").hardlink_to("input.npy")
    assert main(["compile", "layer.json", "--json"]) == 0  # a module without a record is not ours
    shutil.copyfile(json.loads(capfd.readouterr().out)[0]["vmfb"], "plain.vmfb")
    assert refused(capfd, line).startswith(message)


def test_a_file_of_problems_called_like_an_artifact(layer: Path, capfd) -> None:
    Path("layer.json").rename("layer.mlir")
    assert refused(capfd, "compile layer.mlir -o layer.mlir").startswith("-o layer.mlir: not a")


def test_a_script_called_like_the_output(layer: Path, capfd) -> None:
    Path("mine.vmfb").write_text("module {}")
    message = refused(capfd, "compile layer.json --schedule mine.vmfb -o mine.vmfb")
    assert message.startswith("file mine.vmfb: is read by this command")


def test_results_replace_results(layer: Path) -> None:
    assert main(f"{RUN} result.npy".split()) == 0
    first = Path("result.npy").read_bytes()
    Path("link.npy").symlink_to("result.npy")
    assert main(f"{RUN} link.npy".split()) == 0
    assert Path("link.npy").is_symlink()
    assert Path("result.npy").read_bytes() == first


def test_save_refuses_as_the_command_does(layer: Path) -> None:
    assert main(["compile", "layer.json", "-o", "layer.vmfb"]) == 0
    artifact = Artifact.load("layer.vmfb")
    for name in ("layer.json", "none/x.vmfb", "x" * 300):
        with pytest.raises(InvalidOutput, match="; "):
            artifact.save(name)
    assert json.loads(Path("layer.json").read_text()) == FIELDS


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="device files of Linux")
def test_a_device_is_no_file(layer: Path, capfd) -> None:
    assert main(["compile", "layer.json", "-o", "layer.vmfb"]) == 0
    with pytest.raises(InvalidOutput, match="/dev/null: there already"):
        Artifact.load("layer.vmfb").save("/dev/null")
