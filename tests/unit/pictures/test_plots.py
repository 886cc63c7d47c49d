"""Plots of times, and tables for notebooks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conv_compiler import ConvProblem
from conv_compiler.cli import main
from conv_compiler.markup import Markup, element, heat, table
from conv_compiler.model.roofline import least_seconds, work_of
from conv_compiler.pictures.roofline_plot import ceilings
from conv_compiler.targets import TARGETS

PROBLEMS = """\
-n 1 -k 16 -c 16 --image 8x8 --filter 1x1
-n 1 -k 16 -c 16 --image 8x8 --filter 1x1 --direction fwd
"""


def test_text_is_escaped_and_markup_is_not():
    assert element("p", "a < b", title='"x"') == '<p title="&quot;x&quot;">a &lt; b</p>'
    assert element("p", element("b", "a")) == "<p><b>a</b></p>"
    assert element("p", class_="x", width=None) == '<p class="x"></p>'
    assert isinstance(table(("a",), [["1"]]), Markup)
    assert heat(-1) == heat(0) != heat(1) == heat(2)


def test_notebooks_show_tables():
    problem = ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
    shown = problem._repr_html_()
    for text in (problem.name, "2 x 9 x 9 x 1 x 8", "1 x 16 x 3 x 3 x 8", "f16"):
        assert text in shown


def test_roofline_rows_and_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    file, path = tmp_path / "p.txt", tmp_path / "roof.svg"
    file.write_text(PROBLEMS)
    words = ["roofline", str(file), "--target", "gfx942", "--plot", str(path), "--json"]
    assert main(words) == 0
    rows = json.loads(capsys.readouterr().out)
    target = TARGETS["gfx942"]
    for row, direction in zip(rows, ("bwd_weight", "fwd"), strict=True):
        problem = ConvProblem(n=1, k=16, c=16, image=(8, 8), filter=(1, 1), direction=direction)
        assert row["direction"] == direction
        assert row["least_seconds"] == least_seconds(problem, target)
        assert row["flops"] == work_of(problem, target).flops
        assert 0 < row["share"] <= 1
    picture = path.read_text()
    assert picture.count("<use ") > 2
    first = path.read_bytes()
    assert main(words) == 0
    assert path.read_bytes() == first


def test_ceilings_meet_at_the_ridge():
    peak, sustained = ceilings(TARGETS["gfx942"], ("f16", "f16"))
    ridge = peak.tflops * 1e3 / peak.gb_per_s
    assert peak.at(ridge) == pytest.approx(peak.tflops) == peak.at(2 * ridge)
    assert peak.at(ridge / 2) == pytest.approx(peak.tflops / 2)
    assert sustained.tflops < peak.tflops
    assert sustained.gb_per_s < peak.gb_per_s


def test_a_map_of_tiles(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "tiles.svg"
    words = "sweep -n 1 -k 4 -c 4 --image 5x5 --filter 1x1 --target cpu --strategy cpu_loops"
    assert main([*words.split(), "--split-k", "1,2", "--plot", str(path)]) == 0
    assert path.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("target", "plot", "why"),
    [
        ("gfx942,gfx90a", "x.svg", "several; roofline takes one chip"),
        ("gfx942", "x.png", "not a .svg"),
        ("cpu", "x.svg", "not modelled"),
    ],
)
def test_refusals(target, plot, why, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["roofline", *PROBLEMS.splitlines()[0].split(), "--target", target, "--plot", plot]
    assert main(words) == 2
    assert why in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
