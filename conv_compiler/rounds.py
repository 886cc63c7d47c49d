"""Batches computed some images at a time: batches of any size, and tensors of 2 GiB and more.

A round is a problem of its own, over a slice of the batch, and all that a schedule knows of. The
host program goes from round to round (`build/rounds.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.dtypes import DTYPES, WIDER

if TYPE_CHECKING:
    from conv_compiler.problem import ConvProblem

# IREE reads smaller tensors of AMD chips by buffer instructions, which give 0 outside of them.
# Larger ones are read behind branches, and no loop with branches is software pipelined (its
# `ROCDLConfigureBufferInstructions` pass).
BUFFER_BYTES = 2**31
# A kernel may take it that its operands start at a multiple of so many bytes (IREE's alignment of
# bindings).
ALIGNMENT = 64


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """How a batch is cut: `images` at a time, `count` times; None where that is known at run time.

    The last round may have fewer images; they are copied, and zeros put behind them.
    """

    images: int
    count: int | None


def batch_is_outermost(problem: ConvProblem) -> bool:
    """Whether images follow one another in memory, in the input and in the output."""
    row = problem.layout_row
    return all(
        letters.removeprefix("G" if problem.g == 1 else "")[0] == "N"
        for letters in (row.input, row.output)
    )


def batch_axis(problem: ConvProblem, name: str) -> int:
    """Axis of the batch in the tensor `input` or `output`; only axes of one element lie before."""
    letters: str = getattr(problem.layout_row, name)
    return letters.index("N")


@lru_cache(maxsize=256)
def rounds_of(problem: ConvProblem) -> Rounds | None:
    """How a problem's batch is cut; None where all of it is computed at once.

    One tensor over BUFFER_BYTES is reason enough, where images are contiguous and one fits. Rounds
    are about equal, and start at ALIGNMENT where that makes the last one no more than a quarter of
    the batch longer than it need be: images copied cost less than more zeros computed.
    """
    if problem.dynamic_batch:
        return Rounds(images=problem.n, count=None)
    sizes = image_bytes(problem)
    most = (BUFFER_BYTES - 1) // max(sizes)
    if problem.n <= most or not most or not batch_is_outermost(problem):
        return None
    images = -(-problem.n // -(-problem.n // most))
    step = math.lcm(*(ALIGNMENT // math.gcd(ALIGNMENT, size) for size in sizes))
    aligned = min(-(-images // step), most // step) * step
    if aligned and -(-problem.n // aligned) * aligned - problem.n <= problem.n // 4:
        images = aligned
    return Rounds(images=images, count=-(-problem.n // images))


def image_bytes(problem: ConvProblem) -> tuple[int, int]:
    """Bytes of one image of the input and of the output: as they are or as they are multiplied.

    In terms, or of 8-bit floats as bf16, which many chips multiply in their place.
    """
    operand = problem.data_type.bytes
    if problem.data_type.is_f8:
        operand = DTYPES[WIDER].bytes
    if problem.terms:
        operand = max(operand, problem.terms.count * DTYPES[problem.terms.dtype].bytes)
    sizes = dict.fromkeys(problem.tensors[:2], operand)
    sizes[problem.tensors[2]] = problem.result_type.bytes
    image, output = math.prod(problem.input_shape), math.prod(problem.output_shape)
    return image // problem.n * sizes["input"], output // problem.n * sizes["output"]


def one_round(problem: ConvProblem) -> ConvProblem:
    """The problem of one round: itself, where all of the batch is computed at once.

    A weight gradient's rounds are summed in the accumulator's type before anything is made of them.
    """
    cut = rounds_of(problem)
    if cut is None:
        return problem
    whole = replace(problem, n=cut.images, dynamic_batch=False)
    if problem.direction != "bwd_weight":
        return whole
    return replace(whole, weight_dtype=problem.accumulator_type.name, elementwise="")
