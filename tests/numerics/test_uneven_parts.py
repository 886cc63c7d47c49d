"""Parts of a split that are longer than the pixels that are left: one operand reads its last pixel
there, the other has zeros."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load
from conv_compiler.strategies.gpu.loop_order import summed_forms
from conv_compiler.strategies.gpu.tail_masking import unmasked_operand
from conv_compiler.strategies.gpu.tilings import mma_tilings, other_copies
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import find_target
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.reference import reference
from conv_compiler.verification.verify import verify
from tests.chips import EXECUTED

# 35 pixels, 7 rows, 21 rows of 3 images: none a multiple of the parts.
WHOLE = ConvProblem(n=32, k=32, c=64, image=(7, 5), filter=(3, 3), pad_low=(1, 1))
PROBLEMS = {
    "f16": WHOLE,
    "bf16": replace(WHOLE, dtype="bf16", weight_dtype="", g=2, layout="GNHWC_GKYXC_GNHWK"),
    "i8": replace(WHOLE, dtype="i8", weight_dtype=""),
    "pointwise": replace(WHOLE, filter=(1, 1), pad_low=(0, 0), pad_high=(0, 0)),
    "strided": replace(WHOLE, image=(13, 9), stride=(2, 2), filter=(3, 2), pad_low=(1, 0)),
    "channels_first": replace(WHOLE, layout="NGCHW_GKCYX_NGKHW"),
}
CASES = [
    pytest.param(
        problem,
        chip,
        in_rows,
        id=f"{name}-{chip}{'-rows' * in_rows}",
        marks=[] if (number + turn + in_rows) % len(EXECUTED) == 0 else [pytest.mark.slow],
    )
    for turn, chip in enumerate(EXECUTED)
    for number, (name, problem) in enumerate(PROBLEMS.items())
    for in_rows in (False, True)
    if not (in_rows and name in ("strided", "pointwise"))
]


def uneven(problem, chip, in_rows, parts):
    """A small tiling with all pixels outside, of which one operand needs no zeros."""
    target = find_target(chip)
    outside, inside = summed_forms(problem, in_rows)[1]
    return next(
        one
        for one in (
            replace(tiling, outside=outside, inside=inside)
            for _, tiling in mma_tilings(problem, target)
            if tiling.taps_in_rows == in_rows and tiling.merged_groups == 1
        )
        if unmasked_operand(problem, target, one, parts)
    )


@pytest.mark.parametrize(("problem", "chip", "in_rows"), CASES)
def test_uneven_parts(problem, chip, in_rows):
    tiling = uneven(problem, chip, in_rows, 4)
    strategy = Strategy(name="implicit_gemm", tiling=tiling, split_k=4)
    verify(problem, chip, strategy, 4, device="vgpu", budget=0.0).require()


@pytest.mark.parametrize("in_rows", [False, True])
def test_what_is_not_finite_goes_no_further_than_its_channel(in_rows):
    """The last pixel is read for others that are not there: only its own channel may show it."""
    tiling = uneven(WHOLE, "gfx942", in_rows, 4)
    artifact = compile(WHOLE, "gfx942", Strategy(name="implicit_gemm", tiling=tiling, split_k=4))
    operands = inputs(WHOLE, "integers", 0)
    expected = reference(WHOLE, *operands)
    channel, plain = 5, WHOLE.input_shape if in_rows else WHOLE.output_shape
    next(one for one in operands if one.shape == plain)[-1, -1, -1, 0, channel] = np.inf
    found = np.asarray(load(artifact, "vgpu")(*operands))
    axis = -1 if in_rows else 1
    others = np.arange(found.shape[axis]) != channel
    assert np.isfinite(found.compress(others, axis)).all()
    assert (found.compress(others, axis) == expected.compress(others, axis)).all()
    assert not np.isfinite(found.take(channel, axis)).all()


@pytest.mark.parametrize("chip", ["gfx1100", "gfx1201"])
def test_elements_written_one_by_one(chip):
    problem, target = PROBLEMS["pointwise"], find_target(chip)
    outside, inside = summed_forms(problem)[1]
    single = next(
        one
        for mma, tiling in mma_tilings(problem, target, (32, 64, 32))
        for one in other_copies(problem, target, mma, tiling)
        if one.copy_a == one.copy_b == (8, 1)
    )
    tiling = replace(single, outside=outside, inside=inside)
    assert unmasked_operand(problem, target, tiling, 4) == "b"
    strategy = Strategy(name="implicit_gemm", tiling=tiling, split_k=4)
    verify(problem, chip, strategy, 4, device="vgpu", budget=0.0).require()
