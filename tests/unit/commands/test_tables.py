"""Tables fit a width: columns go by rank, long cells are cut or take lines, and nothing is lost."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conv_compiler.commands.report import Output, flat, show, show_numbered
from conv_compiler.commands.table_layout import VERBOSE, left, middle_cut, numbered, right, table

NAME = "bwd_weight_n32g1k64c64_i28x28_f3x3_p1x1_nhwgc-gkyxc-nhwgk_f16"
COLUMNS = (
    left("problem", "name", shape="cut"),
    left("target", "target"),
    left("strategy", "strategy", rank=2),
    right("error", "error", rank=3),
    left("result", "verdict", shape="wrap"),
    left("reason", "reason", rank=VERBOSE),
)
ROW = {"name": NAME, "target": "gfx942", "strategy": "implicit_gemm", "error": 0, "reason": "x"}


def lines(rows: list[dict[str, object]], width: int | None) -> list[str]:
    return [line for of_row in table(rows, COLUMNS, width) for line in of_row]


def test_a_name_is_cut_in_the_middle() -> None:
    assert middle_cut(NAME, 20) == "bwd_weight_n32...f16"
    assert middle_cut(NAME, len(NAME)) == NAME
    assert middle_cut(NAME, 30) == "bwd_weight_n32g1k64c6...gk_f16"


def test_columns_go_by_rank() -> None:
    rows = [ROW | {"verdict": "exact"}]
    whole = f"{NAME}  gfx942  implicit_gemm      0  exact"
    assert lines(rows, 200)[1] == whole
    assert lines(rows, None)[1] == f"{whole}   x"
    assert lines(rows, 62) == [
        "problem                   target  strategy       error  result",
        "bwd_weight_n32g1k..._f16  gfx942  implicit_gemm      0  exact",
    ]
    assert lines(rows, 56)[0].split() == ["problem", "target", "strategy", "result"]
    assert lines(rows, 40)[0].split() == ["problem", "target", "result"]


def test_a_column_without_values_is_left_out() -> None:
    rows = [{"name": "a", "target": "cpu", "verdict": "exact"}]
    assert lines(rows, 80) == ["problem  target  result", "a        cpu     exact"]
    assert "strategy" in lines(rows, None)[0]


def test_a_long_reason_takes_lines() -> None:
    reason = "REFUSED: split_k 9999: not from 1 to 1024; use one of them or 'auto'"
    found = lines([ROW | {"verdict": reason}], 64)
    at = found[0].index("result")
    assert max(map(len, found)) <= 64
    assert " ".join(line[at:] for line in found[1:]) == reason


words = st.text("abc_-012 ", min_size=1, max_size=90).map(str.strip)


@given(
    st.lists(
        st.fixed_dictionaries({"name": words, "error": st.integers(), "verdict": words}),
        max_size=4,
    ),
    st.integers(72, 200),
)
def test_any_table_fits(rows: list[dict[str, object]], width: int) -> None:
    found = table([ROW | row for row in rows], COLUMNS, width)
    assert len(found) == len(rows) + 1
    assert all(len(line) <= width for of_row in found for line in of_row)
    at = found[0][0].index("result")
    for row, of_row in zip(rows, found[1:], strict=True):
        shown = "".join(line[at:] for line in of_row)
        assert "".join(shown.split()) == "".join(str(row["verdict"]).split())


def test_long_names_become_numbers() -> None:
    rows = [{"name": NAME}, {"name": "short"}]
    short, legend = numbered(rows, "name")
    assert [row["name"] for row in short] == ["1", "2"]
    assert legend == [f"1  {NAME}", "2  short"]
    assert numbered(rows[1:], "name") == (rows[1:], [])


@pytest.mark.parametrize("how", [Output(verbose=True), Output(form="json"), Output(form="csv")])
def test_whole_names_where_they_are_asked_for(how: Output, capfd) -> None:
    show_numbered([ROW], COLUMNS, "name", how)
    assert NAME in capfd.readouterr().out


def test_csv_is_flat(capfd) -> None:
    rows = [
        {"a": 1, "b": {"c": [2, 3], "d": None}, "kernels": [{"x": 1}]},
        {"a": "x, y", "error": 'a "word"'},
    ]
    assert flat(rows[0]) == {"a": 1, "b.c": "2 3", "b.d": None}
    show(rows, (), Output(form="csv"))
    read = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))
    assert read == [
        {"a": "1", "b.c": "2 3", "b.d": "", "error": ""},
        {"a": "x, y", "b.c": "", "b.d": "", "error": 'a "word"'},
    ]


def test_wrong_is_red_on_a_terminal(monkeypatch, capfd) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    rows = [ROW | {"verdict": "exact"}, ROW | {"verdict": "WRONG: 1 of 2"}]
    show(rows, COLUMNS)
    head, right_one, wrong = capfd.readouterr().out.splitlines()
    assert head.startswith("\x1b[1m")
    assert wrong.startswith("\x1b[31m")
    assert "\x1b" not in right_one
    monkeypatch.setenv("NO_COLOR", "1")
    show(rows, COLUMNS)
    assert "\x1b" not in capfd.readouterr().out
