"""Parts of a split that hold no product are not made.

On gfx1100 a sum of 1144 products in 128 parts filled 9 of them and executed 14 times the matrix
work: a part is whole tiles of gemm_k.
"""

from __future__ import annotations

import re

import pytest

from conv_compiler.compiler.stages import stage_texts
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.verification.verify import verify

SEEN = ConvProblem(n=8, g=2, k=32, c=24, image=(13, 11), filter=(3, 3), pad_low=(1, 1))
DEPTHWISE = ConvProblem(n=3, g=8, k=1, c=1, image=(7, 9), filter=(3, 3), pad_low=(1, 1))
A = re.compile(
    r'operand = "a"}.*?output_pad_high = \[([^]]*)\].*?outs\(%\w+ : tensor<([\dx]+)x\w+>\)'
)


@pytest.mark.parametrize("split_k", [2, 9, 13, 16, 64, 128])
@pytest.mark.parametrize("strategy", ["implicit_gemm", "vector_gemm"])
@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "sm_80"])
def test_the_zeros_behind_the_last_product_are_less_than_a_part(chip, strategy, split_k, tmp_path):
    target = find_target(chip)
    for one in choose(SEEN, target, strategy, split_k)[:2]:
        text = stage_texts(resolve(SEEN, target, one.mma), one, tmp_path, last="normalised")[
            "normalised"
        ]
        match = A.search(text)
        if match is None:  # nothing is added at all
            assert "output_pad_high" not in text.partition('operand = "b"')[0]
            continue
        zeros, shape = ([int(n) for n in re.split("[x, ]+", part)] for part in match.groups())
        assert shape[1] % one.split_k == 0
        assert zeros[1] < shape[1] // one.split_k, one.text


@pytest.mark.parametrize("split_k", [2, 5, 7, 40, 100, 127])
@pytest.mark.parametrize("problem", [SEEN, DEPTHWISE], ids=["grouped", "depthwise"])
@pytest.mark.parametrize("target", ["cpu-znver4", "cpu-sapphirerapids", "gfx942"])
def test_as_many_parts_as_hold_products(target, problem, split_k):
    row = find_target(target)
    for one in choose(problem, row, split_k=split_k):
        assert 1 <= one.split_k <= split_k
        # Asked for what it is, it is that.
        again = choose(problem, row, one, one.split_k)[0]
        assert again.split_k == one.split_k


@pytest.mark.parametrize("target", ["cpu", "gfx1100"])
def test_the_report_says_how_many_there_are(target):
    report = verify(SEEN, target, split_k=128, device="vgpu" if target != "cpu" else None).require()
    assert report.split_k == report.artifact.strategy.split_k < 128
