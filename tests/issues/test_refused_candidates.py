"""A candidate that the compiler refuses is rejected in favour of the next one, as one that spills
is."""

from __future__ import annotations

import importlib

import pytest

from conv_compiler.errors import CompileFailed, CompilerRefused
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage.cache import Cache
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target

COMPILE = importlib.import_module("conv_compiler.compiler.compile")
CANDIDATES = importlib.import_module("conv_compiler.compiler.candidates")
PROBLEM = ConvProblem(n=2, k=32, c=32, image=(6, 6), filter=(3, 3))


def refusing(count, tried):
    """`stage_texts` that refuses the first `count` candidates."""
    real = CANDIDATES.stage_texts

    def stage_texts(problem, strategy, work, *rest):
        tried.append(strategy)
        if len(tried) <= count:
            raise CompilerRefused("iree-compile: exit code 1: expected rank")
        return real(problem, strategy, work, *rest)

    return stage_texts


def test_the_next_one_is_taken_and_the_record_says_why(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(CANDIDATES, "stage_texts", refusing(1, tried))
    found = COMPILE.compile(PROBLEM, "gfx942", cache=Cache(tmp_path))
    assert tuple(tried) == choose(PROBLEM, find_target("gfx942"))[:2]
    assert found.strategy == tried[1]
    assert found.rejected == (f"{tried[0].text}: iree-compile: exit code 1: expected rank",)


def test_the_last_ones_error_is_raised(tmp_path, monkeypatch):
    monkeypatch.setattr(CANDIDATES, "stage_texts", refusing(100, tried := []))
    with pytest.raises(CompileFailed, match="expected rank"):
        COMPILE.compile(PROBLEM, "gfx942", "implicit_gemm", cache=Cache(tmp_path))
    assert len(tried) == len(choose(PROBLEM, find_target("gfx942"), "implicit_gemm"))
