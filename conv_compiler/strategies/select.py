"""Which strategy computes a problem: the table of schedules, and the choice among candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conv_compiler.errors import UnsupportedStrategy, UnsupportedTarget
from conv_compiler.problem.canonical import roles
from conv_compiler.strategies.cpu import loops, packed, split_k
from conv_compiler.strategies.gpu import (
    cost,
    depthwise,
    implicit_gemm,
    implicit_gemm_schedule,
    loop_order,
    payload_passes,
    ranking,
    tie_break,
    tilings,
    vector_gemm,
)
from conv_compiler.strategies.schedule import Schedule
from conv_compiler.strategies.split_k import check_split_k, occupancy_split_k, split_asked
from conv_compiler.strategies.strategy import (
    CpuTiling,
    DepthwiseTiling,
    GpuTiling,
    Strategy,
    Wanted,
    tile_text,
)
from conv_compiler.targets.compute import for_target

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class StrategyRow:
    """One schedule: where it runs and how its numbers, passes and script are found.

    `tile` says what the numbers of its tile are. `candidates` lists tilings, best first; none when
    the schedule does not fit. Its last arguments are the number of parts asked for, 0 for any, and
    the tile asked for, empty for any. Where a candidate leaves the parts open (0), `splits` gives
    the numbers worth trying, the first for a row without `predict`. That models the seconds of a
    tiling and a number of parts, so that rows can be compared; rows without it are taken in order.
    `filled_parts` tells of a number of parts how many of them hold products.
    `comes_last` tells of a candidate whether those of the rows behind it are to come before it.
    `prefer` reorders all candidates where one of the row is the fastest.
    `refusal` tells why a row has no candidates, where it is one of those taken in order.
    `has_script` tells whether a user's own script can replace the row's.
    `normalise` names the script of `mlir/normalise/` that runs the passes; empty for none.
    """

    name: str
    description: str
    tile: str
    backends: tuple[str, ...]
    candidates: Callable[[ConvProblem, Target, int, tuple[int, ...]], tuple[Strategy, ...]]
    passes: Callable[[ConvProblem, Target, Strategy], tuple[Pass, ...]]
    schedule: Callable[[ConvProblem, Target, Strategy], Schedule]
    splits: Callable[[ConvProblem, Target, Any], list[int]]
    filled_parts: Callable[[ConvProblem, Any, int], int]
    predict: Callable[[ConvProblem, Target, Any, int], float] | None = None
    comes_last: Callable[[ConvProblem, Target, Strategy], bool] = lambda *_: False
    prefer: Callable[[ConvProblem, Target, tuple[Strategy, ...]], tuple[Strategy, ...]] = (
        lambda problem, target, ranked: ranked
    )
    refusal: Callable[[ConvProblem, Target], str] = lambda *_: ""
    has_script: bool = False
    normalise: str = ""

    def seconds(self, problem: ConvProblem, target: Target, one: Strategy) -> float:
        """Modelled seconds of a candidate; 0 for a row without a model."""
        return self.predict(problem, target, one.tiling, one.split_k) if self.predict else 0.0

    def auto_split(self, problem: ConvProblem, target: Target, one: Strategy) -> int:
        """Parts by which a candidate's tiling is fastest."""
        splits = self.splits(problem, target, one.tiling)
        return min(splits, key=lambda parts: self.seconds(problem, target, one.with_split_k(parts)))


GPU_BACKENDS = ("rocm", "cuda")
CPU_TILE = "sums a thread keeps in registers, by loop, the vector lanes last"
# How many workgroups Composable Kernel wants a compute unit to hold.
WORKGROUPS_PER_UNIT = 2

STRATEGIES = MappingProxyType(
    {
        row.name: row
        for row in (
            StrategyRow(
                name="implicit_gemm",
                description="im2col into LDS, matrix instructions; on AMD software pipelined",
                tile="m x n x gemm_k of a workgroup: whole matrix instructions, shared evenly by "
                "its subgroups and threads, that registers and LDS hold",
                backends=GPU_BACKENDS,
                has_script=True,
                candidates=implicit_gemm.mma_candidates,
                splits=ranking.splits,
                filled_parts=loop_order.filled_parts,
                predict=cost.predict,
                prefer=tie_break.lean_first,
                normalise="implicit_gemm",
                passes=payload_passes.passes,
                schedule=implicit_gemm_schedule.mma_schedule,
            ),
            StrategyRow(
                name="vector_gemm",
                description="sums in registers, vector fma; where no matrix instruction fits",
                tile="m x n x gemm_k of a workgroup: the pieces of its threads, gemm_k 4",
                backends=GPU_BACKENDS,
                has_script=True,
                candidates=vector_gemm.vector_candidates,
                splits=ranking.splits,
                filled_parts=loop_order.filled_parts,
                predict=cost.predict,
                normalise="implicit_gemm",
                passes=payload_passes.passes,
                schedule=vector_gemm.vector_schedule,
            ),
            StrategyRow(
                name="depthwise",
                description="windows and sums in registers, vector fma; groups of one channel",
                tile="columns x rows x groups of a thread's strip of output pixels",
                backends=("rocm",),
                candidates=depthwise.candidates,
                splits=depthwise.splits,
                filled_parts=depthwise.filled_parts,
                predict=depthwise.predict,
                normalise="depthwise",
                passes=depthwise.passes,
                schedule=depthwise.schedule,
            ),
            *(
                StrategyRow(
                    name=name,
                    description=description,
                    tile=CPU_TILE,
                    backends=("llvm-cpu",),
                    candidates=candidates,
                    splits=module.splits,
                    filled_parts=split_k.filled_parts,
                    normalise=module.NORMALISE,
                    passes=module.passes,
                    schedule=module.schedule,
                    comes_last=comes_last,
                    refusal=refusal,
                )
                for module in (packed, loops)
                for name, description, candidates, refusal, comes_last in module.ROWS
            ),
            StrategyRow(
                name="zeros",
                description="no products to sum: the result of a batch of 0",
                tile="none",
                backends=(*GPU_BACKENDS, "llvm-cpu"),
                candidates=lambda *_: (),  # `choose` takes it for such a batch, and for no other
                splits=lambda *_: [1],
                filled_parts=lambda *_: 1,
                passes=lambda *_: (),
                schedule=lambda *_: Schedule(roles={}),
            ),
        )
    }
)


def candidates(
    problem: ConvProblem,
    target: Target,
    strategy: str = "",
    split_k: int = 0,
    tile: tuple[int, ...] = (),
) -> tuple[Strategy, ...]:
    """Tilings that fit, in order of preference: by modelled time on GPUs, else in table order.

    `split_k` is the number of parts they are ranked for, 0 for the best one each; `strategy` and
    `tile` keep those of that name and tile, empty for any. Raises UnsupportedStrategy for an
    unknown name, one of another backend, one that has no tiling for the problem, and a tile that
    none has; UnsupportedTarget when nothing at all fits.
    """
    whole = for_target(problem, target)
    return _candidates(whole, roles(whole), target, strategy, split_k, tile)


def _candidates(
    asked: ConvProblem,
    problem: ConvProblem,
    target: Target,
    strategy: str,
    split_k: int,
    tile: tuple[int, ...],
) -> tuple[Strategy, ...]:
    """`candidates` of the weight gradient that computes what was asked for."""
    rows = [row for row in STRATEGIES.values() if target.backend in row.backends]
    if strategy:
        rows = [row for row in rows if row.name == find_strategy(strategy).name]
        if not rows:
            fitting = [r.name for r in STRATEGIES.values() if target.backend in r.backends]
            raise UnsupportedStrategy(
                f"strategy {strategy}: not for {target.name}; use {' or '.join(fitting)}"
            )
    found = [
        (row, one)
        for row in rows
        for one in row.candidates(problem, target, split_k, tile)
        if tile in ((), one.tile)
    ]
    if not found and tile:
        others = _candidates(asked, problem, target, strategy, split_k, ())
        known = dict.fromkeys(f"{tile_text(one.tile)} ({one.name})" for one in others if one.tile)
        rules = dict.fromkeys(row.tile for row in rows)
        raise UnsupportedStrategy(
            f"tile {tile_text(tile)}: no schedule has it for {asked.dtype} on {target.name} "
            f"(a tile is {'; or '.join(rules)}); use {' or '.join(known) or 'none'}"
        )
    if not found and strategy:
        raise UnsupportedStrategy(
            f"strategy {strategy}: has no tile for {asked.dtype} on {target.name}; "
            "leave it out to choose one that has"
        )
    if not found:
        raise UnsupportedTarget(
            f"target {target.name}: no strategy computes {asked.name} on it; "
            "see conv-compiler list dtypes"
        )

    def rank(entry: tuple[StrategyRow, Strategy]) -> tuple[float, bool]:
        row, one = entry
        return row.seconds(problem, target, one), row.comes_last(problem, target, one)

    ranked = sorted(found, key=rank)
    return ranked[0][0].prefer(problem, target, tuple(one for _, one in ranked))


def choose(
    problem: ConvProblem,
    target: Target,
    strategy: Strategy | Wanted | str | None = None,
    split_k: int | str = "auto",
) -> tuple[Strategy, ...]:
    """The strategies to try, best first, with their split decided.

    `strategy` is a whole Strategy, what is Wanted of one, a name, or None for the best candidate;
    `split_k` is a number from 1 on, "auto" for the fastest by the model (also -1, as Composable
    Kernel writes it), or "occupancy" for Composable Kernel's own rule. Where parts would hold no
    product, because a part is whole tiles of gemm_k, there are as many as hold some. There is
    one to try if it was given whole or has a script of the user's: that was written for one tile.
    """
    if problem.n == 0:
        return (_of_nothing(problem, strategy),)
    whole = for_target(problem, target)
    found = _chosen(whole, target, strategy, split_k)
    as_found = for_target(problem, target, found[0].mma)
    return found if as_found == whole else _chosen(as_found, target, strategy, split_k)


def _chosen(
    whole: ConvProblem, target: Target, strategy: Strategy | Wanted | str | None, split_k: int | str
) -> tuple[Strategy, ...]:
    problem = roles(whole)
    with_script = [row.name for row in STRATEGIES.values() if row.has_script]
    split_k = split_asked(split_k)
    asked = 0 if isinstance(split_k, str) else check_split_k(split_k, problem.gemm_k)
    wanted = Wanted.of(strategy)
    if isinstance(wanted, Strategy):
        found: tuple[Strategy, ...] = (wanted,)
    else:
        found = _candidates(whole, problem, target, wanted.name, asked, wanted.tile)
        if wanted.script:
            first = next((one for one in found if one.name in with_script), found[0])
            found = (replace(first, script=wanted.script),)
    for one in found:
        if find_strategy(one.name).name not in with_script and one.script:
            raise UnsupportedStrategy(
                f"schedule: {one.name} on {target.name} has no script to replace; "
                f"only {' and '.join(with_script)} have"
            )

    def parts(one: Strategy) -> int:
        row = find_strategy(one.name)
        if split_k == "occupancy":
            wanted = _occupancy(problem, target, one)
        else:
            wanted = asked or one.split_k or row.auto_split(problem, target, one)
        return row.filled_parts(problem, one.tiling, wanted)

    return tuple(one.with_split_k(parts(one)) for one in found)


def _of_nothing(problem: ConvProblem, strategy: Strategy | Wanted | str | None) -> Strategy:
    """The strategy of a batch of 0, which has no products to tile or split."""
    only = Strategy(name="zeros", tiling=CpuTiling(), split_k=1)
    if Wanted.of(strategy) not in (only, Wanted(), Wanted(name=only.name)):
        raise UnsupportedStrategy(
            f"batch 0: {problem.name} has no products to schedule; leave strategy, tile and "
            "script out"
        )
    return only


def passed_over(problem: ConvProblem, target: Target, chosen: Strategy) -> tuple[str, ...]:
    """Why strategies that the table names before the chosen one were not chosen, by name.

    Of a CPU's strategies, which are taken in order; those of GPUs are ranked by the model.
    """
    if problem.n == 0:
        return ()
    problem = roles(for_target(problem, target, chosen.mma))
    found = []
    for row in STRATEGIES.values():
        if row.name == chosen.name:
            break
        if target.backend not in row.backends or row.predict:
            continue
        if why := row.refusal(problem, target):
            found.append(f"{row.name}: {why}")
        elif not (tilings := row.candidates(problem, target, 0, ())):
            found.append(f"{row.name}: has no tile for {problem.dtype} on {target.name}")
        elif row.comes_last(problem, target, tilings[0]):
            found.append(f"{row.name}: operands lie as {chosen.name} reads them, and copies cost")
    return tuple(found)


def find_strategy(name: str) -> StrategyRow:
    """The row of a name; UnsupportedStrategy where there is none."""
    if row := STRATEGIES.get(name):
        return row
    raise UnsupportedStrategy(f"strategy {name}: not in the table; known: {', '.join(STRATEGIES)}")


def _occupancy(problem: ConvProblem, target: Target, strategy: Strategy) -> int:
    """Parts by Composable Kernel's rule."""
    tiling = strategy.tiling
    if isinstance(tiling, GpuTiling):
        tiles, trips = tilings.tiles(problem, tiling), loop_order.trips(problem, tiling, 1)
    elif isinstance(tiling, DepthwiseTiling):
        tiles, trips = depthwise.blocks(problem, tiling), depthwise.rounds(problem, tiling)
    else:
        raise UnsupportedStrategy(
            f"split_k occupancy: a rule for GPUs, not {target.name}; use 'auto' or a number"
        )
    slots = WORKGROUPS_PER_UNIT * target.compute_units
    return occupancy_split_k(tiles=tiles, slots=slots, k_tiles=trips)


def replaced_sequences(problem: ConvProblem, target: Target, strategy: Strategy) -> tuple[str, ...]:
    """The sequences of a schedule in whose place those of the user's script are."""
    if not strategy.script:
        return ()
    whole = roles(for_target(problem, target, strategy.mma))
    return find_strategy(strategy.name).schedule(whole, target, strategy).replaced
