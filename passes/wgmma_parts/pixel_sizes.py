# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of a forward pass or data gradient by wave groups, and where its tensors' elements lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.wgmma_parts.ptx import LINE
from conv_compiler.passes.wgmma_parts.sizes import Tiles, rounded_up
from conv_compiler.problem.convolution_sizes import ConvolutionSizes
from conv_compiler.problem.slides import Slide, slides
from conv_compiler.problem.weight_steps import WeightSteps


class Steps(NamedTuple):
    """Elements between adjacent groups, images, and pixels of each axis (outermost first) of a
    tensor whose channels are adjacent."""

    group: int
    image: int
    axes: tuple[int, ...]


class Tail(NamedTuple):
    """Tiles of the last rows: how many tiles of rows of the others stand before them, their rows
    and columns, the executors along both, and their stages."""

    head_tiles: int
    tile_m: int
    tile_n: int
    groups_m: int
    groups_n: int
    stages: int


@dataclass(frozen=True, kw_only=True)
class PixelSizes(ConvolutionSizes, Tiles):
    """Tiles of a kernel of the pass `wgmma-pixels`, and the convolution that it computes.

    Rows are units of result pixels of one phase (`problem/slides.py`), columns are result channels,
    and gemm_k runs over the taps of that phase with the source channels inside. `groups_outside`
    tells that groups lie outside of images. `merged_groups` adjacent groups share tiles: each has
    its own instructions, so that nothing of one is multiplied by anything of another. With
    `row_workgroups` as many workgroups share the row tiles of a column tile, and each keeps the
    weight of its columns in LDS; 0 is a workgroup for each row tile. `tail` has the numbers of a
    `Tail`, whose tiles the last rows have; none without such.
    """

    groups_outside: bool
    merged_groups: int = 1
    row_workgroups: int = 0
    tail: tuple[int, ...] = ()

    def check(self) -> None:
        """UnsupportedStrategy where no kernel has such tiles."""
        super().check()
        rules = {
            f"a line of LDS is {self.block} of gemm_k": self.tile_k != self.block,
            "rows and columns are what the threads copy at once, or a multiple": self.tile_m
            % self.lines_at_once
            or self.tile_n % self.lines_at_once,
            "a workgroup of several row tiles is one of wave groups, of one group and one part, "
            "and reads the source as it lies": self.row_workgroups > 0
            and not (
                self.by.is_asynchronous
                and self.split_k == self.merged_groups == 1
                and self.is_plain
            ),
            "merged groups are adjacent, and in a tile as whole instructions": self.merged_groups
            > 1
            and (
                self.groups_outside
                or self.groups % self.merged_groups
                or self.sources % self.step
                or self.results % self.piece
                or self.depth != self.block
                or self.gemm_n > min(self.block, self.tile_n)
                or self.groups_n > 1
            ),
        }
        for rule, broken in rules.items():
            if broken:
                raise UnsupportedStrategy(
                    f"tile {self.tile_m}x{self.tile_n}x{self.tile_k}: {rule}; use another"
                )
        if self.tail:
            self._check_tail()

    def _check_tail(self) -> None:
        text = ",".join(map(str, self.tail))
        if len(self.tail) != len(Tail._fields) or min(self.tail) < 1:
            names = ", ".join(Tail._fields)
            raise UnsupportedStrategy(f"tail {text}: it has {names}, all of 1 or more; mend it")
        head, last = self.kinds
        only = self.groups, self.split_k, math.prod(self.phases), self.row_workgroups
        # The tail begins where a tile of its own would, so that its last one alone has a rest.
        rules = {
            "its kernel is one of wave groups, of one group, part and phase, with a workgroup a "
            "tile": not self.by.is_asynchronous or only != (1, 1, 1, 0),
            "its workgroups have as many threads as others": last.threads != head.threads,
            "a larger tile has whole tiles of its rows": head.tile_m % last.tile_m > 0,
            "it has rows, behind others": self.head_rows >= math.prod(self.units),
        }
        for rule, broken in rules.items():
            if broken:
                raise UnsupportedStrategy(f"tail {text}: {rule}; use another")
        last.check()

    @property
    def kinds(self) -> tuple[Self, ...]:
        """The sizes of each kind of tile: these, or those of the head and of the tail."""
        if not self.tail:
            return (self,)
        numbers = Tail(*self.tail)._asdict()
        del numbers["head_tiles"]
        own = replace(self, tail=())
        return own, replace(own, **numbers)

    @property
    def head_rows(self) -> int:
        """Rows that stand before the tail."""
        return Tail(*self.tail).head_tiles * self.tile_m if self.tail else 0

    @property
    def stage_steps(self) -> tuple[int, int]:
        """Bytes of LDS from a tile of A to that of the next stage, and the same of B."""
        if self.row_workgroups:
            return self.tile_m * LINE, self.tile_n * LINE
        return super().stage_steps

    @property
    def b_shift(self) -> int:
        """Bytes from a tile of A to that of B, or from the first one to a weight that is kept."""
        return super().b_shift * (self.stages if self.row_workgroups else 1)

    @property
    def slides(self) -> tuple[Slide, ...]:
        """How the result reads its source: depth, rows, columns."""
        return slides(self.dimensions, self.direction)

    @property
    def is_plain(self) -> bool:
        """Whether each row of the GEMM is a source pixel, in order."""
        return all(slide.is_plain for slide in self.slides)

    @property
    def taps(self) -> tuple[int, ...]:
        """Filter taps of the axes of `slides`, of which a missing one has one."""
        return in_axes(self.filter)

    @property
    def weight_channels(self) -> int:
        """Channels of the weight that are adjacent: those of the convolution's input."""
        return self.sources if self.direction == "fwd" else self.results

    @property
    def transposes_weight(self) -> bool:
        """Whether a kernel in front has the weight lie along gemm_k."""
        return self.by.along_k and self.direction != "fwd"

    @property
    def weight_along_k(self) -> bool:
        """Whether the weight lies along gemm_k where it is multiplied."""
        return self.direction == "fwd" or self.transposes_weight

    @property
    def weights(self) -> WeightSteps:
        """The steps of the weight as it is multiplied, its adjacent channels in whole pieces."""
        if self.transposes_weight:
            line = rounded_up(self.sources, self.piece)
            row = line * math.prod(self.taps)
            return WeightSteps(row * self.gemm_n, row, line, 1)
        own = self.weight_channels
        wide = WeightSteps(
            *(step // own * rounded_up(own, self.piece) for step in self.weight_steps)
        )
        adjacent = "source" if self.direction == "fwd" else "result"
        return wide._replace(**{adjacent: 1, "group": wide.group * self.merged_groups})

    @property
    def gemm_n(self) -> int:
        """Result channels that are columns of one GEMM."""
        return self.results * self.merged_groups

    @property
    def depth(self) -> int:
        """Source channels that a GEMM sums up at each tap, in whole pieces."""
        return rounded_up(self.sources * self.merged_groups, self.piece)

    @property
    def source_lies(self) -> Steps:
        """Where the source's elements lie, its channels in whole pieces."""
        whole = rounded_up(self.sources, self.piece)
        return self._steps([slide.size for slide in self.slides], whole)

    @property
    def result_lies(self) -> Steps:
        """Where the result's elements lie."""
        return self._steps([slide.outs for slide in self.slides], self.results)

    def _steps(self, extents: Sequence[int], channels: int) -> Steps:
        pixel = channels if self.groups_outside else channels * self.groups
        axes = tuple(pixel * math.prod(extents[at + 1 :]) for at in range(len(extents)))
        image = pixel * math.prod(extents)
        group = image * self.batch if self.groups_outside else channels * self.merged_groups
        return Steps(group, image, axes)

    @property
    def phases(self) -> tuple[int, ...]:
        """Phases of each axis."""
        return tuple(slide.phases for slide in self.slides)

    @property
    def units(self) -> tuple[int, ...]:
        """Rows of one phase: images, and units of each axis."""
        return self.batch, *(slide.units for slide in self.slides)

    @property
    def is_flat(self) -> bool:
        """Whether a tile of gemm_k may have channels of several taps."""
        return self.depth % self.block != 0

    @property
    def pieces(self) -> int:
        """Pieces of 16 bytes of a tap's source channels."""
        return self.depth // self.piece

    def k_tiles(self, phase: Sequence[int]) -> int:
        """Tiles of gemm_k of a phase, the last one perhaps in part."""
        taps = math.prod(
            len(slide.window[at]) for slide, at in zip(self.slides, phase, strict=True)
        )
        return -(-taps * self.depth // self.tile_k)


def in_axes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes of spatial dimensions as those of depth, rows and columns: see `slides.in_three`."""
    if len(sizes) == 1:
        return 1, sizes[0], 1
    return (*[1] * (3 - len(sizes)), *sizes)
