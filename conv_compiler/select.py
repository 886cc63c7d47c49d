"""Which strategy computes a problem: the table of schedules, and the choice among candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from conv_compiler import cpu, gpu
from conv_compiler.errors import UnsupportedStrategy, UnsupportedTarget
from conv_compiler.split_k import auto_split_k, check_split_k
from conv_compiler.strategy import GpuTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem import ConvProblem
    from conv_compiler.schedule import Schedule
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class StrategyRow:
    """One schedule: where it runs and how its numbers, passes and script are found.

    `candidates` lists tilings, best first and with split_k left open (0); none when the schedule
    does not fit. `auto_split` gives the parts for a tiling.
    """

    name: str
    description: str
    backends: tuple[str, ...]
    candidates: Callable[[ConvProblem, Target], tuple[Strategy, ...]]
    auto_split: Callable[[ConvProblem, Target, Strategy], int]
    passes: Callable[[ConvProblem, Target, Strategy], tuple[Pass, ...]]
    schedule: Callable[[ConvProblem, Target, Strategy], Schedule]


def _gpu_split(problem: ConvProblem, target: Target, strategy: Strategy) -> int:
    assert isinstance(strategy.tiling, GpuTiling)
    tiles, k_tiles = gpu.gemm_tiles(problem, strategy.tiling)
    return auto_split_k(tiles=tiles, slots=gpu.occupancy_slots(target), k_tiles=k_tiles)


GPU_BACKENDS = ("rocm", "cuda")

STRATEGIES = MappingProxyType(
    {
        row.name: row
        for row in (
            StrategyRow(
                name="implicit_gemm",
                description="im2col into LDS, matrix instructions, software pipelined",
                backends=GPU_BACKENDS,
                candidates=gpu.mma_candidates,
                auto_split=_gpu_split,
                passes=gpu.passes,
                schedule=gpu.mma_schedule,
            ),
            StrategyRow(
                name="vector_gemm",
                description="sums in registers, vector fma; where no matrix instruction fits",
                backends=GPU_BACKENDS,
                candidates=gpu.vector_candidates,
                auto_split=_gpu_split,
                passes=gpu.passes,
                schedule=gpu.vector_schedule,
            ),
            *(
                StrategyRow(
                    name=name,
                    description=description,
                    backends=("llvm-cpu",),
                    candidates=candidates,
                    auto_split=cpu.auto_split,
                    passes=cpu.passes,
                    schedule=cpu.schedule,
                )
                for name, description, candidates in cpu.ROWS
            ),
        )
    }
)


def candidates(
    problem: ConvProblem, target: Target, strategy: str | None = None
) -> tuple[Strategy, ...]:
    """Tilings that fit, in order of preference: on GPUs by modelled cost, else in table order.

    Raises UnsupportedStrategy for an unknown name, one of another backend, or one that has no
    tiling for the problem, and UnsupportedTarget when nothing at all fits.
    """
    rows = [row for row in STRATEGIES.values() if target.backend in row.backends]
    if strategy is not None:
        if strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise UnsupportedStrategy(f"strategy {strategy}: not in the table; known: {known}")
        rows = [row for row in rows if row.name == strategy]
        if not rows:
            fitting = [r.name for r in STRATEGIES.values() if target.backend in r.backends]
            raise UnsupportedStrategy(
                f"strategy {strategy}: not for {target.name}; use {' or '.join(fitting)}"
            )
    found = tuple(s for row in rows for s in row.candidates(problem, target))
    if target.is_gpu:
        found = tuple(sorted(found, key=lambda one: gpu.cost(problem, target, one)))
    if not found and strategy is not None:
        raise UnsupportedStrategy(
            f"strategy {strategy}: has no tile for {problem.dtype} on {target.name}; "
            "leave it out to choose one that has"
        )
    if not found:
        raise UnsupportedTarget(f"target {target.name}: no strategy computes {problem.name} on it")
    return found


def choose(
    problem: ConvProblem,
    target: Target,
    strategy: Strategy | str | None = None,
    split_k: int | str = "auto",
) -> tuple[Strategy, ...]:
    """The strategies to try, best first, with their split decided; one if it was given whole.

    `strategy` is a whole Strategy, a name, or None for the best candidate; `split_k` is a number
    from 1 on (honoured or refused) or "auto" (also -1, as Composable Kernel writes it).
    """
    if isinstance(strategy, Strategy):
        if strategy.name not in STRATEGIES:
            raise UnsupportedStrategy(
                f"strategy {strategy.name}: not in the table; known: {', '.join(STRATEGIES)}"
            )
        found: tuple[Strategy, ...] = (strategy,)
    else:
        found = candidates(problem, target, strategy)
    return tuple(_with_split(problem, target, one, split_k) for one in found)


def _with_split(
    problem: ConvProblem, target: Target, strategy: Strategy, split_k: int | str
) -> Strategy:
    if split_k in ("auto", -1):
        parts = strategy.split_k or STRATEGIES[strategy.name].auto_split(problem, target, strategy)
        return strategy.with_split_k(parts)
    if not isinstance(split_k, int):
        raise UnsupportedStrategy(f"split_k {split_k}: not a number; use 1 or more, or 'auto'")
    return strategy.with_split_k(check_split_k(split_k, problem.gemm_k))
