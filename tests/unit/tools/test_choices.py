"""`tools/fit/choices.py`: it finds a planted value, and leaves the constant as it was."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from conv_compiler.errors import CandidateRejected, UnsupportedStrategy
from conv_compiler.frontends import Request
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.gpu import cost_constants
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target

FIT = Path(__file__).parents[3] / "tools" / "fit"
GFX942 = find_target("gfx942")
REQUESTS = [
    Request(problem=ConvProblem(n=n, k=k, c=64, image=(14, 14), filter=(3, 3)), label=f"{n} {k}")
    for n, k in ((4, 64), (32, 256), (128, 512))
]


@pytest.fixture(scope="module")
def tool():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FIT))
        spec = importlib.util.spec_from_file_location("choices", FIT / "choices.py")
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "choices", module)
        spec.loader.exec_module(module)
        yield module


@pytest.fixture
def slack(tool):
    return tool.find_constant("gpu.SLACK.serial_share")


def test_a_planted_value_is_found(tool, slack):
    """Kernels are named by the value that chose them; a stub takes the longer the further off."""

    def make(request, target):
        held = cost_constants.SLACK.serial_share
        return tool.Kernel(digest=f"{held}", strategy=f"at {held}", vmfb=Path())

    def judge(kernels):
        return [1e-6 * (1 + abs(float(one.digest) - 0.75)) for one in kernels]

    trial = tool.tried(slack, [0.0, 0.75, 1.5], REQUESTS, GFX942, make, judge)
    rows = {row["value"]: row for row in trial.rows()}
    assert min(rows, key=lambda value: rows[value]["mean"]) == 0.75
    assert rows[0.75]["mean"] == rows[0.75]["worst"] == 1
    assert rows[0.0]["mean"] == pytest.approx(1.75)
    assert [value for value, row in rows.items() if row["is_present"]] == [0.25]
    assert {value: row["changed"] for value, row in rows.items()} == {
        0.0: 3,
        0.25: 0,
        0.75: 3,
        1.5: 3,
    }
    assert len(trial.details()) == 12
    assert cost_constants.SLACK.serial_share == 0.25


def test_the_value_reaches_the_choice_and_no_further(tool, slack):
    """With the true choice; the stub takes longer where the kernel is not the planted value's."""

    def make(request, target):
        one = choose(request.problem, target)[0]
        return tool.Kernel(digest=one.text, strategy=one.text, vmfb=Path())

    before = [make(one, GFX942) for one in REQUESTS]
    with slack.held_at(40.0):
        planted = {make(one, GFX942).digest for one in REQUESTS}
    assert planted != {one.digest for one in before}

    def judge(kernels):
        return [1.0 if one.digest in planted else 2.0 for one in kernels]

    trial = tool.tried(slack, [40.0], REQUESTS, GFX942, make, judge)
    present, best = trial.rows()
    assert (present["is_present"], best["mean"]) == (True, 1)
    assert present["mean"] > 1
    assert best["changed"] > 0
    assert [make(one, GFX942) for one in REQUESTS] == before


def test_a_kernel_is_judged_once_and_a_refused_problem_left_out(tool, slack, capsys):
    judged = []

    def make(request, target):
        if request.label == "32 256":
            raise UnsupportedStrategy("tile 1: too small; use 2")
        return tool.Kernel(digest=request.label, strategy="same", vmfb=Path())

    def judge(kernels):
        judged.extend(one.digest for one in kernels)
        return [1.0] * len(kernels)

    rows = tool.tried(slack, [0.0, 1.0], REQUESTS, GFX942, make, judge).rows()
    assert judged == ["4 64", "128 512"]
    assert "left out: 32 256 f16: tile 1" in capsys.readouterr().err
    assert {(row["problems"], row["mean"], row["changed"]) for row in rows} == {(2, 1.0, 0)}


def test_a_rejected_candidate_gives_its_place_to_the_next(tool, monkeypatch, tmp_path):
    """And each text of a kernel has a cache of its own."""
    compiled = []

    def refuse(problem, target, strategy, split_k, cache):
        compiled.append((strategy, cache.folder))
        if len(compiled) == 1:
            raise CandidateRejected("it spills")
        return type("Artifact", (), {"strategy": strategy, "vmfb": tmp_path})

    monkeypatch.setattr(tool, "compile", refuse)
    found = tool.Maker(folder=tmp_path).kernel(REQUESTS[0], GFX942)
    first, second = choose(REQUESTS[0].problem, GFX942)[:2]
    assert [one for one, _ in compiled] == [first, second]
    assert found.strategy == second.text
    assert compiled[1][1] == tmp_path / found.digest != compiled[0][1]


def test_every_constant_is_found_by_its_name(tool):
    found = tool.constants()
    assert len({one.name for one in found}) == len(found)
    groups = [group for table in tool.TABLES.values() for group in table.GROUPS]
    own = [one.name for group in groups for one in fields(group) if one.name != "source"]
    assert len(found) == len(own)
    for one in found:
        assert tool.find_constant(one.name) == one
        assert tool.value_of(one, repr(one.value)) == one.value


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SPLITS.tried_parts", ""),
        ("REDUCTION.in_flight_sums", ""),
        ("IN_MEMORY.short_cycles", ""),
        ("SLACK.serial_shar", "did you mean"),
        ("serial_share", "use gpu.SLACK.serial_share"),
        ("short_cycles", "use cpu.IN_MEMORY.short_cycles or cpu.BY_WORKGROUPS.short_cycles"),
    ],
)
def test_names_of_constants(tool, name, message):
    if not message:
        assert tool.find_constant(name).name.endswith(name)
        return
    with pytest.raises(ValueError, match=message):
        tool.find_constant(name)


def test_a_value_is_of_the_constants_type(tool, slack):
    weights = tool.find_constant("REDUCTION.adjacent_weights")
    assert tool.value_of(slack, "1") == 1.0
    assert tool.value_of(weights, "(8, 4)") == (8, 4)
    for constant, text in ((slack, "True"), (slack, "much"), (weights, "4")):
        with pytest.raises(ValueError, match=f"value {text}: is none of"):
            tool.value_of(constant, text)


def test_the_command_prints_a_table_or_json(tool, monkeypatch, capsys, tmp_path):
    class Made:
        def __init__(self, folder):
            pass

        def kernel(self, request, target):
            return tool.Kernel(digest=request.problem.name, strategy="one", vmfb=Path())

    monkeypatch.setattr(tool, "Maker", Made)
    monkeypatch.setattr(tool, "modelled", lambda kernels: [1e-6] * len(kernels))
    words = ["choices.py", "SLACK.serial_share", "0.5", "--sample", "40"]
    monkeypatch.setattr(sys, "argv", words)
    assert tool.main() == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0] == "gpu.SLACK.serial_share on gfx942, modelled: time over the best seen"
    assert [line.split()[0] for line in table[2:]] == ["*", "0.5"]
    monkeypatch.setattr(sys, "argv", [*words, "--json", "--output", str(tmp_path / "found.json")])
    assert tool.main() == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((tmp_path / "found.json").read_text())
    assert [row["value"] for row in found["values"]] == [0.25, 0.5]
