# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One problem beside its peers, directly or through PyTorch's call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from conv_compiler.benchmark.measure import OURS, Make, Result, check_of, measure
from conv_compiler.benchmark.ours import our_side
from conv_compiler.benchmark.sides import Case
from conv_compiler.benchmark.torch_peer import through_side
from conv_compiler.benchmark.turns import Clock, Plan
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.layouts import find_layout
from conv_compiler.problem.slices import has_slices
from conv_compiler.targets.resolve import resolve
from conv_compiler.verification.inputs import inputs, without_denormals
from conv_compiler.verification.reference import multiplicand
from conv_compiler.verification.verdict import short_sums
from conv_compiler.verification.verify import check_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.benchmark.peers import Peer
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import StrategyRequest
    from conv_compiler.targets import Target

# What `--through torch` makes of a problem.
THROUGH_DTYPES, THROUGH_LAYOUTS = ("f32", "bf16"), ("NCHW", "NHWC")


def variants(problem: ConvProblem) -> dict[str, ConvProblem]:
    """The types and layouts in which a network's layer is called, by their names."""
    return {
        f"{dtype} {layout}": replace(
            problem,
            dtype=dtype,
            weight_dtype=dtype,
            layout=find_layout(layout, problem.ndim).spell(problem.ndim),
        )
        for dtype in THROUGH_DTYPES
        for layout in THROUGH_LAYOUTS
    }


def shared_operands(
    problem: ConvProblem, target: Target, data: str, seed: int
) -> tuple[NDArray[Any], ...]:
    """The operands of all sides: numbers that ours multiplies as they are.

    On some targets ours rounds operands to another type, or takes denormals as 0. Random data are
    rounded so beforehand, and every side computes the same.
    """
    if has_slices(problem):
        raise UnsupportedProblem(
            f"problem {problem.name}: peers take whole tensors; leave the larger shapes out"
        )
    if problem.block_scales:
        raise UnsupportedProblem(
            f"problem {problem.name}: peers take no block scales; leave them out"
        )
    first, second, *extra = inputs(problem, data, seed)
    asked = resolve(problem, target).asked
    if problem.operand_ops == (None, None) and not problem.data_type.is_integer:
        rounded = []
        for number, array in enumerate((first, second)):
            whole = without_denormals(asked, number, array, target.flushed)
            rounded.append(multiplicand(asked, number, whole).astype(array.dtype))
        first, second = rounded
    return (first, second, *extra)


def bench(
    name: str,
    problem: ConvProblem,
    target: Target,
    device: str,
    peers: Sequence[Peer],
    *,
    strategy: StrategyRequest | None = None,
    split_k: int | str = "auto",
    through: str = "",
    data: str = "integers",
    seed: int = 0,
    plan: Plan | None = None,
    tuned: bool = True,
    clock: Clock = time.perf_counter,
) -> Result:
    """Compare results and times of a problem on all sides.

    With `through` "torch" our side is our op of PyTorch's, else a kernel's own call. Raises what
    `compile` and `load` raise of ours; what peers are refused is in the result.
    """
    plan = Plan() if plan is None else plan
    check_size(problem, 1)
    case = Case(
        problem=problem,
        operands=shared_operands(problem, target, data, seed),
        target=target,
        device=device,
    )
    short = None
    if through:
        ours: Make = partial(through_side, case)
    else:
        artifact = compile(problem, target.name, strategy, split_k, tuned=tuned)
        ours = partial(our_side, case, artifact)
        short = short_sums(artifact)
    makers: dict[str, Make] = {OURS: ours}
    makers |= {peer.name: partial(peer.side, case) for peer in peers}
    sides = measure(makers, check_of(case, data, short), plan, clock)
    return Result(name=name, problem=problem, target=target.name, device=device, sides=sides)
