# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A problem as a target computes it: settled once, then handed from stage to stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import canonical
from conv_compiler.problem.slices import check_memory
from conv_compiler.targets.compute import for_target

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """A problem, the chip it is for, and the weight gradient that computes it there.

    `stated` is what the user asked for, and `asked` the same with the types it is computed in
    settled for the chip; the payload is built from it. `wgrad` is the equivalent weight gradient
    of one chunk of its batch, over the terms of its products. Strategies, schedules and proofs
    read nothing else. A batch of 0 has no products, and no weight gradient computes it: `wgrad` is
    then `asked`.
    """

    stated: ConvProblem
    asked: ConvProblem
    target: Target
    wgrad: ConvProblem


def resolve(problem: ConvProblem, target: Target, mma: str | None = None) -> Resolved:
    """Settle a problem for a target, and for the matrix instruction `mma` of a chosen strategy.

    `mma` is an instruction's name, empty for vector code, and None where no strategy is chosen yet.
    Raises UnsupportedProblem where the equivalent weight gradient has sizes that are too large, or
    slices are in tensors that are.
    """
    check_memory(problem)
    asked = for_target(problem, target, mma)
    wgrad = canonical(asked) if asked.n else asked
    return Resolved(stated=problem, asked=asked, target=target, wgrad=wgrad)
