"""Every refusal of the command line: one line with exit code 2, and nothing half-written."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from conv_compiler.cli import main
from tests.problems import SMALL as PROBLEM

pytestmark = pytest.mark.usefixtures("empty_cache")


def refused(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line a refused command prints."""
    capfd.readouterr()
    assert main(words) == 2
    out, err = capfd.readouterr()
    *before, last = err.strip().splitlines()
    assert all(line.startswith("[") for line in before)  # progress of several jobs
    assert last.startswith("conv-compiler: error: ")
    assert not out.startswith("{")
    return last.removeprefix("conv-compiler: error: ")


# command line -> how its refusal starts
REFUSED = {
    "compile": "problem: none given",
    "--": "the following arguments are required: COMMAND",
    "verify --json --csv": "--csv: not allowed with argument --json",
    "inspect -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --stage isa --csv": "--csv: not for stages",
    "wat": "COMMAND wat: not in the table; known: compile, run, verify, ",
    "compile --wat": "--wat: not known",
    "compile none.txt": "file none.txt: No such file",
    "compile MIOpenDriver convfp16 -n 1 -c 65 -k 64 -g 2 -F 4": "--in_channels 65: not divisible",
    "compile convfp16 -n 1 -c 64 -k 64 -y 40 -F 4": "filter (40, 3): spans",
    "compile -n 1 -k 1 -c 1 --image 2x2 --filter 3x3": "filter (3, 3): spans",
    "compile -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --target gfx9": "target gfx9: not in the",
    "compile -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --target ,": "target: none given",
    "compile -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --dtype f4": "dtype f4: not a data type",
    "compile -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --strategy x": "strategy x: not in the",
    "compile -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --split-k 5": "split_k 5: more parts",
    "compile -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --split-k 9999": "split_k 9999: not from",
    "compile -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 convfp16 -F 4": "-n: contradicts the problem",
    "compile -n 8 -k 8 -c 8 --image 8x8 --filter 1x1 --dtype f32 --target gfx1100 "
    "--strategy implicit_gemm": "strategy implicit_gemm: has no tile for f32 on gfx1100",
    "verify -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --device wat": "device wat: not in the table",
    "verify -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --data wat": "--data wat: not in the table",
    "inspect -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --split-k 1,2": "problem: 2 given",
    "inspect none.vmfb": "artifact none.vmfb: no such file",
    "list wat": "what wat: not in the table; known: targets, layouts, ",
    "list layouts --check": "--check: not for layouts",
    "tune": "problem: none given",
    "tune --jobs 0": "--jobs: 0: not a size",
    "tune --cluster tcp://a:1 --local 2": "--local: not allowed with argument --cluster",
    "tune -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --target gfx1250": "device hip: ",
    "tuning wat": "action wat: not in the table; known: list, export, import, ",
    "tuning list x": "file x: not for list",
    "tuning import none.jsonl": "file none.jsonl: No such file",
    "doctor --device cpu": "device cpu: no AMD card",
    "doctor --device vgpu --target sm_80": "target sm_80: ",
    "doctor --device vgpu -o none/x.json": "folder none: No such file",
    "run x.vmfb": "the following arguments are required: -o",
    "inspect x.vmfb -n 4": "-n: x.vmfb is compiled already",
    "inspect x.vmfb --target gfx942": "--target: x.vmfb is compiled already",
    "inspect x.vmfb --tile 4x4": "--tile: x.vmfb is compiled already",
    "inspect x.vmfb y.vmfb": "x.vmfb: not the only problem given; inspect takes one",
    "run x.vmfb --input a --d-output b -o c --split-k 2": "--split-k: x.vmfb is compiled already",
    "compile -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --split-k=": "--split-k : not a split",
    "verify -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --seed -1": "seed -1: below 0",
    "compile -n 1 -k 1 -c 1 --image 2x2 --filter 1x1 --stride 99999999999": "stride 99999999999",
}


@pytest.mark.parametrize("line", REFUSED)
def test_refused_in_one_line(line: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert refused(capfd, *line.split()).startswith(REFUSED[line])


def test_several_problems_need_a_folder(tmp_path: Path, capfd) -> None:
    output = tmp_path / "x.vmfb"
    words = ["compile", *PROBLEM, "--split-k", "1,2", "-o", str(output)]
    assert refused(capfd, *words).startswith(f"-o {output}: one file for 2 problems")
    assert not output.exists()
    assert main([*words[:-1], str(tmp_path / "out")]) == 0
    assert len(list((tmp_path / "out").glob("*.vmfb"))) == 2


def test_unwritable_output(tmp_path: Path, vmfb: Path, arrays: list[str], capfd) -> None:
    output = tmp_path / "none" / "x"
    assert "No such file" in refused(capfd, "compile", *PROBLEM, "-o", f"{output}.vmfb")
    assert "No such file" in refused(capfd, "run", str(vmfb), *arrays, "-o", f"{output}.npy")
    assert not list(tmp_path.iterdir())


def test_run_refuses_wrong_arrays(tmp_path: Path, vmfb: Path, arrays: list[str], capfd) -> None:
    output = tmp_path / "d_weight.npy"
    command = ["run", str(vmfb), "-o", str(output)]
    swapped = [arrays[0], arrays[3], arrays[2], arrays[1]]
    assert refused(capfd, *command, *swapped).startswith("input (2, 8, 8, 1, 8): not the kernel's")
    np.save(tmp_path / "f16.npy", np.load(arrays[1]).astype(np.float16))
    typed = [arrays[0], str(tmp_path / "f16.npy"), *arrays[2:]]
    assert refused(capfd, *command, *typed).startswith("input float16: not the kernel's type")
    (tmp_path / "text.npy").write_text("1 2 3")
    text = [arrays[0], str(tmp_path / "text.npy"), *arrays[2:]]
    assert "not a .npy file" in refused(capfd, *command, *text)
    none = [arrays[0], str(tmp_path / "none.npy"), *arrays[2:]]
    assert "No such file" in refused(capfd, *command, *none)
    assert refused(capfd, *command, *arrays[:2]).startswith("d_output: not given; this kernel ta")
    weight = ["--weight", arrays[1]]
    assert refused(capfd, *command, *arrays, *weight).startswith(f"weight {arrays[1]}: not taken")
    assert not output.exists()


def test_raw_bytes_are_taken_for_a_raw_type_alone(tmp_path: Path, capfd) -> None:
    problem = shlex.split("-n 1 -k 4 -c 4 --image 4x4 --filter 1x1 --dtype f16")
    words = ["run", *problem, "-o", str(tmp_path / "d_weight.npy")]
    for flag in ("input", "d-output"):
        np.save(tmp_path / f"{flag}.npy", np.zeros((1, 4, 4, 1, 4), ml_dtypes.bfloat16))
        words += [f"--{flag}", str(tmp_path / f"{flag}.npy")]
    assert refused(capfd, *words).startswith("input |V2: not the kernel's type")
    (tmp_path / "input.npy").write_bytes(b"PK\x03\x04 and no archive")
    assert "not a .npy file" in refused(capfd, *words)


def test_run_refuses_wrong_artifacts(tmp_path: Path, vmfb: Path, arrays: list[str], capfd) -> None:
    output = ["-o", str(tmp_path / "d_weight.npy")]
    corrupt = tmp_path / "corrupt.vmfb"
    corrupt.write_bytes(vmfb.read_bytes()[:-100])
    assert "corrupt" in refused(capfd, "run", str(corrupt), *arrays, *output)
    corrupt.write_text("not a module")
    assert "corrupt" in refused(capfd, "run", str(corrupt), *arrays, *output)
    assert "no such file" in refused(capfd, "run", str(tmp_path / "no.vmfb"), *arrays, *output)
    other = tmp_path / "gfx942.vmfb"
    assert main(["compile", *PROBLEM, "--target", "gfx942", "-o", str(other)]) == 0
    message = refused(capfd, "run", str(other), *arrays, *output, "--device", "cpu")
    assert message.startswith("artifact gfx942.vmfb: built for gfx942, which device cpu is not")
    message = refused(capfd, "run", str(other), *arrays, *output, "--device", "hip://99")
    assert message.startswith("device hip://99: cannot be opened")
    message = refused(capfd, "run", str(vmfb), *arrays, *output, "--device", "hip")
    assert "which device hip is not" in message
    assert not (tmp_path / "d_weight.npy").exists()


def test_a_refused_job_does_not_stop_the_others(tmp_path: Path, capfd) -> None:
    path = tmp_path / "problems.json"
    whole = {"n": 2, "k": 4, "c": 4, "image": [4], "filter": [1], "dtype": "f32"}
    path.write_text(json.dumps([{**whole, "split_k": [9, 1]}]))
    message = refused(capfd, "verify", str(path))
    assert message.startswith("1 of 2 refused: bwd_weight_n2g1k4c4_i4_f1")
    assert "split_k 9: more parts" in message
    assert main(["verify", str(path), "--json"]) == 2
    rows = json.loads(capfd.readouterr().out)
    assert "more parts" in rows[0]["error"]
    assert rows[1]["passed"] is True
    assert refused(capfd, "compile", str(path)).startswith("1 of 2 refused")
