"""Damaged modules, records and problems are refused in a line: no traceback, crash or hang.

A module's own checksums are looked at before IREE's loader is: of modules whose checksums had been
mended it ended the process for one in twenty-five.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from conv_compiler import ConvProblem
from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.artifacts.record import signed
from conv_compiler.binary.code_objects import code_objects
from conv_compiler.binary.module_file import ModuleFile
from conv_compiler.cli import main
from conv_compiler.errors import InvalidArtifact, UnsupportedProblem
from conv_compiler.frontends import parse_text
from conv_compiler.model.code_object import kernels
from conv_compiler.runtime.kernel import load
from conv_compiler.vgpu.decode import text_section
from tests.damage import KINDS, prepare, taken_apart, with_record

ROOT = Path(__file__).parents[2]
QUICK, WHOLE = 50, 2500
SIZES = '"n": 1, "k": 4, "c": 4, "image": [5], "filter": [3]'


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("artifacts")
    prepare(folder)
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "draws", [QUICK, pytest.param(WHOLE, marks=pytest.mark.slow)], ids=("some", "many")
)
def test_damage_is_refused_in_a_line(kind, draws, artifacts):
    command = [sys.executable, "-m", "tests.damage", kind, "25", str(draws), str(artifacts)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    *bad, last = done.stdout.splitlines() or [""]
    assert done.returncode == 0, f"draw {done.stderr.split()[-1]}: exit code {done.returncode}"
    assert not bad, bad[:3]
    assert json.loads(last)["refused"] >= draws / 2


@pytest.mark.parametrize(
    "more",
    [
        '"compute": 1',
        '"direction": {}',
        '"input_op": 1',
        '"layout": ["NHWGC"]',
        '"dtype": null',
        '"elementwise": true',
        '"dynamic_batch": 1',
        '"stride": [1.5]',
        '"label": {}',
        '"split_k": {"a": 1}',
        '"split_k": [[1]]',
        '"label": "\\ud800"',
        '"z": ' + "[" * 10**5 + "]" * 10**5,
    ],
)
def test_json_of_other_types_is_refused(more, capsys):
    with pytest.raises(UnsupportedProblem):
        parse_text(f"{{{SIZES}, {more}}}", "")
    assert main(["inspect", "--stage", "payload", f"{{{SIZES}, {more}}}"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("field", ["compute", "direction", "input_op", "layout", "dtype"])
@pytest.mark.parametrize("value", [1, {}, None, ["f16"], b"f16"])
def test_python_values_of_other_types_are_refused(field, value):
    with pytest.raises(UnsupportedProblem, match=f"^{field.replace('_', ' ')} .*: not a text"):
        ConvProblem(**{"n": 1, "k": 4, "c": 4, "image": (5,), "filter": (3,), field: value})


@pytest.mark.parametrize(
    "changes",
    [
        {"problem": 1},
        {"target": "gfx1"},
        {"target": {}},
        {"strategy": []},
        {"strategy": {"name": "cpu_lin", "tiling": {"z": 1}, "split_k": 1, "script": ""}},
        {"kernels": [{"name": 1, "role": "contraction"}]},
        {"seconds": "1"},
        {"rejected": None},
    ],
)
def test_a_signed_record_of_other_types_is_refused(changes, artifacts, tmp_path):
    data = (artifacts / "cpu.vmfb").read_bytes()
    values, before = taken_apart(data)
    text = json.dumps(signed(values | changes, before)).encode()
    (tmp_path / "x.vmfb").write_bytes(with_record(data, text))
    with pytest.raises(InvalidArtifact, match="record"):
        Artifact.load(tmp_path / "x.vmfb")


def test_an_altered_record_is_refused(artifacts, tmp_path):
    """Of the right types: what it says was never found."""
    data = (artifacts / "cpu.vmfb").read_bytes()
    text = json.dumps(taken_apart(data)[0] | {"rejected": ["another"]}).encode()
    (tmp_path / "x.vmfb").write_bytes(with_record(data, text))
    with pytest.raises(InvalidArtifact, match="altered"):
        Artifact.load(tmp_path / "x.vmfb")


def test_bytes_in_front_are_refused(artifacts, tmp_path):
    """Python's reader of archives looks behind them, IREE's does not."""
    path = tmp_path / "x.vmfb"
    path.write_bytes(b"\0" * 64 + (artifacts / "cpu.vmfb").read_bytes())
    for door in (ModuleFile.read, load):
        with pytest.raises(InvalidArtifact, match="in front"):
            door(path)


@pytest.mark.parametrize("at", [24, 32, 40, 58, 60, 62])
def test_headers_of_a_code_object_are_bounded(at, artifacts):
    (elf,) = code_objects((artifacts / "gfx942.vmfb").read_bytes())
    assert kernels(elf)
    for value in (b"\xff" * 8, b"\xff\xff" + b"\0" * 6):
        broken = elf[:at] + value[: 8 if at < 58 else 2] + elf[at + (8 if at < 58 else 2) :]
        with contextlib.suppress(InvalidArtifact):  # or not looked at
            kernels(broken)
    with pytest.raises(ValueError, match="outside the file"):
        text_section(elf[:40] + b"\xff" * 8 + elf[48:])
