"""Composable Kernel's own test problems, and the layers of RetinaNet, on the CPU.

By default each of Composable Kernel's typed tests meets each of its problems once, with the split
factors taken in turn; the rest of the product is marked slow.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conv_compiler.problem import ConvProblem
from conv_compiler.verify import verify, verify_artifact

DATA = Path(__file__).parent.parent / "data"
CK = json.loads((DATA / "ck_bwd_weight.json").read_text())
RETINANET = json.loads((DATA / "retinanet_bwd_weight.json").read_text())


def ck_cases():
    """Every (type, problem, split factor); all but one factor of a pair is slow."""
    turn = 0
    for typed in CK["types"]:
        types = {name: value for name, value in typed.items() if name != "ndim"}
        for values in CK["problems"][str(typed["ndim"])]:
            problem = ConvProblem.from_json({**values, **types})
            turn += 1
            for i, split_k in enumerate(CK["split_k"]):
                marks = [] if i == turn % len(CK["split_k"]) else [pytest.mark.slow]
                yield pytest.param(problem, split_k, id=f"{problem.name}-{split_k}", marks=marks)


def retinanet_cases():
    """Every layer, in f16 and bf16 in turn."""
    for i, layer in enumerate(RETINANET["layers"]):
        sizes = {name: value for name, value in layer.items() if name not in ("name", "layer")}
        problem = ConvProblem.from_json({**sizes, "dtype": ("f16", "bf16")[i % 2]})
        yield pytest.param(problem, id=f"{layer['name']}-{problem.name}")


def test_the_tables_are_whole():
    assert len(CK["types"]) == 34
    assert len(RETINANET["layers"]) == 37


def check(problem, split_k):
    """Verify integers exactly, random data within the tolerance that no split factor widens."""
    report = verify(problem, split_k=split_k, budget=0.0).require()
    verify_artifact(report.artifact, data="random").require()


@pytest.mark.parametrize(("problem", "split_k"), list(ck_cases()))
def test_composable_kernel(problem, split_k):
    check(problem, split_k)


@pytest.mark.parametrize("problem", list(retinanet_cases()))
def test_retinanet(problem):
    check(problem, "auto")
