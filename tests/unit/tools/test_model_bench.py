"""The benchmark's sets and arithmetic; its compiles are run by hand."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from conv_compiler.problem.conv_problem import ConvProblem

TOOLS = Path(__file__).parents[3] / "tools"


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        spec = importlib.util.spec_from_file_location("model_bench", TOOLS / "model_bench.py")
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "model_bench", module)
        spec.loader.exec_module(module)
        yield module


@pytest.mark.parametrize(
    ("name", "problems", "batch"),
    [
        *(("wavelet", 12, 32), ("retinanet", 37, 32), ("resnet50", 23, 128)),
        *(("resnext50", 18, 128), ("kinds", 20, 32)),
    ],
)
def test_sets(bench, name, problems, batch):
    found = bench.load_set(name)
    assert len(found) == problems
    assert {one.problem.n for one in found} == {batch}
    assert len({one.problem for one in found}) == problems


def test_every_set_is_named_and_sound(bench):
    for name in json.loads(bench.SETS.read_text()):
        assert bench.load_set(name)


def test_the_wavelet_shapes(bench):
    found = {
        (p.k, p.image[0], p.stride[0]) for p in (one.problem for one in bench.load_set("wavelet"))
    }
    small = {(36, size, 1) for size in (7, 13, 25, 50, 100)}
    square = {(256, 100, 1), (256, 13, 2), (256, 25, 2), (256, 7, 1), (256, 13, 1)}
    assert found == small | square | {(2376, 50, 1), (2376, 100, 1)}


@pytest.mark.parametrize(
    ("g", "c", "k", "kind"),
    [
        (1, 64, 64, "C, K >= 64"),
        (2, 64, 256, "C, K >= 64"),
        (32, 4, 4, "grouped"),
        (1, 256, 36, "C or K < 64"),
    ],
)
def test_kinds(bench, g, c, k, kind):
    problem = ConvProblem(n=1, g=g, c=c, k=k, image=(8, 8), filter=(1, 1))
    assert bench.kind(problem) == kind


def test_reduced_problems_fit_a_second(bench):
    for one in bench.load_set("retinanet"):
        small = bench.reduced(one.problem)
        assert small.n == 1 or small.flops <= bench.VIRTUAL_FLOPS
        assert small.with_batch(one.problem.n) == one.problem


def test_summary(bench):
    def row(label, ratio=None, **more):
        times = {"ours_seconds": 1.0, "iree_seconds": ratio, "ratio": ratio} if ratio else {}
        times["least_seconds"] = 0.5
        if ratio:
            times |= {
                "iree_sustained_seconds": 3 * ratio,
                "sustained_least_seconds": 1.0,
                "sustained_ratio": 2 * ratio,
            }
        kinds = {"chip": "x", "dtype": "f16", "direction": "fwd", "kind": "y"}
        return {"label": label, **kinds, **times, **more}

    found = [row("a", 4.0), row("b", 1.0, ours_spills=3), row("c", 0.25), row("d", ours_seconds=1)]
    assert bench.summary(found) == [
        {
            "chip": "x",
            "dtype": "f16",
            "direction": "fwd",
            "kind": "y",
            "problems": 4,
            "mean": pytest.approx(1.0),
            "most": pytest.approx(2.0),
            "sustained_mean": pytest.approx(2.0),
            "sustained_most": pytest.approx(3.0),
            "worst": 0.25,
            "worst_label": "c",
            "slower": 1,
            "spilling": 1,
            "ours_failed": 0,
            "iree_failed": 1,
        }
    ]


def test_a_failed_compile_is_kept(bench, tmp_path, monkeypatch):
    from conv_compiler.benchmark import iree_default
    from conv_compiler.errors import CompileFailed
    from conv_compiler.storage.cache import Cache
    from conv_compiler.targets import find_target

    calls = []

    def fail(flags, work):
        calls.append(flags)
        raise CompileFailed("iree-compile: exit code 1: no")

    monkeypatch.setattr(iree_default, "run_compiler", fail)
    problem = ConvProblem(n=1, c=8, k=8, image=(4, 4), filter=(1, 1))
    for _ in range(2):
        with pytest.raises(CompileFailed, match="exit code 1: no"):
            iree_default.compile_default(problem, find_target("gfx942"), Cache(tmp_path))
    assert len(calls) == 1
    assert "--iree-rocm-target=gfx942" in calls[0]


@pytest.fixture
def kept(bench):
    return sys.modules["kept_sides"]


def test_a_run_goes_on_with_what_is_kept(kept, tmp_path):
    file, module = tmp_path / "kept.jsonl", tmp_path / "one.vmfb"
    module.write_bytes(b"machine code")
    made = []

    def make():
        made.append(1)
        return {"seconds": len(made)}

    for _ in range(2):
        sides = kept.KeptSides.read(file)
        assert sides.side(module, "look", make) == {"seconds": 1}
    assert sides.side(module, "static", make) == {"seconds": 2}
    module.write_bytes(b"other code")
    assert sides.side(module, "look", make) == {"seconds": 3}
    assert kept.KeptSides().side(module, "look", make) == {"seconds": 4}


def test_what_is_kept_hangs_on_the_model(kept, tmp_path, monkeypatch):
    file, module = tmp_path / "kept.jsonl", tmp_path / "one.vmfb"
    module.write_bytes(b"machine code")
    kept.KeptSides.read(file).side(module, "look", lambda: {"seconds": 1})
    monkeypatch.setattr(kept, "model_digest", lambda: "another model")
    assert kept.KeptSides.read(file).side(module, "look", lambda: {"seconds": 2})["seconds"] == 2


def test_the_model_is_native_code_too(kept):
    root = Path(kept.conv_compiler.__file__).parent
    names = {one.name for one in kept.model_files(root)}
    assert {"estimate.py", "launch.cpp", "sustained.py", "counter_fields.h"} <= names


def test_what_took_too_long_is_kept_and_a_cut_line_is_not(kept, tmp_path):
    file, module = tmp_path / "kept.jsonl", tmp_path / "one.vmfb"
    module.write_bytes(b"machine code")

    def late():
        raise TimeoutError("model: takes more than 120 s; not modelled")

    for make in (late, lambda: {"seconds": 1}):
        with pytest.raises(TimeoutError, match="not modelled"):
            kept.KeptSides.read(file).side(module, "look", make)
    whole = file.read_text()
    file.write_text(whole + whole[:20])
    sides = kept.KeptSides.read(file)
    assert len(sides.known) == 1
    assert sides.side(module, "static", lambda: {"seconds": 2}) == {"seconds": 2}
    assert len(kept.KeptSides.read(file).known) == 2


class Doubled:
    """A task whose row and side are its number, doubled."""

    def __init__(self, number: int) -> None:
        self.number = number

    def row(self, kept):
        kept.known[str(self.number)] = {"key": str(self.number), "values": {}}
        return {"twice": 2 * self.number}


@pytest.mark.parametrize("jobs", [1, 3])
def test_rows_of_several_processes_are_in_order_and_kept(bench, jobs, tmp_path):
    kept = sys.modules["kept_sides"].KeptSides.read(tmp_path / "kept.jsonl")
    found = list(bench.rows([Doubled(number) for number in range(7)], kept, jobs))
    assert found == [{"twice": 2 * number} for number in range(7)]
    assert set(kept.known) == set(map(str, range(7)))
    if jobs > 1:  # a task of one process writes through the sides' own method
        assert len((tmp_path / "kept.jsonl").read_text().splitlines()) == 7
