"""`conv-compiler sweep`: what is tried, what is timed how, what is checked, and what is printed."""

from __future__ import annotations

import json
import re

import pytest

from conv_compiler.cli import main
from conv_compiler.errors import OutOfRegisters, UnsupportedStrategy
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import choose
from conv_compiler.strategies.strategy import StrategyRequest
from conv_compiler.targets import find_target
from conv_compiler.tuning.sweep import admissible

PROBLEM = ConvProblem(n=2, k=16, c=16, image=(6, 6), filter=(3, 3))
WORDS = ["-n", "2", "-k", "16", "-c", "16", "--image", "6x6", "--filter", "3x3"]
GFX = find_target("gfx942")


def test_every_split_of_every_candidate_once():
    found = admissible(PROBLEM, GFX, StrategyRequest(), (1, 2, 2))
    assert set(found) == {*choose(PROBLEM, GFX, None, 1), *choose(PROBLEM, GFX, None, 2)}
    assert len(set(found)) == len(found)


def test_splits_a_problem_has_not_are_left_out():
    found = {
        one.split_k
        for one in admissible(PROBLEM, GFX, StrategyRequest(name="vector_gemm"), (4, 64))
    }
    assert found == {4}
    with pytest.raises(UnsupportedStrategy, match="split_k 64: more parts than the 32 products"):
        admissible(PROBLEM, GFX, StrategyRequest(), (64, 128))


def test_a_wanted_strategy_alone():
    found = admissible(PROBLEM, GFX, StrategyRequest(name="vector_gemm"), ("auto", 1))
    assert {one.name for one in found} == {"vector_gemm"}


PERF = re.compile(
    r"Perf: +(\d+\.\d{4}) ms, [\d.e+-]+ TFlops, [\d.e+-]+ GB/s, (.+), SplitK (\d+) \((.+), (.+)\)"
)


def test_modelled_times_where_there_is_no_card(capfd):
    words = ["sweep", *WORDS, "--target", "gfx942", "--device", "vgpu", "--split-k", "1,2"]
    assert main([*words, "--tile", "32x32x32", "--checks", "2"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == f"{PROBLEM.name} on gfx942"
    rows = [PERF.fullmatch(line).groups() for line in lines[1:-2]]
    assert {int(split) for _, _, split, *_ in rows} == {1, 2}
    assert [float(row[0]) for row in rows] == sorted(float(row[0]) for row in rows)
    assert {how for *_, how, _ in rows} == {"modelled"}
    assert [verdict for *_, verdict in rows[:3]] == ["right (exact)"] * 2 + ["not run"]
    assert lines[-2] == f"valids: {len(rows)}, refused by their own proof: 0"
    assert lines[-1].startswith(f"Best Perf: {rows[0][0]} ms, ")
    assert lines[-1].endswith(f"{rows[0][1]}, SplitK {rows[0][2]} (modelled)")


@pytest.mark.parametrize(
    "which", [["--strategy", "cpu_lin"], pytest.param([], marks=pytest.mark.slow)]
)
def test_measured_times_on_the_cpu(capfd, which):
    assert main(["sweep", *WORDS, *which, "--split-k", "1,3", "--json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert {row["time"] for row in rows} == {"measured"}
    assert all(row["passed"] for row in rows)
    # Of 4 rows 3 parts of 2 would leave one without products.
    assert {row["split_k"] for row in rows} == {1, 2}
    for row in rows:
        assert row["tflops"] == pytest.approx(PROBLEM.flops / row["seconds"] / 1e12)


def test_one_problem_at_a_time(capfd):
    assert main(["sweep", *WORDS, "--target", "cpu,gfx942"]) == 2
    assert "sweep takes one" in capfd.readouterr().err


def test_what_does_not_compile_is_told(monkeypatch, capfd):
    import conv_compiler.tuning.sweep as module

    whole = module.compile

    def some(problem, target, strategy):
        if strategy.split_k == 1:
            raise OutOfRegisters("kernel main: 3 spills; use another tile")
        return whole(problem, target, strategy)

    monkeypatch.setattr(module, "compile", some)
    words = ["sweep", *WORDS, "--strategy", "cpu_loops"]
    assert main([*words, "--split-k", "1,2"]) == 0
    out = capfd.readouterr().out
    assert "valids: 1, refused by their own proof: 1" in out
    assert re.search(r"^refused: cpu_loops .*, SplitK 1: kernel main: 3 spills; use", out, re.M)
    assert main([*words, "--split-k", "1,2", "--json"]) == 0
    right, refused = json.loads(capfd.readouterr().out)
    assert (right["passed"], right["split_k"], refused["split_k"]) == (True, 2, 1)
    assert "3 spills" in refused["error"]
    assert main([*words, "--split-k", "1"]) == 2
    assert "kernel main: 3 spills" in capfd.readouterr().err


def test_a_wrong_kernel_is_an_error(monkeypatch, capfd):
    """The check is of the kernel's numbers: against a reference that is one off it fails."""
    import sys

    module = sys.modules["conv_compiler.verification.verify"]
    right = module.finished

    def off(problem, sums, *extra):
        return right(problem, sums, *extra) + 1

    monkeypatch.setattr(module, "finished", off)
    assert main(["sweep", *WORDS, "--strategy", "cpu_loops", "--split-k", "1"]) == 2
    assert "1 of 1 wrong: cpu_loops" in capfd.readouterr().err
