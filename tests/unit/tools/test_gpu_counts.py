"""`tools/fit/gpu_counts.py`: what `--check` says of the fits; the compiles are run by hand."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

FIT = Path(__file__).parents[3] / "tools" / "fit"


@pytest.fixture(scope="module")
def tool():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FIT))
        spec = importlib.util.spec_from_file_location("gpu_counts", FIT / "gpu_counts.py")
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "gpu_counts", module)
        spec.loader.exec_module(module)
        yield module


def fit(tool, error):
    return tool.Fit(
        table={"a": 1.0},
        fitted={"a": 2.0},
        observations=3,
        rank=1,
        table_error=error,
        fitted_error=0.0,
    )


@pytest.mark.parametrize("part", ["loop", "timelines", "depthwise"])
@pytest.mark.parametrize(("errors", "code"), [((0.1, 0.2), 0), ((0.1, 0.6), 1), ((), 1)])
def test_check_is_of_every_fit_of_every_part(tool, monkeypatch, capsys, part, errors, code):
    def fits(asked, every, target):
        assert (asked, every, target.name) == (part, 6, "gfx90a")
        return ((f"fit {error}", fit(tool, error), "") for error in errors)

    monkeypatch.setattr(tool, "fits", fits)
    words = ["gpu_counts.py", "--chip", "gfx90a", "--sample", "6", "--part", part]
    monkeypatch.setattr(sys, "argv", words)
    assert tool.main() == 0
    monkeypatch.setattr(sys, "argv", [*words, "--check"])
    assert tool.main() == code
    out = capsys.readouterr().out
    assert out.count("# gfx90a: fit ") == 2 * len(errors)
    assert ("the table is off by more than 35%: fit 0.6" in out) is (0.6 in errors)
    assert (f"no kernel of the list to fit --part {part} to" in out) is (not errors)


def test_a_list_without_kernels_has_no_fit(tool, monkeypatch):
    monkeypatch.setattr(tool, "compiled", lambda problems, name, target: iter(()))
    for part in ("loop", "timelines", "depthwise"):
        assert not list(tool.fits(part, 1, tool.find_target("gfx942")))
