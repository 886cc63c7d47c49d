# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problems computed in chunks of some images or groups: any batch, tensors of 2 GiB and more.

A chunk is a problem of its own, over a slice of the batch or of the groups, and all that a schedule
knows of. The host program goes from chunk to chunk (`build/batching.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.problem.dtypes import DTYPES, WIDER
from conv_compiler.problem.extended import over_extended

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem

# IREE reads smaller tensors of AMD chips by buffer instructions, which give 0 outside of them.
# Larger ones are read behind branches, and no loop with branches is software pipelined (its
# `ROCDLConfigureBufferInstructions` pass).
BUFFER_BYTES = 2**31
# A kernel may take it that its operands start at a multiple of so many bytes (IREE's alignment of
# bindings).
ALIGNMENT = 64
# Chunks of which the host program has a copy each; more are a loop, for the compiler takes a tenth
# of a second for each.
MOST_WRITTEN_OUT = 16


@dataclass(frozen=True, kw_only=True)
class Chunks:
    """How a problem is cut: `length` images ("N") or groups ("G") at a time, `count` times; None
    where that is known at run time.

    The last chunk may have fewer images; they are copied, and zeros put behind them.
    """

    axis: str = "N"
    length: int
    count: int | None


def cut_axis(problem: ConvProblem, name: str, axis: str) -> int | None:
    """Place of axis `N` or `G` in a tensor that is cut along it, None where it has no such axis;
    only axes of one element lie before."""
    letters: str = getattr(problem.layout_row, name)
    return letters.index(axis) if axis in letters else None


@lru_cache(maxsize=256)
def chunks_of(problem: ConvProblem) -> Chunks | None:
    """How a problem is cut; None where all of it is computed at once.

    One tensor over BUFFER_BYTES is reason enough, where images or groups are contiguous and one
    fits. Groups are cut evenly; a single one that is too large is cut further, into chunks of
    images. Those are about equal. They start at ALIGNMENT where that makes the last one no more
    than a quarter of the batch longer than it need be. Beyond, images copied cost less than more
    zeros computed.
    """
    if problem.sums_alone:  # no loop of its kernel is pipelined
        return None
    if problem.dynamic_batch:
        return Chunks(length=problem.n, count=None)
    sizes = tensor_bytes(problem)
    if max(sizes) < BUFFER_BYTES:
        return None
    if not problem.layout_row.batch_is_outermost(problem.g):
        return _chunks_of_groups(problem, max(sizes))
    image_bytes = [size // problem.n for size in sizes]
    most = (BUFFER_BYTES - 1) // max(image_bytes)
    if not most:
        return None
    images = -(-problem.n // -(-problem.n // most))
    step = math.lcm(*(ALIGNMENT // math.gcd(ALIGNMENT, size) for size in image_bytes))
    aligned = min(-(-images // step), most // step) * step
    if aligned and -(-problem.n // aligned) * aligned - problem.n <= problem.n // 4:
        images = aligned
    return Chunks(length=images, count=-(-problem.n // images))


def _chunks_of_groups(problem: ConvProblem, most_bytes: int) -> Chunks | None:
    """As few as keep the larger tensor's slices under BUFFER_BYTES, or one group each."""
    row = problem.layout_row
    if any(letters[0] != "G" for letters in (row.input, row.weight, row.output)):
        return None
    fitting = (n for n in divisors(problem.g) if n > 1 and most_bytes // n < BUFFER_BYTES)
    count = next(fitting, problem.g)
    return Chunks(axis="G", length=problem.g // count, count=count)


def divisors(number: int) -> list[int]:
    """The divisors of a number, smallest first, in time of its square root."""
    low = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return [*low, *(number // n for n in reversed(low) if n * n != number)]


def tensor_bytes(problem: ConvProblem) -> tuple[int, int]:
    """Bytes of the input and of the output: as they are or as they are multiplied.

    In terms, or of floats of 8 bits or fewer as bf16, which many chips multiply in their place.
    """
    operand = DTYPES[WIDER if problem.data_type.is_narrow else problem.dtype].bytes
    if problem.terms:
        operand = max(operand, problem.terms.count * DTYPES[problem.terms.dtype].bytes)
    sizes = dict.fromkeys(problem.tensors[:2], operand)
    sizes[problem.tensors[2]] = problem.result_type.bytes
    image, output = math.prod(over_extended(problem).input_shape), math.prod(problem.output_shape)
    return image * sizes["input"], output * sizes["output"]


def chunk_problem(problem: ConvProblem, cut: Chunks) -> ConvProblem:
    """The problem of one chunk, which may be cut again.

    Chunks of images of a weight gradient are summed in the accumulator's type before anything is
    made of them.
    """
    if cut.axis == "G":
        return replace(problem, g=cut.length)
    whole = replace(problem, n=cut.length, dynamic_batch=False)
    if not sums_chunks(problem, cut):
        return whole
    return replace(whole, weight_dtype=problem.accumulator_type.name, elementwise="")


def sums_chunks(problem: ConvProblem, cut: Chunks) -> bool:
    """Whether a chunk adds to the same result, and does not make a slice of it."""
    return cut.axis == "N" and problem.tensors[2] == "weight"


def innermost_chunk(problem: ConvProblem) -> ConvProblem:
    """The problem of the innermost chunks: itself, where all of it is computed at once."""
    cut = chunks_of(problem)
    return problem if cut is None else innermost_chunk(chunk_problem(problem, cut))
