# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which strategy computes a problem: the choice among the candidates of all kinds."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conv_compiler.errors import UnsupportedStrategy, UnsupportedTarget
from conv_compiler.strategies.cpu_tilings import CpuTiling
from conv_compiler.strategies.kind import StrategyKind
from conv_compiler.strategies.registry import STRATEGIES, find_strategy
from conv_compiler.strategies.split_k import check_split_k, occupancy_split_k, split_asked
from conv_compiler.strategies.strategy import Strategy, StrategyRequest, tile_text
from conv_compiler.strategies.zeros import ZEROS
from conv_compiler.targets.resolve import Resolved, resolve

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

# How many workgroups Composable Kernel wants a compute unit to hold.
WORKGROUPS_PER_UNIT = 2


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The strategies to try for a problem, best first, and the problem as the first computes it."""

    problem: Resolved
    strategies: tuple[Strategy, ...]


def candidates(
    problem: ConvProblem,
    target: Target,
    strategy: str = "",
    split_k: int = 0,
    tile: tuple[int, ...] = (),
) -> tuple[Strategy, ...]:
    """Tilings that fit, in order of preference: by modelled time on GPUs, else in table order.

    `split_k` is the split-K factor they are ranked for, 0 for the best one each; `strategy` and
    `tile` keep those of that name and tile, empty for any. Raises UnsupportedStrategy for an
    unknown name, one of another backend, one that has no tiling for the problem, and a tile that
    none has; UnsupportedTarget when nothing at all fits.
    """
    return _candidates(resolve(problem, target), strategy, split_k, tile)


def _candidates(
    problem: Resolved, strategy: str, split_k: int, tile: tuple[int, ...]
) -> tuple[Strategy, ...]:
    target, wgrad = problem.target, problem.wgrad
    kinds = _kinds(problem, strategy)
    found = [
        (kind, one)
        for kind in kinds
        for one in kind.candidates(wgrad, target, split_k, tile)
        if tile in ((), one.tile)
    ]
    if not found:
        raise _nothing_fits(problem, kinds, strategy, split_k, tile)

    def rank(entry: tuple[StrategyKind, Strategy]) -> tuple[float, bool]:
        kind, one = entry
        seconds = kind.cost(wgrad, target, one) + kind.in_front(wgrad, target)
        return seconds, kind.comes_last(wgrad, target, one)

    ranked = sorted(found, key=rank)
    return ranked[0][0].prefer(wgrad, target, tuple(one for _, one in ranked))


def _kinds(problem: Resolved, strategy: str) -> list[StrategyKind]:
    """The kinds for a problem, or the one of a name; UnsupportedStrategy if it is for another."""
    target, alone = problem.target, problem.asked.sums_alone
    fitting = [
        kind
        for kind in STRATEGIES.values()
        if target.backend in kind.backends and kind.sums_alone == alone
    ]
    if not strategy:
        return fitting
    if (named := find_strategy(strategy)) in fitting:
        return [named]
    raise UnsupportedStrategy(
        f"strategy {strategy}: not for {'a bias on ' if alone else ''}{target.name}; "
        f"use {' or '.join(kind.name for kind in fitting)}"
    )


def _nothing_fits(
    problem: Resolved,
    kinds: list[StrategyKind],
    strategy: str,
    split_k: int,
    tile: tuple[int, ...],
) -> UnsupportedStrategy | UnsupportedTarget:
    """Why no candidate is left, and what would do."""
    asked, target = problem.asked, problem.target
    if tile:
        others = _candidates(problem, strategy, split_k, ())
        known = dict.fromkeys(f"{tile_text(one.tile)} ({one.name})" for one in others if one.tile)
        rules = dict.fromkeys(kind.tile for kind in kinds)
        return UnsupportedStrategy(
            f"tile {tile_text(tile)}: no schedule has it for {asked.dtype} on {target.name} "
            f"(a tile is {'; or '.join(rules)}); use {' or '.join(known) or 'none'}"
        )
    if strategy:
        why = kinds[0].refusal(problem.wgrad, target)
        return UnsupportedStrategy(
            f"strategy {strategy}: has no tile for {asked.dtype} on {target.name}"
            f"{f' ({why})' if why else ''}; "
            "leave it out to choose one that has"
        )
    return UnsupportedTarget(
        f"target {target.name}: no strategy computes {asked.name} on it; "
        "see conv-compiler list dtypes"
    )


def choose(
    problem: ConvProblem,
    target: Target,
    strategy: Strategy | StrategyRequest | str | None = None,
    split_k: int | str = "auto",
) -> tuple[Strategy, ...]:
    """The strategies to try, best first, with their split-K factor decided: those of `decide`."""
    return decide(resolve(problem, target), strategy, split_k).strategies


def decide(
    problem: Resolved,
    strategy: Strategy | StrategyRequest | str | None = None,
    split_k: int | str = "auto",
) -> Choice:
    """Choose strategies for a problem, and settle the problem for the first of them.

    `strategy` is a whole Strategy, what is StrategyRequest of one, a name, or None for the best
    candidate. `split_k` is a number from 1 on, "auto" for the fastest by the model (also -1, as
    Composable Kernel writes it), or "occupancy" for Composable Kernel's own rule. A part is whole
    tiles of gemm_k; parts that would hold no product are left out. There is one strategy to try if
    it was given whole or has a script of the user's: that was written for one tile.
    """
    if problem.asked.n == 0:
        return Choice(problem=problem, strategies=(_of_nothing(problem.asked, strategy),))
    found = _chosen(problem, strategy, split_k)
    settled = resolve(problem.stated, problem.target, found[0].mma)
    if settled.asked != problem.asked:
        found = _chosen(settled, strategy, split_k)
    if settled.asked.block_scales:  # no other way of applying them takes the place of the chosen
        fitting = (
            one
            for one in found
            if resolve(problem.stated, problem.target, one.mma).asked == settled.asked
        )
        found = tuple(fitting)
    return Choice(problem=settled, strategies=found)


def _chosen(
    problem: Resolved, strategy: Strategy | StrategyRequest | str | None, split_k: int | str
) -> tuple[Strategy, ...]:
    split_k = split_asked(split_k)
    asked = 0 if isinstance(split_k, str) else check_split_k(split_k, problem.wgrad.gemm_k)
    wanted = StrategyRequest.of(strategy)
    if isinstance(wanted, Strategy):
        found: tuple[Strategy, ...] = (wanted,)
    else:
        found = _candidates(problem, wanted.name, asked, wanted.tile)
        if wanted.script:
            scripted = (one for one in found if find_strategy(one.name).has_script)
            found = (replace(next(scripted, found[0]), script=wanted.script),)
    for one in found:
        _check_script(one, problem.target)
    return tuple(one.with_split_k(_split_k(problem, one, split_k, asked)) for one in found)


def is_candidate(problem: Resolved, strategy: Strategy) -> bool:
    """Whether a strategy, with its split-K factor, is one that this compiler tries for a problem.

    One that a user wrote is taken as it is; this is for strategies from files.
    """
    wanted = StrategyRequest(name=strategy.name, tile=strategy.tile)
    for split_k in (strategy.split_k, "auto"):
        with suppress(UnsupportedStrategy, UnsupportedTarget):
            if strategy in decide(problem, wanted, split_k).strategies:
                return True
    return False


def _check_script(one: Strategy, target: Target) -> None:
    """Refuse a script for a strategy that has none to replace."""
    if one.script and not find_strategy(one.name).has_script:
        with_script = [kind.name for kind in STRATEGIES.values() if kind.has_script]
        raise UnsupportedStrategy(
            f"schedule: {one.name} on {target.name} has no script to replace; "
            f"only {' and '.join(with_script)} have"
        )


def _split_k(problem: Resolved, one: Strategy, split_k: int | str, asked: int) -> int:
    """The split-K factor of a strategy: as asked, as the candidate has it, or the fastest."""
    kind = find_strategy(one.name)
    if split_k == "occupancy":
        wanted = _occupancy(problem, kind, one)
    else:
        wanted = asked or one.split_k or kind.auto_split(problem.wgrad, problem.target, one)
    return kind.filled_parts(problem.wgrad, one, wanted)


def _occupancy(problem: Resolved, kind: StrategyKind, one: Strategy) -> int:
    """The split-K factor by Composable Kernel's rule."""
    workgroups, iterations = kind.occupancy(problem.wgrad, problem.target, one)
    if not workgroups:
        raise UnsupportedStrategy(
            f"split_k occupancy: a rule for GPUs, not {problem.target.name}; use 'auto' or a number"
        )
    slots = WORKGROUPS_PER_UNIT * problem.target.compute_units
    return occupancy_split_k(tiles=workgroups, slots=slots, k_tiles=iterations)


def _of_nothing(
    problem: ConvProblem, strategy: Strategy | StrategyRequest | str | None
) -> Strategy:
    """The strategy of a batch of 0, which has no products to tile or split."""
    only = Strategy(name=ZEROS.name, tiling=CpuTiling(), split_k=1)
    if StrategyRequest.of(strategy) not in (
        only,
        StrategyRequest(),
        StrategyRequest(name=only.name),
    ):
        raise UnsupportedStrategy(
            f"batch 0: {problem.name} has no products to schedule; leave strategy, tile and "
            "script out"
        )
    return only


def passed_over(problem: Resolved, chosen: Strategy) -> tuple[str, ...]:
    """Why strategies that the table names before the chosen one were not chosen, by name.

    Only kinds that are taken in the order of the table have such a reason; the model ranks others.
    """
    if problem.asked.n == 0 or problem.asked.sums_alone:
        return ()
    wgrad, target = problem.wgrad, problem.target
    found = []
    for kind in STRATEGIES.values():
        if kind.name == chosen.name:
            break
        if target.backend not in kind.backends or kind.is_modelled:
            continue
        if why := kind.refusal(wgrad, target):
            found.append(f"{kind.name}: {why}")
        elif not (tilings := kind.candidates(wgrad, target, 0, ())):
            found.append(f"{kind.name}: has no tile for {wgrad.dtype} on {target.name}")
        elif kind.comes_last(wgrad, target, tilings[0]):
            found.append(f"{kind.name}: comes behind {chosen.name} for such a problem")
    return tuple(found)


def replaced_sequences(problem: Resolved, strategy: Strategy) -> tuple[str, ...]:
    """The sequences of a schedule in whose place those of the user's script are."""
    if not strategy.script:
        return ()
    lowering = find_strategy(strategy.name).lower(problem.wgrad, problem.target, strategy)
    return lowering.schedule.replaced
