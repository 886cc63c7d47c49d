# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a problem is computed: a named schedule, its tile and its split of gemm_k."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.strategies.cpu_tilings import (
    CpuTiling,
    DirectTiling,
    PlaneTiling,
    PointwiseTiling,
    SumTiling,
)
from conv_compiler.strategies.scaled_tiling import ScaledTiling
from conv_compiler.strategies.warp_group_tiling import GradientTiling, WarpGroupTiling, WindowTiling
from conv_compiler.typed import fields, typed


@dataclass(frozen=True, kw_only=True)
class GpuTiling:
    """Numbers of a GPU schedule.

    `workgroup` is the GEMM tile (m, n, gemm_k) of a workgroup in one iteration of its main loop;
    `subgroups` counts the subgroups that share its m and its n. `mma` is the matrix instruction in
    IREE's name, empty for vector code. `copy_a` and `copy_b` are the elements (along m or n, along
    gemm_k) of an operand that one thread brings to LDS at a time. `piece` is the m and n that one
    thread of vector code computes. `stages` is the depth of the software pipeline. With
    `loads_to_lds` loads write to LDS by themselves, to `stages` buffers in turn.

    `outside` and `inside` name the summed loops, outermost first, that run around a workgroup's
    gemm_k tile and in it; both empty stand for all of them inside. `no` runs over chunks of the
    batch, each a tile of gemm_k. `taps_outside` gives every filter tap workgroups of its own;
    `channels_outside` does so with every input channel (an image, of an equivalent weight
    gradient), and the columns of a tile are taps. `taps_in_rows` puts the taps beside the output
    channels: windows of the output gradient meet single image pixels. `merged_groups` neighbouring
    groups are one to the GEMM, of which only the blocks on the diagonal are kept.
    """

    workgroup: tuple[int, int, int]
    subgroups: tuple[int, int]
    mma: str = ""
    copy_a: tuple[int, int] = (0, 0)
    copy_b: tuple[int, int] = (0, 0)
    piece: tuple[int, int] = (0, 0)
    stages: int = 2
    outside: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    taps_outside: bool = False
    channels_outside: bool = False
    taps_in_rows: bool = False
    merged_groups: int = 1
    loads_to_lds: bool = False

    def __hash__(self) -> int:
        # Of what tells most tilings apart: a choice looks them up thousands of times.
        return hash((self.workgroup, self.subgroups, self.copy_a, self.copy_b, self.outside))


@dataclass(frozen=True, kw_only=True)
class DepthwiseTiling:
    """Numbers of a depthwise GPU schedule (`passes/depthwise.py`).

    A thread sums strips of `columns` x `rows` output pixels for `vector` neighbouring groups, and
    loads `unroll` rows an iteration. Of a workgroup's `threads`, `lanes` lie side by side along the
    groups; the others take other strips.
    """

    vector: int
    columns: int
    rows: int
    unroll: int
    lanes: int
    threads: int


@dataclass(frozen=True, kw_only=True)
class PixelTiling:
    """Numbers of a depthwise GPU schedule for `fwd` and `bwd_data` (`passes/depthwise_pixels.py`).

    A thread computes a strip of `columns` x `rows` units of result pixels (`problem/slides.py`) for
    `vector` neighbouring result channels; its loop finishes `unroll` units an iteration. Of a
    workgroup's `threads`, `lanes` lie side by side along the channels, `across` along the columns
    of strips, `down` along their rows and `images` along the batch. `product` is how a thread
    multiplies (`passes/depthwise_parts/products.py`), `mma` the matrix instruction that it does so
    by, in IREE's name.
    """

    vector: int
    columns: int
    rows: int
    unroll: int
    lanes: int
    across: int
    down: int
    images: int
    threads: int
    product: str = "fma"
    mma: str = ""


Tiling = (
    GpuTiling
    | ScaledTiling
    | DepthwiseTiling
    | PixelTiling
    | WarpGroupTiling
    | WindowTiling
    | GradientTiling
    | CpuTiling
    | DirectTiling
    | PointwiseTiling
    | PlaneTiling
    | SumTiling
)


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """How a problem is computed: a named schedule with its numbers.

    Args:
        name: A name of `conv-compiler list strategies`.
        tiling: The numbers of the schedule, of its kind: GPU, depthwise, wave groups or CPU.
        split_k: The number of parts of gemm_k, whose partial sums are added in order; 0 of a
            candidate whose factor is not chosen yet.
        script: The text of a user's transform-dialect module; its sequences replace ours by name.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> strategy = cc.compile(problem, target="cpu", split_k=1).strategy
        >>> again = cc.compile(problem, target="cpu", strategy=strategy.with_split_k(2))
        >>> again.strategy.name == strategy.name, again.strategy.split_k
        (True, 2)
    """

    name: str
    tiling: Tiling
    split_k: int = 0
    script: str = ""

    def with_split_k(self, split_k: int) -> Strategy:
        """The same schedule over another number of parts."""
        return replace(self, split_k=split_k)

    @property
    def mma(self) -> str:
        """The matrix instruction promised, in IREE's name; empty for vector code."""
        return getattr(self.tiling, "mma", "")

    @property
    def instruction(self) -> str:
        """The instruction a CPU kernel promises; empty where it promises none by name."""
        return getattr(self.tiling, "instruction", "")

    @property
    def tile(self) -> tuple[int, ...]:
        """The tile a user names: a workgroup's (m, n, gemm_k), or the CPU's register tile."""
        if isinstance(self.tiling, GpuTiling | WarpGroupTiling | ScaledTiling):
            return self.tiling.workgroup
        if isinstance(self.tiling, DepthwiseTiling | PixelTiling):
            return self.tiling.columns, self.tiling.rows, self.tiling.vector
        if isinstance(self.tiling, WindowTiling):
            return self.tiling.images, self.tiling.rows, self.tiling.columns
        if isinstance(self.tiling, GradientTiling):
            return self.tiling.images, *self.tiling.pixels
        if isinstance(self.tiling, SumTiling):
            return ()
        if isinstance(self.tiling, DirectTiling):
            return self.tiling.columns, self.tiling.vectors * self.tiling.lanes
        if isinstance(self.tiling, PointwiseTiling):
            return self.tiling.block, self.tiling.vectors * self.tiling.lanes
        if isinstance(self.tiling, PlaneTiling):
            pixels = self.tiling.vectors * self.tiling.lanes
            return self.tiling.block, self.tiling.rows, pixels
        return tuple(size for size in self.tiling.vector_parallel if size)

    @property
    def text(self) -> str:
        """One line a person reads: name, tile, instruction, loops outside the tile, split."""
        words = [self.name, tile_text(self.tile) or "-", self.mma or self.instruction]
        if outside := getattr(self.tiling, "outside", ()):
            words.append("over " + ",".join(outside))
        if getattr(self.tiling, "taps_in_rows", False):
            words.append("taps in rows")
        if (merged := getattr(self.tiling, "merged_groups", 1)) > 1:
            words.append(f"{merged} groups merged")
        if getattr(self.tiling, "row_workgroups", 0):
            words.append("weight in LDS")
        if tail := getattr(self.tiling, "tail", None):
            words.append(f"tail {tile_text(tail.tile)}")
        if getattr(self.tiling, "loads_to_lds", False):
            words.append("loads to LDS")
        if self.script:
            words.append(f"script {hashlib.sha256(self.script.encode()).hexdigest()[:8]}")
        return " ".join([*filter(None, words), f"split_k={self.split_k}"])

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads back, as JSON has them."""
        found: dict[str, Any] = _plain(asdict(self))
        return found

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Strategy:
        """The strategy `to_json` wrote.

        Raises UnsupportedStrategy for values of other types, and for a tiling of no kind.
        """
        named = fields(values, cls, "strategy ", UnsupportedStrategy, tiling=dict[str, Any])
        tiling = named.get("tiling", {})
        kinds = get_args(Tiling)
        kind = next(
            (kind for kind in kinds if tiling.keys() <= kind.__dataclass_fields__.keys()), None
        )
        if kind is None or set(named) != set(cls.__dataclass_fields__):
            raise UnsupportedStrategy(
                f"strategy {', '.join(named)}: not the numbers of one; take those of to_json"
            )
        made = typed(tiling, kind, "tiling", UnsupportedStrategy)
        return cls(**{**named, "tiling": made})


@dataclass(frozen=True, kw_only=True)
class StrategyRequest:
    """What a user fixes of a strategy; the compiler chooses what is left empty.

    Args:
        name: A name of `conv-compiler list strategies`.
        tile: The tile, as `Strategy.tile` has it: m, n and gemm_k of a GPU workgroup, columns, rows
            and groups of `depthwise`, or the register tile of a CPU.
        script: The text of a transform-dialect module of your own.

    Example:
        >>> problem = cc.ConvProblem(n=4, k=64, c=64, image=(14, 14), filter=(3, 3))
        >>> wanted = cc.StrategyRequest(name="implicit_gemm", tile=(64, 64, 32))
        >>> cc.compile(problem, target="gfx942", strategy=wanted).strategy.tile
        (64, 64, 32)
    """

    name: str = ""
    tile: tuple[int, ...] = ()
    script: str = ""

    @classmethod
    def of(cls, strategy: Strategy | StrategyRequest | str | None) -> Strategy | StrategyRequest:
        """A name or None as what it wants; a whole strategy, or what is wanted, as it is."""
        if isinstance(strategy, Strategy | StrategyRequest):
            return strategy
        return cls(name=strategy or "")


def tile_text(tile: tuple[int, ...]) -> str:
    """A tile as it is written on a command line: 128x128x32."""
    return "x".join(map(str, tile))


def _plain(value: Any) -> Any:
    """A value with lists in the place of tuples: what is stored equals what is read again."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
