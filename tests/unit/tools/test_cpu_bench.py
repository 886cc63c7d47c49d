"""The CPU benchmark's layers, arithmetic and file; it is run by hand, for it needs PyTorch."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from conv_compiler.errors import UnsupportedProblem

TOOLS = Path(__file__).parents[3] / "tools"


@pytest.fixture(scope="module", autouse=True)
def _tools_on_the_path():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        yield


@pytest.fixture(scope="module")
def bench():
    return importlib.import_module("cpu_bench")


@pytest.fixture(scope="module")
def layers():
    return importlib.import_module("cpu_layers")


@pytest.fixture(scope="module")
def results():
    return importlib.import_module("cpu_results")


@pytest.fixture
def result(results, layers):
    """A result of 1e9 operations by its times."""
    problem = layers.find_layers(["r56"])[0].problem

    def made(name, theirs, ours, backend="Mkldnn"):
        sides = (
            None if x is None else results.Timing(seconds=x, spread=0.1, least=x, most=x, count=1)
            for x in (theirs, ours)
        )
        pytorch, mine = sides
        return results.Result(
            name=name, problem=problem, backend=backend, strategy="s", pytorch=pytorch, ours=mine
        )

    return made


def test_sets(layers):
    sets = layers.SETS
    counts = {name: len(rows) for name, rows in sets.items()}
    assert counts == {"facts": 9, "ways": 20, "models": 40}
    assert len({row.problem for row in sets["ways"]}) == 20
    rows = [*sets["facts"], *sets["models"]]
    assert len({row.name for row in rows}) == len({row.problem for row in rows}) == 49
    assert {row.problem.n for row in sets["facts"]} == {8}
    assert all(8 <= row.problem.n <= 32 for row in rows)
    # PyTorch pads both ends alike.
    assert all(row.problem.pad_low == row.problem.pad_high for row in rows)


def test_layers_in_all_directions_have_names_of_their_own(layers):
    bench = importlib.import_module("cpu_bench")
    found = bench.asked(layers.SETS["ways"], "bf16", "all")
    assert len({one.name for one in found}) == 60
    assert {one.problem.direction for one in found} == {"fwd", "bwd_data", "bwd_weight"}
    assert {one.problem.weight_dtype for one in found} == {"bf16"}


def test_models_have_both_layouts_and_all_dimensions(layers):
    rows = layers.SETS["models"]
    assert {row.model for row in rows} == set(layers.MODELS)
    for model in layers.MODELS:
        found = {row.problem.layout_row.input for row in rows if row.model == model}
        assert found == {"N*GC", "NGC*"}
    assert {row.problem.ndim for row in rows} == {1, 2, 3}
    assert {row.problem.stride for row in rows if row.model == "wav2vec2"} == {(5,), (2,), (1,)}
    assert max(row.problem.dilation for row in rows if row.model == "wavenet") == (512,)


def test_layers_are_found_by_name_and_pattern(layers):
    assert [row.name for row in layers.find_layers(["ret", "r?6", "ret*"])][:2] == ["ret", "r56"]
    assert len(layers.find_layers(["resnet50.*"])) == 7
    with pytest.raises(UnsupportedProblem, match="layer r57: in no set; known: r56, r28"):
        layers.find_layers(["ret", "r57"])


def test_what_is_not_timed_says_why(bench):
    def absent():
        raise RuntimeError("not implemented for 'Half'\nmore")

    assert bench.refusal(absent, lambda: 0.0) == "no kernel (not implemented for 'Half')"
    seconds = iter((0.0, 2.0, 0.0, 0.001))
    assert "2.0 s" in bench.refusal(lambda: None, lambda: next(seconds))
    assert bench.refusal(lambda: None, lambda: next(seconds)) == ""


def test_summaries(results, result):
    found = [
        result("a", 4.0, 1.0),
        result("b", 1.0, 4.0, "Slow2d"),
        result("c", 8.0, 1.0),
        result("d", None, 1.0),
    ]
    every, onednn, slow = results.summaries(found)
    assert (every.about, every.layers, every.least, every.least_layer) == ("all", 3, 0.25, "b")
    assert every.geometric_mean == pytest.approx(2.0)
    assert onednn.geometric_mean == pytest.approx(32**0.5)
    assert slow.text == "Slow2d: 1 layers, geometric mean 0.25, least 0.25 (b)"
    assert len(results.summaries(found[:1])) == 1
    assert results.summaries(found[3:]) == []


def test_a_line_and_its_plain_values(result):
    one = result("a", 2.0, 1.0, "Slow2d")
    flops = one.problem.flops / 1e9
    assert one.text.split() == ["a", f"{flops / 2:.1f}", "10%", f"{flops:.1f}", "10%", "2.00",
                                "s;", "Slow2d"]  # fmt: skip
    assert one.to_json()["ratio"] == 2.0
    assert result("a", None, 1.0).text.split()[:3] == ["a", "-", "-"]
    assert result("a", None, 1.0).to_json()["pytorch_gflops"] is None


def test_json_is_written_whole_or_not_at_all(results, result, tmp_path):
    path = tmp_path / "found.json"
    results.write_json(path, [result("a", 2.0, 1.0).to_json()])
    assert json.loads(path.read_text())[0]["name"] == "a"
    before = path.read_text()
    for broken in ([float("nan")], [object()]):
        with pytest.raises((ValueError, TypeError)):
            results.write_json(path, broken)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_fma_kernel_computes_what_is_counted():
    import iree.runtime as iree

    peaks = importlib.import_module("cpu_peaks")
    device = iree.get_device("local-sync")
    kernel = peaks.loaded(peaks.fma_kernel(4, elements=64), device)
    got = kernel(iree.asdevicearray(device, np.ones(64, np.float32))).to_host()
    assert (got == 8).all()


@pytest.fixture(scope="module")
def scaling():
    return importlib.import_module("cpu_scaling")


def test_a_turn_is_held_against_what_registers_gain(scaling, monkeypatch):
    times = {"one": [4.0, 5.0], "two": [2.0, 2.5], "ours": [9.0, 8.0, 7.0], "ours two": [4.0]}
    monkeypatch.setattr(scaling, "seconds", times.__getitem__)
    found, alone = scaling.turn(["one", "two"], ["ours", "ours two"])
    assert (found.cores, found.scaling, alone) == (2.0, 2.0, 8.0)


def test_undisturbed_are_the_turns_that_had_the_cores(scaling):
    turns = [(2.0, 1.9), (1.9, 1.7), (1.0, 0.9), (1.1, 1.0)]
    made = [scaling.Turn(cores=cores, scaling=gained) for cores, gained in turns]
    found = scaling.Scaling(name="a", strategy="s", threads=2, milliseconds=1, turns=tuple(made))
    assert found.summary() == {
        "cores": 1.5,
        "scaling": pytest.approx(1.35),
        "undisturbed_turns": 2,
        "undisturbed_scaling": pytest.approx(1.8),
    }
    assert found.text.split() == ["a", "1.00", "1.50", "1.35", "1.80", "2", "of", "4", "s"]
    quiet = scaling.Scaling(
        name="a", strategy="s", threads=2, milliseconds=1, turns=tuple(made[2:])
    ).summary()
    assert quiet["undisturbed_scaling"] is None
