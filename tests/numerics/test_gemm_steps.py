# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of `mlir/normalise/implicit_gemm.mlir`, one by one: each leaves a module that computes
the weight gradient, in every form of the GEMM.

The compiler's own code for the CPU runs what a step leaves, on integers: sums are exact.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from iree.compiler import ir

from conv_compiler.build import build
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.im2col import Im2col
from conv_compiler.passes.split_k import SplitK
from conv_compiler.passes.sum_parts import SumParts
from conv_compiler.problem.conv_problem import ConvProblem
from tests.checks import wrong_on_the_cpu

# Odd sizes: tiles of 4 and 8 divide none but those of whole tiles.
ODD = ConvProblem(
    n=3, g=2, k=5, c=3, image=(5, 4), filter=(2, 3), stride=(2, 1), dilation=(1, 1),
    pad_low=(1, 0), dtype="f32",
)  # fmt: skip
# IREE's own code for this form takes a minute to compile with six taps.
FEW_TAPS = replace(ODD, filter=(2, 1))
EVEN = ConvProblem(n=4, k=8, c=8, image=(4, 5), filter=(2, 2), dtype="f32")
ROWS = replace(ODD, stride=(1, 1), pad_low=(1, 1), pad_high=(0, 1))
SINGLE = ConvProblem(n=2, k=1, c=1, image=(3, 2), filter=(1, 1), dtype="f32")
TILE = {"tile_m": 4, "tile_n": 8, "tile_k": 4}
OUTSIDE = {"outside": ("ho", "wo"), "inside": ("n",)}
STORED = {"columns_as_stored": True, **TILE}
CHUNKS = {**TILE, "tile_k": 2, "outside": ("ho", "wo", "no"), "inside": ("n",)}
MERGED = {**TILE, "merged_groups": 2}
FUSED = replace(EVEN, elementwise="scale_add(2)")

# A problem, what im2col is told, parts, and whether the kernel stores the result.
FORMS = {
    "plain": (ODD, TILE, 3, False),
    "one part, other order": (replace(ODD, layout="NGCHW_GKCYX_NGKHW"), TILE, 1, False),
    "one part, in order": (EVEN, TILE, 1, False),
    "pixels outside": (ODD, {**TILE, **OUTSIDE}, 4, False),
    "rows of pixels outside": (ODD, {**TILE, "outside": ("n", "ho"), "inside": ("wo",)}, 2, False),
    "taps outside": (ODD, {**TILE, **OUTSIDE, "taps_outside": True}, 2, False),
    "chunks": (EVEN, CHUNKS, 3, False),
    "taps in rows": (ROWS, {**TILE, "taps_in_rows": True}, 2, False),
    "merged groups": (ODD, MERGED, 3, False),
    "merged groups, taps outside": (FEW_TAPS, {**MERGED, "taps_outside": True}, 1, False),
    "a weight of one element": (SINGLE, TILE, 1, False),
    "a weight of one element in parts": (SINGLE, TILE, 2, False),
    "epilogue": (replace(ODD, elementwise="scale_add(2)"), TILE, 2, False),
    "stored": (EVEN, STORED, 1, True),
    "stored, taps outside": (FUSED, {**STORED, "taps_outside": True}, 1, True),
    "stored, channels first": (
        replace(FUSED, direction="fwd"), {**STORED, **OUTSIDE}, 1, True
    ),
}  # fmt: skip
# One step of each form in turn by default, the others with the slow tests.
CASES = [
    pytest.param(form, step, marks=[] if number % 3 == step else [pytest.mark.slow])
    for number, form in enumerate(FORMS)
    for step in range(3)
]


def after_each_step(form):
    """The module of a form after each of the three steps, verified."""
    problem, options, parts, stores = FORMS[form]
    texts = []
    with ir.Context(), ir.Location.unknown():
        module = build(problem)
        for step in (
            Im2col(**options),
            SplitK(split_k=parts, tile_k=options["tile_k"]),
            SumParts(stores_result=stores),
        ):
            step.apply(module)
            assert module.operation.verify()
            texts.append(str(module))
    return texts


@pytest.mark.parametrize("form", FORMS)
def test_each_step_leaves_its_own_module(form):
    first, second, last = after_each_step(form)
    parts = FORMS[form][2]
    assert 'role = "placement"' in first
    assert 'role = "reduction"' not in first
    assert 'role = "placement"' in second
    assert 'role = "reduction"' in second
    assert f"tensor<{parts}x" in second
    assert 'role = "placement"' not in last


@pytest.mark.parametrize(("form", "step"), CASES)
def test_each_step_computes_the_gradient(form, step, tmp_path):
    text = after_each_step(form)[step]
    assert wrong_on_the_cpu(FORMS[form][0], text, tmp_path) == 0


@pytest.mark.parametrize(
    ("form", "steps"),
    [("plain", (0, 0)), ("plain", (1,)), ("plain", (2,)), ("plain", (0, 2)), ("plain", (0, 1, 1))],
)
def test_a_step_without_the_one_before_is_refused(form, steps):
    problem, options, parts, _ = FORMS[form]
    kinds = (Im2col(**options), SplitK(split_k=parts, tile_k=4), SumParts())
    with ir.Context(), ir.Location.unknown():
        module = build(problem)
        for step in steps[:-1]:
            kinds[step].apply(module)
        with pytest.raises(UnsupportedStrategy):
            kinds[steps[-1]].apply(module)
