"""Composable Kernel's own test problems, and the layers of RetinaNet, on the CPU.

By default each of Composable Kernel's typed tests meets every third of its problems, with one split
factor, both in turn, and every third layer runs; the rest of the product is marked slow.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conv_compiler.problem.conv_problem import ConvProblem
from tests.checks import check

DATA = Path(__file__).parent.parent / "data"
CK = json.loads((DATA / "ck_bwd_weight.json").read_text())
SAMPLE = 3  # one in so many is run by default
RETINANET = json.loads((DATA / "retinanet_bwd_weight.json").read_text())


def ck_cases():
    """Every (type, problem, split factor); all but one factor of every third pair are slow."""
    turn, factors = 0, len(CK["split_k"])
    for typed in CK["types"]:
        types = {name: value for name, value in typed.items() if name != "ndim"}
        for values in CK["problems"][str(typed["ndim"])]:
            problem = ConvProblem.from_json({**values, **types})
            turn += 1
            for i, split_k in enumerate(CK["split_k"]):
                chosen = turn % SAMPLE == 0 and i == turn // SAMPLE % factors
                marks = [] if chosen else [pytest.mark.slow]
                yield pytest.param(problem, split_k, id=f"{problem.name}-{split_k}", marks=marks)


def retinanet_cases():
    """Every layer, in f16 and bf16 in turn."""
    for i, layer in enumerate(RETINANET["layers"]):
        sizes = {name: value for name, value in layer.items() if name not in ("name", "layer")}
        problem = ConvProblem.from_json({**sizes, "dtype": ("f16", "bf16")[i % 2]})
        marks = [pytest.mark.slow] if i % SAMPLE else []
        yield pytest.param(problem, id=f"{layer['name']}-{problem.name}", marks=marks)


def test_the_tables_are_whole():
    assert len(CK["types"]) == 34
    assert len(RETINANET["layers"]) == 37


@pytest.mark.parametrize(("problem", "split_k"), list(ck_cases()))
def test_composable_kernel(problem, split_k):
    check(problem, split_k=split_k)


@pytest.mark.parametrize("problem", list(retinanet_cases()))
def test_retinanet(problem):
    check(problem)
