"""IREE 3.13 on CUDA gets a contraction wrong whose operand 0 carries the result's last dimension.

With an m16n8k16 instruction and operands (b, a) in place of (a, b), half of the elements of a plain
matrix product come out wrong; any storage order of a and b is fine. So operand 0 of the contraction
we hand to a GPU carries the second-last result dimension (m) and operand 1 the last one (n).
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from iree.compiler import ir

from conv_compiler.build import build
from conv_compiler.errors import Mismatch
from conv_compiler.ir.attributes import ops_with_role
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.layouts import LAYOUTS
from conv_compiler.strategies.registry import STRATEGIES
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.verification.reference import reference
from conv_compiler.verification.tolerance import tolerance
from conv_compiler.verification.verify import compare, inputs, verify_artifact
from tests.turns import in_turn

SIZES = {"dense": {"k": 5, "c": 4, "g": 2}, "depthwise": {"k": 1, "c": 1, "g": 6}}


def operand_roles(problem, chip, split_k):
    """The loops of (result, operand 0, operand 1) of the contraction each strategy hands over."""
    target = find_target(chip)
    offered = {one.name: one for one in choose(problem, target, None, split_k)}
    for name, strategy in offered.items():
        if STRATEGIES[name].normalise != "implicit_gemm":
            continue  # a pass writes its kernel: no contraction is handed over
        with ir.Context(), ir.Location.unknown():
            module = build(problem)
            for step in STRATEGIES[strategy.name].lower(problem, target, strategy).passes:
                step.apply(module)
            (op,) = ops_with_role(module, "contraction")
            maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
            loops = [[ir.AffineDimExpr(e).position for e in one.results] for one in maps]
            yield strategy.name, loops[2], loops[0], loops[1]


@pytest.mark.parametrize(
    ("row", "ndim", "sizes", "split_k"), in_turn(LAYOUTS, [1, 2, 3], SIZES, [1, 3])
)
def test_operand_0_carries_m_and_operand_1_carries_n(row, ndim, sizes, split_k):
    for taps in (1, 2):  # a pointwise problem takes a way of its own
        problem = ConvProblem(
            n=2, image=(4,) * ndim, filter=(taps,) * ndim, layout=row.spell(ndim), **SIZES[sizes]
        )
        found = list(operand_roles(problem, "sm_80", split_k))
        assert {name for name, *_ in found} == {"implicit_gemm", "vector_gemm"}
        for _, result, first, second in found:
            m, n = result[2], result[-1]  # s, g, m, a loop over taps or none, n
            assert m in first
            assert n not in first
            assert n in second
            assert m not in second


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_one_rule_for_all_chips(chip):
    problem = ConvProblem(n=4, k=32, c=32, image=(8, 8), filter=(3, 3))
    for _, result, first, second in operand_roles(problem, chip, "auto"):
        assert result[2] in first
        assert result[-1] in second


PROBLEM = ConvProblem(n=2, k=16, c=8, image=(6, 6), filter=(3, 3), pad_low=(1, 1))


class SwappedKernel:
    """A kernel that gives every second column its neighbour's sums, as the miscompile does."""

    device = "cuda"

    def put(self, array):
        return array

    def __call__(self, *operands):
        weight = reference(PROBLEM, *operands).astype(np.float16)
        weight[..., 1::2] = weight[..., 0::2]
        return SimpleNamespace(shape=weight.shape, to_host=lambda: weight)


@pytest.mark.parametrize("data", ["integers", "random"])
def test_verification_catches_a_swapped_kernel(data, monkeypatch):
    monkeypatch.setattr(
        sys.modules["conv_compiler.verification.verify"], "load", lambda *_: SwappedKernel()
    )
    strategy = choose(PROBLEM, find_target("sm_80"), "implicit_gemm")[0]
    artifact = SimpleNamespace(problem=PROBLEM, target="sm_80", strategy=strategy)
    report = verify_artifact(artifact, data)
    assert not report.passed
    assert 0.3 < report.comparison.wrong / report.comparison.elements <= 0.5
    with pytest.raises(Mismatch, match="WRONG: "):
        report.require()


@pytest.mark.parametrize("data", ["integers", "random"])
def test_one_wrong_weight_is_enough(data):
    want = reference(PROBLEM, *inputs(PROBLEM, data))
    got = want.astype(np.float16)
    assert compare(PROBLEM, got, want, tolerance(PROBLEM, data)).wrong == 0
    got[0, 3, 1, 1, 5] += 1
    assert compare(PROBLEM, got, want, tolerance(PROBLEM, data)).wrong == 1
