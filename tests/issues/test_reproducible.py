"""A reproducible compilation gives the same module whatever the machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import UnsupportedTarget
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage.cache import Cache
from conv_compiler.targets import find_target
from conv_compiler.targets import reproducible as module
from conv_compiler.targets.host import find_unit, host_architecture
from conv_compiler.targets.reproducible import BASELINES, reproducible
from conv_compiler.verification.verify import verify_artifact

# Few weights over many pixels: more cores make more parts of it.
PROBLEM = ConvProblem(n=8, k=8, c=8, image=(24, 24), filter=(3, 3), pad_low=1, dtype="f32")


@pytest.mark.parametrize("direction", ["bwd_weight", "bwd_bias"])
def test_cores_and_vectors_of_the_host_change_nothing(direction, monkeypatch, tmp_path):
    problem = ConvProblem(**{**PROBLEM.to_json(), "direction": direction})
    made = []
    for cores, unit in ((1, "X86_V4"), (64, "X86_V2")):
        for name in ("host", "processors"):
            path = f"conv_compiler.targets.{name}.host_cores"
            monkeypatch.setattr(path, lambda cores=cores: cores)
        monkeypatch.setattr(
            "conv_compiler.targets.processors.host_unit",
            lambda unit=unit: find_unit(unit),
        )
        cache = Cache(Path(tmp_path / str(cores)))
        made.append(compile(problem, reproducible=True, cache=cache))
    assert made[0].strategy == made[1].strategy
    assert made[0].module == made[1].module
    verify_artifact(made[0]).require()


def test_the_target_in_the_place_of_the_host():
    name = f"cpu-{BASELINES[host_architecture()]}"
    assert reproducible(find_target("cpu")).name == name
    for other in ("gfx942", "cpu-x86-64-v4"):
        assert reproducible(find_target(other)) is find_target(other)


def test_an_architecture_without_one(monkeypatch):
    monkeypatch.setattr(module, "host_architecture", lambda: "riscv64")
    with pytest.raises(UnsupportedTarget, match="no CPU by name is for riscv64"):
        reproducible(find_target("cpu"))


def test_the_baselines_are_cpus_by_name():
    for architecture, name in BASELINES.items():
        assert find_target(f"cpu-{name}").cpu.architecture == architecture
