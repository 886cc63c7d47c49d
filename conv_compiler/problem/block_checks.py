# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a problem with block scales must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.errors import UnsupportedProblem, did_you_mean
from conv_compiler.problem.block_scales import ALONG, BLOCK_SCALES, row_of
from conv_compiler.problem.dtypes import WIDER, compute_text, name_of_dtype

if TYPE_CHECKING:
    from conv_compiler.problem.shapes import Shapes


def compute_of(problem: Shapes, dtype: str) -> str:
    """`compute` as it is spelled; elements with scales may be multiplied as wider numbers."""
    if problem.block_scales and name_of_dtype(problem.compute) == WIDER:
        return WIDER
    return compute_text(problem.compute, dtype)


def check_packed(problem: Shapes) -> None:
    """Refuse packed elements that do not fill whole bytes, or have no scales, by
    UnsupportedProblem."""
    row = problem.data_type
    if not row.is_packed:
        return
    if not problem.block_scales:
        raise UnsupportedProblem(
            f"dtype {row.name}: elements of {row.bits} bits have block scales; set block scales to "
            f"{' or '.join(BLOCK_SCALES)}"
        )
    elements, size = row.packed
    for name, shape in zip(problem.tensors, problem.operand_shapes, strict=False):
        if shape[-1] % elements:
            raise UnsupportedProblem(
                f"{name} {shape}: {elements} elements of {row.name} along the last axis are "
                f"{size} byte{'s' * (size > 1)}; make it a multiple of {elements}"
            )


def check_block_scales(problem: Shapes) -> None:
    """Refuse scales that the other fields leave no room for, by UnsupportedProblem."""
    what = f"block scales {problem.block_scales}"
    row = row_of(problem)
    if row is None:
        near, known = did_you_mean(problem.block_scales, BLOCK_SCALES), ", ".join(BLOCK_SCALES)
        raise UnsupportedProblem(f"{what}: not in the table; {near}known: {known}")
    if problem.sums_alone:
        raise UnsupportedProblem(f"{what}: {problem.direction} multiplies nothing; leave them out")
    if problem.dtype not in row.dtypes:
        known = " or ".join(row.dtypes)
        raise UnsupportedProblem(f"{what}: not of {problem.dtype} elements; use {known}")
    if problem.weight_dtype not in row.results:
        known = " or ".join(row.results)
        raise UnsupportedProblem(f"{what}: no results of {problem.weight_dtype}; use {known}")
    if problem.compute not in ("", WIDER):
        raise UnsupportedProblem(
            f"compute {problem.compute}: elements with scales are multiplied as such or as "
            f"{WIDER}; leave it out"
        )
    letter = ALONG[problem.direction].lower()
    if (size := getattr(problem, letter)) % row.size:
        raise UnsupportedProblem(
            f"{letter} {size}: blocks of {row.size} lie along it in {problem.direction}; use a "
            f"multiple of {row.size}"
        )
    unbuilt = {
        "a dynamic batch": problem.dynamic_batch,
        "a kept weight": problem.kept_weight,
        "slices": problem.input_within or problem.weight_within or problem.output_within,
    }
    for other, is_there in unbuilt.items():
        if is_there:
            raise UnsupportedProblem(f"{what} beside {other}: not built; leave one out")
