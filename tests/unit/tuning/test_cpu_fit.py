"""Costs fitted on a machine: they come out of times that they made, and better ones are kept."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from conv_compiler.cli import main
from conv_compiler.commands import fit_cpu as command
from conv_compiler.storage.fitted_costs import (
    NOT_FITTED,
    FittedCosts,
    fitted_costs,
    keep_fitted_costs,
)
from conv_compiler.strategies.cpu.cost_constants import VECTOR_KERNELS
from conv_compiler.strategies.select import candidates
from conv_compiler.targets import find_target
from conv_compiler.targets.processors import host_kind
from conv_compiler.tuning import cpu_fit
from conv_compiler.tuning import cpu_fit_check as check

SECOND = 3e-10
TRUE = replace(VECTOR_KERNELS, row_cycles=0.0, vector_cycles=12.0)


@pytest.fixture
def made_by(monkeypatch):
    """Kernels take what the model says by some costs, times a factor of their own."""

    def made(costs, factor=lambda number: 1.0):
        def compile(problem, target, asked, split_k, tuned):
            first = candidates(problem, find_target(target), asked.name, tile=asked.tile)[0]
            return SimpleNamespace(strategy=first)

        exact = cpu_fit.Timed

        def timed(**values):
            one = exact(**values)
            seconds = one.cycles(costs) * SECOND * factor(one.number)
            return replace(one, seconds=seconds)

        monkeypatch.setattr(cpu_fit, "compile", compile)
        monkeypatch.setattr(cpu_fit, "_shortest", lambda artifact, problem, seconds: 1.0)
        monkeypatch.setattr(cpu_fit, "Timed", timed)
        monkeypatch.setattr(command, "kinds_here", lambda: ("vectors",))

    return made


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("CONV_COMPILER_CPU_COSTS", str(tmp_path / "costs.json"))


def test_a_fit_comes_nearer_to_what_made_the_times(made_by):
    made_by(TRUE)
    begun = []
    found = cpu_fit.fit_kernels("vectors", 0.0, begun.append)
    assert len(begun) == len(cpu_fit.PROBLEMS)
    assert found.second == pytest.approx(SECOND, rel=0.2)
    assert found.is_better
    assert found.fitted_error < found.table_error / 2
    assert found.fit.fitted["vector_cycles"] > VECTOR_KERNELS.vector_cycles


def test_a_fit_to_noise_is_no_better_than_the_table(made_by):
    """Every problem is off by a factor that says nothing about others."""
    made_by(VECTOR_KERNELS, lambda number: (1.3, 1.0, 0.8)[number % 3])
    assert not cpu_fit.fit_kernels("vectors", 0.0, str).is_better


def test_the_command_keeps_costs_by_which_kernels_are_faster(made_by, monkeypatch, capsys):
    made_by(TRUE)
    monkeypatch.setattr(command, "gain", lambda costs, dtypes, seconds, begin: 1.05)
    assert main(["tune", "--fit-cpu", "--json", "-q"]) == 0
    rows = json.loads(capsys.readouterr().out)
    of_vectors = {row["constant"]: row["fitted"] for row in rows if row["kind"] == "vectors"}
    assert all(row["kept"] for row in rows)
    assert dict(fitted_costs(host_kind()).vectors) == of_vectors


def test_the_command_keeps_no_costs_by_which_kernels_are_slower(made_by, monkeypatch, capsys):
    made_by(TRUE)
    monkeypatch.setattr(command, "gain", lambda costs, dtypes, seconds, begin: 0.95)
    assert main(["tune", "--fit-cpu", "-q"]) == 0
    assert "layers are 0.95x as fast: the table stays" in capsys.readouterr().out
    assert fitted_costs(host_kind()) == NOT_FITTED


def test_layers_with_the_same_kernel_are_not_timed(monkeypatch):
    """And the costs are afterwards what they were."""
    before = FittedCosts(vectors=(("row_cycles", 7.0),))
    keep_fitted_costs(before, host_kind())
    monkeypatch.setattr(check, "LAYERS", check.LAYERS[2:3])
    monkeypatch.setattr(check, "_ratio", lambda *kernels: 1 / 0)
    same = FittedCosts(vectors=(("row_cycles", VECTOR_KERNELS.row_cycles),))
    assert check.gain(same, ["f32"], 0.0, str) == 1
    assert fitted_costs(host_kind()) == before


def test_layers_with_other_kernels_are_timed_in_turns(monkeypatch):
    monkeypatch.setattr(check, "LAYERS", check.LAYERS[1:2])
    other = FittedCosts(vectors=(("row_cycles", 1.8), ("vector_cycles", 6.3)))
    assert check.gain(other, ["f32"], 0.0, str) > 0


def test_the_command_keeps_nothing_that_predicts_worse(made_by, capsys):
    made_by(VECTOR_KERNELS, lambda number: (1.3, 1.0, 0.8)[number % 3])
    assert main(["tune", "--fit-cpu", "-q"]) == 0
    assert "the table stays" in capsys.readouterr().out
    assert fitted_costs(host_kind()) == NOT_FITTED


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["layers.txt"], "problem layers.txt: --fit-cpu has problems of its own; leave it out"),
        (["-n", "3"], "problem -n: --fit-cpu has problems of its own; leave it out"),
        (["--split-k", "2"], "--split-k: not for --fit-cpu; leave it out"),
        (["--jobs", "2"], "--jobs: not for --fit-cpu; leave it out"),
        (["--again"], "--again: not for --fit-cpu; leave it out"),
        (["--cluster", "tcp://a:1"], "--cluster: not for --fit-cpu; leave it out"),
        (["--device", "cpu"], "--device: not for --fit-cpu; leave it out"),
        (["--target", "gfx942"], "--target gfx942: --fit-cpu times this machine's CPU; leave it"),
    ],
)
def test_what_a_fit_does_not_take_is_refused(words, error, capsys):
    assert main(["tune", "--fit-cpu", *words]) == 2
    assert error in capsys.readouterr().err


@pytest.mark.slow
def test_kernels_of_this_machine_are_timed(capsys):
    assert main(["tune", "--fit-cpu", "--json", "-q"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["kind"] for row in rows} == set(cpu_fit.kinds_here())
    assert all(row["fitted"] >= 0 for row in rows)
