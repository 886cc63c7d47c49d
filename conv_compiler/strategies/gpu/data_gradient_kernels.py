# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long the kernels take that the payload of a data gradient has beside its GEMM.

One arranges the weight by phases, one puts phases in place (`build/bwd_data.py`). Every GEMM of a
problem has the first one. So it decides only against a strategy that replaces the whole payload.
A matrix kernel may put phases in place itself (`phases_in_place.py`).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_data import is_read_as_it_lies
from conv_compiler.model.counts import Counts, KernelCounts
from conv_compiler.model.estimate import estimate
from conv_compiler.model.facts import rank_facts
from conv_compiler.model.launch import Launch
from conv_compiler.problem.canonical import data_gradient_of, phases

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


@lru_cache(maxsize=1024)
def arranging_seconds(wgrad: ConvProblem, target: Target) -> float:
    """Modelled seconds of the first one: bytes and a launch; 0 where the problem has none."""
    problem = data_gradient_of(wgrad)
    if problem is None or is_read_as_it_lies(problem, phases(problem)):
        return 0.0
    read = math.prod(problem.weight_shape) * problem.data_type.bytes
    return _moved(read, math.prod(wgrad.output_shape) * problem.data_type.bytes, target)


@lru_cache(maxsize=1024)
def placing_seconds(wgrad: ConvProblem, target: Target) -> float:
    """Modelled seconds of the second one, which finds in cache what it reads."""
    problem = data_gradient_of(wgrad)
    if problem is None or set(problem.stride) == {1}:
        return 0.0
    found = math.prod(wgrad.weight_shape) * problem.result_type.bytes
    placed = math.prod(problem.result_shape) * problem.result_type.bytes
    return _moved(found, placed, target, warm=found)


def _moved(read: int, written: int, target: Target, warm: int = 0) -> float:
    """Seconds of a kernel that does nothing but read and write so many bytes."""
    nothing = KernelCounts(body=(Counts(),), iterations=0, outside=Counts(), source="predicted")
    launch = Launch(
        workgroups=rank_facts(target).units,
        waves=1,
        vgprs=1,
        read_bytes=read,
        written_bytes=written,
        warm_bytes=warm,
    )
    return estimate(nothing, launch, target, rank_facts(target)).seconds
