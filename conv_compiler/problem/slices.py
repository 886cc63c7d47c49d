# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands and results that are slices of larger tensors: rows with a pitch, some channels of all.

A slice has the problem's shape, and the strides of a dense tensor of the larger shape. A kernel
takes the larger tensor from the slice's first element on, and touches nothing beside the slice. The
tensor d of an elementwise op lies as the result does.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.amax import in_front
from conv_compiler.problem.batching import BUFFER_BYTES, chunks_of, cut_axis
from conv_compiler.problem.directions import TENSORS

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.problem.shapes import Shapes

FIELDS = tuple(f"{name}_within" for name in TENSORS)
Shape = tuple[int, ...]


def within_of(problem: Shapes, name: str) -> tuple[int, ...]:
    """The shape that a tensor (one of TENSORS) is a slice of; its own, where it is whole."""
    within: tuple[int, ...] = getattr(problem, f"{name}_within", ())
    shape: tuple[int, ...] = getattr(problem, f"{name}_shape")
    return within or shape


def has_slices(problem: Shapes) -> bool:
    """Whether an operand or the result is a slice."""
    return any(getattr(problem, field) for field in FIELDS)


def is_sliced(problem: Shapes, name: str) -> bool:
    """Whether a tensor, one of the problem's, is a slice."""
    return bool(getattr(problem, f"{name}_within", ()))


def taken_shapes(problem: Shapes) -> tuple[tuple[Shape, Shape], ...]:
    """(larger shape, own shape) of each operand, scales and d among them; alike where it is a whole
    tensor."""
    *operands, result = problem.tensors
    found = [
        (getattr(problem, f"{name}_within") or shape, shape)
        for name, shape in zip(operands, problem.held_shapes, strict=True)
    ]
    found += [(shape, shape) for shape in problem.scale_shapes]
    if problem.takes_d:
        own = problem.d_shape
        found.append((within_of(problem, result) if own == problem.result_shape else own, own))
    return tuple(found)


def whole(problem: ConvProblem) -> ConvProblem:
    """The problem of operands that are tensors of their own; itself, where all are."""
    return _whole(problem) if has_slices(problem) else problem


@lru_cache(maxsize=256)
def _whole(problem: ConvProblem) -> ConvProblem:
    return replace(problem, input_within=(), weight_within=(), output_within=())


def of_batches(problem: ConvProblem) -> ConvProblem:
    """The problem with no slices but those of a batch of any size, of which each chunk cuts its
    own; that of the result stands for its d."""
    if not (problem.dynamic_batch and has_slices(problem)):
        return whole(problem)
    apart = (name for name in TENSORS if cut_axis(problem, name, "N") is None)
    without: Any = {f"{name}_within": () for name in apart}
    return replace(problem, **without)


def check_memory(problem: ConvProblem) -> None:
    """Refuse slices and block scales where the problem is computed in chunks, by
    UnsupportedProblem."""
    *operands, result = problem.tensors
    if problem.block_scales and chunks_of(in_front(problem)):
        raise UnsupportedProblem(
            f"problem {problem.name}: block scales are not built where a tensor has 2 GiB or more "
            "as bf16; use a smaller batch"
        )
    sizes = [problem.data_type.bytes_of(math.prod(within_of(problem, name))) for name in operands]
    sizes.append(math.prod(within_of(problem, result)) * problem.result_type.bytes)
    in_chunks = not problem.dynamic_batch and chunks_of(whole(problem))
    if has_slices(problem) and (max(sizes) >= BUFFER_BYTES or in_chunks):
        raise UnsupportedProblem(
            f"problem {problem.name}: slices are not built where a tensor has 2 GiB or more; use a "
            "smaller batch"
        )
