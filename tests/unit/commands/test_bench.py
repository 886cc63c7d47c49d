"""`conv-compiler bench`: what is refused, what is printed, and what is drawn, with peers that are
none."""

from __future__ import annotations

import json
from types import MappingProxyType
from xml.etree import ElementTree

import numpy as np
import pytest

from conv_compiler.benchmark import peers
from conv_compiler.benchmark.peers import Peer
from conv_compiler.benchmark.sides import CallSide, PeerRefused
from conv_compiler.cli import main
from conv_compiler.verification.reference import exact_sums, finished

WORDS = ["-n", "2", "-k", "4", "-c", "4", "--image", "6x6", "--filter", "3x3", "--rounds", "1"]


def _side(case, off=0):
    result = finished(case.problem, exact_sums(case.problem, *case.operands))
    result = result.astype(case.problem.result_type.to_numpy()) + off
    result = result.astype(case.problem.result_type.to_numpy())
    return CallSide(detail="its kernel", call=lambda: result, to_numpy=np.asarray)


def _refused(case):
    raise PeerRefused("lame: has no kernel")


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    """The table with a peer that is right, one that is wrong, one that refuses and one away."""
    rows = {
        "good": (lambda device: "", _side),
        "bad": (lambda device: "", lambda case: _side(case, 1)),
        "lame": (lambda device: "", _refused),
        "away": (lambda device: "not installed", _side),
    }
    table = {
        name: Peer(name=name, what="", absent=absent, side=side)
        for name, (absent, side) in rows.items()
    }
    monkeypatch.setattr(peers, "PEERS", MappingProxyType(table))


def test_the_table(capsys):
    assert main(["bench", *WORDS, "-v"]) == 0
    out, err = capsys.readouterr()
    assert "note: left out: away: not installed" in err
    lines = out.splitlines()
    assert "cores" in lines[0]
    assert "load" in lines[0]
    cells = {line.split()[1]: line for line in lines[2:] if line.startswith("bwd_weight")}
    assert list(cells) == ["ours", "good", "bad", "lame"]
    assert "exact" in cells["ours"]
    assert "its kernel" in cells["good"]
    assert cells["bad"].split()[2:9] == ["-"] * 7
    assert "WRONG: " in cells["bad"]
    assert "REFUSED: lame: has no kernel" in cells["lame"]
    assert lines[-1].startswith("good / ours: 1 problem, geometric mean ")
    assert not [line for line in lines if line.startswith("bad / ours")]


def test_json(capsys):
    assert main(["bench", *WORDS, "--against", "good,bad", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"machine", "rows", "means"}
    assert {"cores", "processor", "load_before", "load_after", "peaks", "cards", "rounds"} <= set(
        found["machine"]
    )
    ours, good, bad = found["rows"]
    assert ours["detail"]
    assert ours["least_seconds"] <= ours["seconds"] <= ours["most_seconds"]
    assert good["ratio"] == pytest.approx(good["seconds"] / ours["seconds"])
    assert (bad["seconds"], bad["passed"]) == (None, False)
    assert [row["peer"] for row in found["means"]] == ["good"]


def test_a_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "bars.svg"
    assert main(["bench", *WORDS, "--against", "good,bad", "--plot", str(path)]) == 0
    assert ElementTree.parse(path).getroot().tag.endswith("svg")
    path.write_text("something else")
    capsys.readouterr()
    assert main(["bench", *WORDS, "--against", "good", "--plot", str(path)]) == 2
    assert "there already, and not an .svg" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--against", "away"], "peer away: not installed"),
        (["--against", "goood"], "did you mean good"),
        (["--target", "gfx942", "--device", "vgpu"], "inspect --model"),
        (["--target", "gfx942"], "inspect --model"),
        (["--plot", "bars.png"], "plot bars.png: not a .svg"),
        (["--plot", "/no/such/folder/bars.svg"], "folder /no/such/folder: No such file"),
        (["--only", "layer9"], "only layer9: leaves no problem"),
        (["--threads", "100000"], "threads 100000: not here"),
        (["--clock", "cpu", "--threads", "2"], "threads 2"),
        (["--through", "torch", "--against", "good"], "beside torch alone"),
        (["--through", "torch", "--strategy", "cpu_lin"], "name no strategy"),
    ],
)
def test_refusals(words, error, capsys):
    assert main(["bench", *WORDS, *words]) == 2
    out, err = capsys.readouterr()
    assert error in err
    assert out == ""


def test_a_list_of_layers(capsys):
    assert main(["bench", "--layers", "resnet51"]) == 2
    assert "did you mean resnet50" in capsys.readouterr().err
    words = ["--layers", "resnet50", "--batch", "1", "--only", "layer4.1.conv1,nothing"]
    assert main(["bench", *words, "--against", "lame", "--rounds", "1"]) == 0
    out = capsys.readouterr().out
    assert "layer4.1.conv1" in out
    assert "REFUSED" in out
    assert "conv2" not in out


def test_ours_wrong_is_an_error_after_the_table(capsys, monkeypatch):
    from conv_compiler.benchmark import bench

    monkeypatch.setattr(bench, "our_side", lambda case, artifact: _side(case, 1))
    assert main(["bench", *WORDS, "--against", "good"]) == 2
    out, err = capsys.readouterr()
    assert "WRONG" in out
    assert "1 of 1 wrong" in err
