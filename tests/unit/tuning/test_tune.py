"""`conv-compiler tune` and `tuning`: what is tried, kept, found by compile, exchanged, refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import conv_compiler.tuning.tune as tuning
from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.cli import main
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import DeviceUnavailable, OutOfRegisters, TuningStoreRefused
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage.tuning_store import TuningStore
from conv_compiler.strategies.select import choose, is_candidate
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import TARGETS, find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.tuning.exchange import entry_of, line_of
from conv_compiler.tuning.sweep import admissible
from conv_compiler.tuning.timer import MODEL, timer_of
from conv_compiler.tuning.tune import fastest

WORDS = ("-n", "2", "-k", "8", "-c", "8", "--image", "5x6", "--filter", "3x2", "--layout", "nhwc")
PROBLEM = ConvProblem(n=2, k=8, c=8, image=(5, 6), filter=(3, 2), layout="nhwc")
LINE = "MIOpenDriver convfp16 -n 2 -c 8 -H 5 -W 6 -k 8 -y 3 -x 2 -I NHWC -f NHWC -O NHWC -F 4"
FEW = 3
ONE = ("--jobs", "1", "-q")


@pytest.fixture(scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONV_COMPILER_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def store(_cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TuningStore:
    """An empty store; what is compiled stays from test to test."""
    monkeypatch.setenv("CONV_COMPILER_TUNING", str(tmp_path / "t.sqlite"))
    return TuningStore.default()


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three candidates a problem, which are enough to choose among."""
    whole = tuning.plan
    monkeypatch.setattr(tuning, "plan", lambda task: whole(task)[:FEW])


def rows_of(capfd, *words: str, code: int = 0) -> list[dict]:
    capfd.readouterr()
    assert main([*words, "--json"]) == code
    return json.loads(capfd.readouterr().out)


def prefer(store: TuningStore, at: int) -> Strategy:
    """Make the store's one entry name another candidate."""
    (entry,) = store.entries()
    problem, target = ConvProblem.from_json(entry.problem), find_target(entry.target)
    other = choose(problem, target)[at]
    store.put([replace(entry, strategy=other.to_json(), text=other.text)])
    return other


def test_a_modelled_choice_is_kept_and_compiled(store: TuningStore, capfd) -> None:
    words = [*WORDS, "--target", "gfx942"]
    (row,) = rows_of(capfd, "tune", *words, *ONE)
    assert (row["time"], row["verdict"], row["device"]) == ("modelled", "tuned", "model")
    assert "seconds" not in row
    assert row["gain"] >= 1
    assert row["tried"] == FEW
    artifact = compile(PROBLEM, "gfx942")
    assert artifact.strategy.text == row["strategy"]
    assert artifact.cached
    assert artifact.tuned.startswith(f"fastest of {row['tried']}, ")
    assert artifact.tuned.endswith("us modelled")
    other = prefer(store, -1)
    assert compile(PROBLEM, "gfx942").strategy == other
    assert compile(PROBLEM, "gfx942", tuned=False).strategy != other
    # What is fixed is no question for the store.
    assert compile(PROBLEM, "gfx942", split_k=1).tuned == ""
    assert compile(PROBLEM, "gfx942", other.name).tuned == ""


def test_the_same_store_gives_the_same_bytes(store: TuningStore, capfd, tmp_path: Path) -> None:
    rows_of(capfd, "tune", *WORDS, "--target", "gfx942", *ONE)
    other = prefer(store, -1)
    files = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.vmfb"
        assert main(["compile", *WORDS, "--target", "gfx942", "-o", str(path)]) == 0
        files.append(path.read_bytes())
    assert files[0] == files[1]
    assert Artifact.load(path).strategy == other


def test_commands_say_where_a_choice_is_from(store: TuningStore, capfd) -> None:
    words = [*WORDS, "--target", "gfx942"]
    rows_of(capfd, "tune", *words, *ONE)
    other = prefer(store, -1)
    (row,) = rows_of(capfd, "compile", *words)
    assert row["tuned"].startswith("fastest of ")
    assert main(["compile", *words, "-v"]) == 0
    assert "us modelled" in capfd.readouterr().out
    assert main(["inspect", *words]) == 0
    out = capfd.readouterr().out
    assert f"strategy  {other.text}\ntuned     fastest of " in out
    for command in ("compile", "inspect", "verify"):
        found = rows_of(capfd, command, *words, "--untuned")
        (row,) = found if isinstance(found, list) else [found]
        assert row["tuned"] is None
        assert row["strategy"] != json.loads(json.dumps(other.to_json()))
    (row,) = rows_of(capfd, "verify", *words)
    assert row["tuned"]
    assert row["passed"]


def test_what_is_in_the_store_is_skipped(store: TuningStore, capfd, monkeypatch) -> None:
    words = ["tune", *WORDS, "--target", "gfx942,cpu", *ONE]
    assert {row["verdict"] for row in rows_of(capfd, *words)} == {"tuned"}
    asked = []
    whole = tuning.build
    monkeypatch.setattr(tuning, "build", lambda task: asked.append(task.target) or whole(task))
    assert {row["verdict"] for row in rows_of(capfd, *words)} == {"kept"}
    assert not asked
    assert {row["verdict"] for row in rows_of(capfd, *words, "--again")} == {"tuned"}
    assert {*asked} == {"cpu", "gfx942"}
    # A modelled entry does not do where a clock is.
    for entry in store.entries():
        store.put([replace(entry, measured=False)])
    found = {row["target"]: row["verdict"] for row in rows_of(capfd, *words)}
    assert found == {"gfx942": "kept", "cpu": "tuned"}


def test_measured_on_this_machine(store: TuningStore, capfd) -> None:
    (row,) = rows_of(capfd, "tune", *WORDS, *ONE, "--split-k", "1,2")
    assert (row["time"], row["target"]) == ("measured", "cpu")
    assert row["seconds"] > 0
    assert "cores" in row["device"]
    (entry,) = store.entries()
    assert entry.measured
    assert compile(PROBLEM).strategy.to_json() == Strategy.from_json(entry.strategy).to_json()


def test_a_problem_is_tuned_once_with_all_its_splits(store: TuningStore, capfd, tmp_path) -> None:
    path = tmp_path / "f.txt"
    path.write_text(f"{LINE}  # one\nnonsense\n{LINE}\n")
    (row,) = rows_of(capfd, "tune", str(path), "--target", "gfx942", *ONE, code=1)
    assert row["name"] == "one"
    capfd.readouterr()
    assert main(["tune", str(path), "--target", "gfx942", *ONE]) == 1
    assert f"{path}:2: " in capfd.readouterr().err


def test_a_margin_keeps_the_compilers_own_choice() -> None:
    assert fastest({0: 1.0, 1: 0.99}, 0.02) == 0
    assert fastest({0: 1.0, 1: 0.97, 2: 0.98}, 0.02) == 1
    assert fastest({0: 1.0, 1: 0.99}, 0.0) == 1
    assert fastest({0: 1.0, 1: 1.0}, 0.0) == 0
    assert fastest({1: 3.0, 2: 2.0}, 0.02) == 2


def test_what_breaks_a_promise_is_left_out(store: TuningStore, capfd, monkeypatch) -> None:
    first, whole = choose(PROBLEM, find_target("gfx942"))[0].to_json(), tuning.build

    def some(task):
        if task.strategy == first:
            raise OutOfRegisters("kernel main: 3 spills; use another tile")
        return whole(task)

    monkeypatch.setattr(tuning, "build", some)
    words = ["tune", *WORDS, "--target", "gfx942", *ONE]
    (row,) = rows_of(capfd, *words)
    assert (row["tried"], row["gain"]) == (FEW - 1, None)
    assert compile(PROBLEM, "gfx942").strategy.to_json() != first
    store.clear()

    def none(task):
        raise OutOfRegisters("kernel main: 3 spills; use another tile")

    monkeypatch.setattr(tuning, "build", none)
    assert main(words) == 2
    assert "kernel main: 3 spills" in capfd.readouterr().err
    assert store.entries() == []


def test_what_has_neither_clock_nor_model_is_refused(store: TuningStore, capfd) -> None:
    assert timer_of(find_target("gfx942"), "vgpu") == MODEL
    with pytest.raises(DeviceUnavailable, match="gfx1250 has no modelled times; tune it on a ma"):
        timer_of(find_target("gfx1250"), None)
    other = next(row for row in TARGETS.values() if row.processor and row.processor.cores > 3)
    with pytest.raises(DeviceUnavailable, match="cores, and this machine "):
        timer_of(other, None)
    assert main(["tune", *WORDS, "--target", "gfx1250,gfx942", *ONE]) == 2
    out, err = capfd.readouterr()
    assert "1 of 2 refused" in err
    assert "tuned" in out


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "cpu", "sm_80"])
@pytest.mark.parametrize("direction", ["bwd_weight", "bwd_data"])
def test_what_is_tried_is_a_candidate(target: str, direction: str) -> None:
    problem = replace(PROBLEM, direction=direction, stride=(2, 1), k=32, c=24, n=5)
    row = find_target(target)
    resolved = resolve(problem, row)
    found = admissible(problem, row, None, ("auto", 1, 3))
    assert all(is_candidate(resolved, one) for one in found)
    assert not is_candidate(resolved, replace(found[0], script="module {}"))
    assert not is_candidate(resolved, replace(found[0], name="wat"))
    assert not is_candidate(resolved, found[0].with_split_k(5000))


def test_a_choice_that_is_not_tried_is_refused(store: TuningStore, capfd) -> None:
    rows_of(capfd, "tune", *WORDS, "--target", "gfx942", *ONE)
    (entry,) = store.entries()
    wrong = entry.strategy | {"split_k": 4000}
    store.put([replace(entry, strategy=wrong)])
    with pytest.raises(TuningStoreRefused, match="not a strategy that is tried for it"):
        compile(PROBLEM, "gfx942")
    assert compile(PROBLEM, "gfx942", tuned=False)
    store.put([replace(entry, strategy={"name": "x"})])
    assert main(["compile", *WORDS, "--target", "gfx942"]) == 2
    assert capfd.readouterr().err.startswith("conv-compiler: error: tuning store ")


def test_a_broken_store_is_one_line(store: TuningStore, capfd) -> None:
    store.path.write_text("no store " * 99)
    for words in (["compile", *WORDS], ["tune", *WORDS], ["tuning"], ["tuning", "clear"]):
        capfd.readouterr()
        assert main(words) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"conv-compiler: error: tuning store {store.path}: file is not a ")
    assert main(["compile", *WORDS, "--untuned"]) == 0


def test_out_and_in_again(store: TuningStore, capfd, tmp_path: Path) -> None:
    rows_of(capfd, "tune", *WORDS, "--target", "gfx942,cpu", *ONE)
    entries, path = store.entries(), tmp_path / "x.jsonl"
    assert main(["tuning", "export", str(path)]) == 0
    assert main(["tuning", "export", str(path)]) == 0  # an export may be replaced
    assert [entry_of(line) for line in path.read_text().splitlines()] == entries
    assert main(["tuning", "export"]) == 0
    assert capfd.readouterr().out == path.read_text()
    assert rows_of(capfd, "tuning", "clear") == {"removed": 2}
    found = rows_of(capfd, "tuning", "import", str(path))
    assert found == {"imported": 2, "stale": 0, "refused": 0}
    assert store.entries() == entries
    assert {row["stale"] for row in rows_of(capfd, "tuning")} == {False}
    assert main(["tuning", "list"]) == 0
    assert "2 entries, 0 of them stale" in capfd.readouterr().out
    mine = tmp_path / "mine.txt"
    mine.write_text("my own")
    assert main(["tuning", "export", str(mine)]) == 2
    assert mine.read_text() == "my own"


def test_bad_lines_of_an_import(store: TuningStore, capfd, tmp_path: Path) -> None:
    rows_of(capfd, "tune", *WORDS, "--target", "gfx942", *ONE)
    (entry,) = store.entries()
    store.clear()
    split = entry.strategy | {"split_k": 999}
    bad = {
        "{": "entry: ",
        '{"key": 1}': "entry ",
        line_of(replace(entry, key="x")): "entry: no key",
        line_of(replace(entry, seconds=-1.0)): "entry: no key or no time",
        line_of(replace(entry, key="0" * 64)): f"entry of {PROBLEM.name}: its key is another's",
        line_of(replace(entry, strategy=split)): f"entry of {PROBLEM.name}: ",
        line_of(replace(entry, target="wat")): "entry of wat: target wat: not in the table",
    }
    old = replace(entry, compiler="0.1", key="1" * 64)
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join([*bad, "", line_of(entry), line_of(old)]))
    capfd.readouterr()
    assert main(["tuning", "import", str(path)]) == 1
    out, err = capfd.readouterr()
    assert out == "imported 2 entries, 1 of them stale\n"
    for number, (line, told) in enumerate(zip(err.splitlines(), bad.values(), strict=True), 1):
        assert line.startswith(f"conv-compiler: error: {path}:{number}: {told}")
    assert rows_of(capfd, "tuning", "prune") == {"removed": 1}
    path.write_text("nothing\n")
    assert main(["tuning", "import", str(path)]) == 2
    assert main(["tuning", "import", str(tmp_path / "none")]) == 2
    assert main(["tuning", "prune", "x"]) == 2


def test_an_interrupted_run_goes_on(store: TuningStore, capfd, tmp_path, monkeypatch) -> None:
    path = tmp_path / "f.txt"
    path.write_text(f"{LINE}\n{LINE.replace('-n 2', '-n 3')}\n")
    whole = tuning.build

    def some(task):
        if task.problem["n"] == 3:
            raise KeyboardInterrupt
        return whole(task)

    words = ["tune", str(path), "--target", "gfx942", *ONE]
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "build", some)
        assert main(words) == 130
    assert len(store.entries()) == 1
    assert [row["verdict"] for row in rows_of(capfd, *words)] == ["kept", "tuned"]
