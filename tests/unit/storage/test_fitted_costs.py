"""Costs fitted on a host: who finds them, what they change, and what a damaged file says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from conv_compiler.cli import main
from conv_compiler.compiler.compile import compilation_key
from conv_compiler.errors import TuningStoreRefused
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage import fitted_costs as module
from conv_compiler.storage.fitted_costs import (
    NOT_FITTED,
    FittedCosts,
    fitted_costs,
    forget_fitted_costs,
    keep_fitted_costs,
)
from conv_compiler.strategies.cpu.cost_constants import AMX_KERNELS, VECTOR_KERNELS, costs_of
from conv_compiler.strategies.cpu.distribution_cost import DistributionCost
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.processors import host_kind, host_processor

COSTS = FittedCosts(vectors=(("row_cycles", 3.5), ("loop_cycles", 0.0)))
PROBLEM = ConvProblem(n=4, k=32, c=16, image=(12, 12), filter=(3, 3))


@pytest.fixture(autouse=True)
def costs_file(tmp_path, monkeypatch) -> Path:
    file = tmp_path / "deep" / "costs.json"
    monkeypatch.setenv("CONV_COMPILER_CPU_COSTS", str(file))
    return file


def test_a_host_finds_its_own_costs_alone():
    assert fitted_costs("here") == NOT_FITTED
    keep_fitted_costs(COSTS, "here")
    assert fitted_costs("here") == COSTS
    assert fitted_costs("elsewhere") == NOT_FITTED
    keep_fitted_costs(FittedCosts(tiles=(("row_cycles", 1.0),)), "here")
    assert fitted_costs("here").vectors == ()


def test_other_sources_do_not_find_them(monkeypatch):
    keep_fitted_costs(COSTS, "here")
    monkeypatch.setattr(module, "key_of", lambda parts: f"other {parts}")
    module._read.cache_clear()
    assert fitted_costs("here") == NOT_FITTED


def test_they_are_in_the_folder_of_the_cache_unless_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CONV_COMPILER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CONV_COMPILER_CPU_COSTS")
    keep_fitted_costs(COSTS, "here")
    assert (tmp_path / "cache" / "cpu_costs.json").exists()
    assert fitted_costs("here") == COSTS


def test_clear_forgets_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CONV_COMPILER_TUNING", str(tmp_path / "t.sqlite"))
    keep_fitted_costs(COSTS, "here")
    assert main(["tuning", "clear"]) == 0
    assert capsys.readouterr().out == "removed 1 entries\n"
    assert fitted_costs("here") == NOT_FITTED
    assert main(["tuning", "clear"]) == 0


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"key": 1}', '{"vectors": 3, "tiles": []}'])
def test_damaged_costs_are_refused(costs_file, text, capsys):
    keep_fitted_costs(COSTS, host_kind())
    found = json.loads(costs_file.read_text())
    if text == '{"vectors": 3, "tiles": []}':
        text = json.dumps({**found, "vectors": 3})
    costs_file.write_text(text)
    module._read.cache_clear()
    if text == '{"key": 1}':  # of another host
        assert fitted_costs(host_kind()) == NOT_FITTED
        return
    with pytest.raises(TuningStoreRefused, match="damaged"):
        fitted_costs(host_kind())
    assert (
        main(["compile", "-n", "2", "-k", "8", "-c", "8", "--image", "4x4", "--filter", "1x1"]) == 2
    )
    assert "fit them again by conv-compiler tune --fit-cpu, delete" in capsys.readouterr().err


@pytest.mark.parametrize("cycles", [float("nan"), float("inf"), -1.0])
def test_cycles_that_are_no_times_are_refused(cycles):
    keep_fitted_costs(FittedCosts(vectors=(("row_cycles", cycles),)), "here")
    with pytest.raises(TuningStoreRefused, match="cycles that are no times"):
        fitted_costs("here")


def test_a_name_that_is_no_constant_is_refused():
    with pytest.raises(TuningStoreRefused, match="fitted costs fast_cycles: no constants"):
        costs_of("", FittedCosts(vectors=(("fast_cycles", 1.0),)))


def test_a_folder_in_the_place_of_the_file_is_refused(costs_file):
    costs_file.mkdir(parents=True)
    with pytest.raises(TuningStoreRefused):
        keep_fitted_costs(COSTS, "here")
    with pytest.raises(TuningStoreRefused):
        forget_fitted_costs()


def test_this_host_is_compiled_for_by_them():
    before = compilation_key(PROBLEM, find_target("cpu"), None, 1)
    by_name = compilation_key(PROBLEM, find_target("cpu-znver4"), None, 1)
    keep_fitted_costs(COSTS, host_kind())
    assert host_processor().costs == COSTS
    assert compilation_key(PROBLEM, find_target("cpu"), None, 1) != before
    assert compilation_key(PROBLEM, find_target("cpu-znver4"), None, 1) == by_name
    assert find_target("cpu-znver4").cpu.costs == NOT_FITTED


def test_a_distribution_costs_what_was_fitted():
    tiling = choose(PROBLEM, find_target("cpu"))[0].tiling
    processor = replace(host_processor(), costs=COSTS)
    assert DistributionCost(PROBLEM, tiling, 1, processor).costs == costs_of("", COSTS)
    assert costs_of("", COSTS) == replace(VECTOR_KERNELS, row_cycles=3.5, loop_cycles=0.0)
    assert costs_of("tdpbf16ps", COSTS) == AMX_KERNELS
