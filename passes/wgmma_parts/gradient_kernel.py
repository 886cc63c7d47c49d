# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of a weight gradient whose window is kept in LDS (`passes/mma_sync_windows.py`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, gpu, scf

from conv_compiler.passes.depthwise_parts.arithmetic import (
    below,
    both,
    cut,
    in_32_bits,
    linear,
    number,
)
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.copies import pointer
from conv_compiler.passes.wgmma_parts.executable import dispatched, shared, workgroup_id
from conv_compiler.passes.wgmma_parts.gradient_copies import Lines, TileCopy
from conv_compiler.passes.wgmma_parts.gradient_products import FOUR, GradientProducts, Sums
from conv_compiler.passes.wgmma_parts.gradient_sizes import GradientSizes
from conv_compiler.passes.wgmma_parts.gradient_stores import GradientStore
from conv_compiler.passes.wgmma_parts.sizes import operands
from conv_compiler.passes.wgmma_parts.stores import where
from conv_compiler.problem.gradient_tiles import (
    PIECE,
    STEP,
    WAVE,
)

KERNEL = "mma_sync_windows"
FLOAT = 4  # bytes
# Starts the copies of a tile, by its number, to a stage; multiplies it, adding to sums.
Copied = Callable[[ir.Value, ir.Value], None]
Computed = Callable[[ir.Value, ir.Value, Sums], Sums]


class GradientKernel:
    """The kernel of one contraction."""

    def __init__(self, conv: Contraction, sizes: GradientSizes) -> None:
        self.conv, self.sizes = conv, sizes
        self.tile = tile = sizes.tile_of(conv)
        batch, *outs = conv.pixels
        self.blocks = conv.groups // sizes.groups
        self.tiles = tile.tiles(batch, outs)
        self.gradient, self.image = (one.merged(sizes.groups) for one in operands(conv))
        self.is_ragged = tile.is_ragged(batch, outs)
        self.pitches = tile.plane_pieces(self.is_ragged)
        self.stage_bytes = tile.stage_bytes(self.is_ragged)

    def result(self, module: ir.Module, type: ir.RankedTensorType) -> ir.Value:
        """What it stores: P[s, weight's axes] or the weight, by the type."""
        grid = (self.blocks * self.sizes.parts, 1, 1)
        inputs = [self.conv.gradient, self.conv.image]
        return dispatched(module, KERNEL, "contraction", grid, inputs, type, self._write)

    def _write(self, memory: list[ir.Value], out: ir.Value) -> None:
        tile, stages = self.tile, self.sizes.stages
        thread = in_32_bits(gpu.ThreadIdOp(gpu.Dimension.x).result)
        part, block = cut(in_32_bits(workgroup_id(0)), [1, self.blocks])
        wave, lane = cut(thread, [1, WAVE])
        buffer = shared(stages * self.stage_bytes // FLOAT, ptx.LINE)
        lds = arith.TruncIOp(ir.IntegerType.get_signless(32), pointer(buffer)).result
        dtype = str(ir.MemRefType(memory[0].type).element_type)
        products = GradientProducts(tile, dtype, self.pitches, lds, wave, lane)
        gradient, image = self._copies(memory, thread)
        self._clear(buffer, gradient, image)

        def copy(number_: ir.Value, stage: ir.Value) -> None:
            to = linear(stage, self.stage_bytes, lds)
            starts = self._starts(number_)
            channels = [
                linear(block, planes * PIECE) for planes in (tile.planes[1], tile.planes[0])
            ]
            gradient.start(to, starts, channels[0])
            image.start(to, starts, channels[1])
            ptx.close_copies()

        def compute(number_: ir.Value, stage: ir.Value, sums: Sums) -> Sums:
            starts = self._starts(number_)
            return products.sums(
                sums,
                linear(stage, self.stage_bytes),
                lambda places: self._missing(starts, places),
            )

        sums = self._looped(part, products.zeros(), copy, compute)
        GradientStore(
            conv=self.conv, tile=tile, joined=self.sizes.joined_groups, products=products, out=out
        ).write(sums, part, block)

    def _copies(self, memory: list[ir.Value], thread: ir.Value) -> tuple[TileCopy, TileCopy]:
        """The copies of the output gradient and of its window."""
        tile, conv = self.tile, self.conv
        batch, *outs = self.gradient.pixels
        own = (tile.images, *tile.pixels)
        gradient = [
            Lines(lines, step, axis.loop, axis.step, leaves=axis.loop % lines != 0)
            for lines, step, axis in zip(own, _steps(own), (batch, *outs), strict=True)
        ]
        first, *axes = self.image.pixels
        leaves = batch.loop % tile.images != 0
        image = [Lines(tile.images, tile.line_steps[0], first.extent, first.step, leaves=leaves)]
        for at, (axis, lines, step) in enumerate(
            zip(axes, tile.extents, tile.line_steps[1:], strict=True)
        ):
            rests = tile.rests if at == conv.ndim - 1 else 1
            image.append(Lines(lines, step, axis.extent, axis.step, axis.stride, axis.pad, rests))
        shift = tile.planes[0] * self.pitches[0] * ptx.PIECE
        threads = tile.threads
        return (
            TileCopy(
                memory=memory[0],
                axes=gradient,
                planes=tile.planes[1],
                pitch=self.pitches[1],
                shift=shift,
                thread=thread,
                threads=threads,
            ),
            TileCopy(
                memory=memory[1],
                axes=image,
                planes=tile.planes[0],
                pitch=self.pitches[0],
                shift=0,
                thread=thread,
                threads=threads,
            ),
        )

    def _clear(self, buffer: ir.Value, gradient: TileCopy, image: TileCopy) -> None:
        """Zeros for pixels that are missing, in all stages."""
        tile = self.tile
        if not self.is_ragged:
            return
        for stage in range(self.sizes.stages):
            at = stage * self.stage_bytes
            image.clear(buffer, at, tile.lines, tile.last_tap_line + 1)
            gradient.clear(buffer, at, tile.count, tile.steps * STEP - tile.count)

    def _starts(self, number_: ir.Value) -> list[ir.Value]:
        """The first output pixel of a tile, along images and axes."""
        own = (self.tile.images, *self.tile.pixels)
        return [linear(at, size) for at, size in zip(cut(number_, self.tiles), own, strict=True)]

    def _missing(self, starts: Sequence[ir.Value], places: Sequence[ir.Value]) -> ir.Value | None:
        """Whether a pixel of a tile is missing: by its places, of which the first is not bounded,
        and those of the tile."""
        if not self.is_ragged:
            return None
        tile = self.tile
        tests: list[ir.Value | None] = []
        if tile.count % STEP:
            tests.append(below(places[0], tile.images))
        own = (tile.images, *tile.pixels)
        for start, place, total, size in zip(starts, places, self.conv.pixels, own, strict=True):
            if total % size:
                tests.append(below(arith.AddIOp(start, place).result, total))
        exists = both(*tests)
        assert exists is not None
        one = arith.ConstantOp(exists.type, ir.IntegerAttr.get(exists.type, 1)).result
        return arith.XOrIOp(exists, one).result

    def _looped(self, part: ir.Value, zeros: Sums, copy: Copied, compute: Computed) -> Sums:
        """The sums of all tiles of a part: every so many from its own number on."""
        parts, total = self.sizes.parts, math.prod(self.tiles)
        two = self.sizes.stages == 2
        if two:
            copy(part, number(0))
        loop = scf.ForOp(part, number(total), number(parts), [number(0), *flat(zeros)])
        with ir.InsertionPoint(loop.body):
            tile, (stage, *carried) = loop.induction_variable, loop.inner_iter_args
            if two:
                ptx.wait_for_copies(0, for_wave_groups=False)
                gpu.BarrierOp()  # the tile is there, and all products of the one before are done
                following = linear(tile, 1, parts)
                with where(below(following, total)):
                    copy(following, arith.SubIOp(number(1), stage).result)
                next_ = arith.SubIOp(number(1), stage).result
            else:
                gpu.BarrierOp()  # all products of the tile before are done
                copy(tile, stage)
                ptx.wait_for_copies(0, for_wave_groups=False)
                gpu.BarrierOp()
                next_ = stage
            scf.YieldOp([next_, *flat(compute(tile, stage, cut_sums(carried)))])
        return cut_sums(list(loop.results)[1:])


def _steps(sizes: Sequence[int]) -> list[int]:
    """From neighbour to neighbour along each axis of a box."""
    return [math.prod(sizes[at + 1 :]) for at in range(len(sizes))]


def flat(sums: Sums) -> list[ir.Value]:
    """Sums in a row."""
    return [one for own in sums for one in own]


def cut_sums(values: Sequence[ir.Value]) -> Sums:
    """Sums in a row as those of each product."""
    return [list(values[at : at + FOUR]) for at in range(0, len(values), FOUR)]
