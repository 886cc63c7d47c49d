"""Composable Kernel's own test problems, and the layers of RetinaNet, on the CPU.

By default each of Composable Kernel's typed tests meets every sixth of its problems, with one split
factor, both in turn, at a batch for which the reference takes a moment; and every sixth layer runs.
The whole product, at every problem's own batch, is marked slow.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from conv_compiler.problem.canonical import summed_products
from conv_compiler.problem.conv_problem import ConvProblem
from tests.checks import check

DATA = Path(__file__).parent.parent / "data"
CK = json.loads((DATA / "ck_bwd_weight.json").read_text())
SAMPLE, LAYER_SAMPLE = 12, 8  # one in so many is run by default
MOST_FLOPS, MOST_ELEMENTS = 2**25, 2**23  # of a problem by default; elements of the image by taps
RETINANET = json.loads((DATA / "retinanet_bwd_weight.json").read_text())


def smaller(problem):
    """A problem of fewer images, where its reference would take seconds."""
    while problem.n > 1 and (
        problem.flops > MOST_FLOPS
        or math.prod(problem.input_shape) * math.prod(problem.filter) > MOST_ELEMENTS
    ):
        problem = problem.with_batch(problem.n // 2)
    return problem


def ck_cases():
    """Every (type, problem, split factor), slow; every twelfth pair with one, made smaller."""
    turn, factors = 0, len(CK["split_k"])
    for typed in CK["types"]:
        types = {name: value for name, value in typed.items() if name != "ndim"}
        for values in CK["problems"][str(typed["ndim"])]:
            problem = ConvProblem.from_json({**values, **types})
            turn += 1
            for i, split_k in enumerate(CK["split_k"]):
                quick = turn % SAMPLE == 0 and i == turn // SAMPLE % factors
                few = smaller(problem)
                if quick:
                    parts = min(split_k, summed_products(few))
                    yield pytest.param(few, parts, id=f"few-{few.name}-{parts}")
                if few != problem or not quick:
                    name = f"{problem.name}-{split_k}"
                    yield pytest.param(problem, split_k, id=name, marks=[pytest.mark.slow])


def retinanet_cases():
    """Every layer, slow, in f16 and bf16 in turn; every eighth made smaller."""
    for i, layer in enumerate(RETINANET["layers"]):
        sizes = {name: value for name, value in layer.items() if name not in ("name", "layer")}
        problem = ConvProblem.from_json({**sizes, "dtype": ("f16", "bf16")[i // LAYER_SAMPLE % 2]})
        few = smaller(problem)
        if quick := i % LAYER_SAMPLE == 0:
            yield pytest.param(few, id=f"few-{layer['name']}-{few.name}")
        if few != problem or not quick:
            name = f"{layer['name']}-{problem.name}"
            yield pytest.param(problem, id=name, marks=[pytest.mark.slow])


def test_the_tables_are_whole():
    assert len(CK["types"]) == 34
    assert len(RETINANET["layers"]) == 37


@pytest.mark.parametrize(("problem", "split_k"), list(ck_cases()))
def test_composable_kernel(problem, split_k):
    check(problem, split_k=split_k)


@pytest.mark.parametrize("problem", list(retinanet_cases()))
def test_retinanet(problem):
    check(problem)
