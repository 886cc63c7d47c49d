# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The main loop of a kernel: copies to some stages of LDS, products from others."""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir
from iree.compiler.dialects import arith, gpu, scf

from conv_compiler.passes.depthwise_parts.arithmetic import below, linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.products import Products, PromotedProducts
from conv_compiler.passes.wgmma_parts.sizes import Tiles
from conv_compiler.passes.wgmma_parts.wave_products import WaveProducts

Sums = list[list[ir.Value]]
# Starts the copies of a tile, by its number, to a stage.
Copy = Callable[[ir.Value, ir.Value], None]


def products_of(tiles: Tiles) -> type[Products] | type[WaveProducts]:
    """Who multiplies such tiles."""
    return of_groups(tiles) if tiles.by.is_asynchronous else WaveProducts


def of_groups(tiles: Tiles) -> type[Products]:
    """The same of tiles that wave groups multiply."""
    return PromotedProducts if tiles.by.short_sums else Products


def multiplied(
    tiles: Tiles, products: Products | WaveProducts, count: int | ir.Value, copy: Copy
) -> Sums:
    """The sums of so many tiles of gemm_k.

    Copies of a later tile start behind products that go on by themselves, in front of others.
    """
    if isinstance(count, int) and count <= tiles.stages:
        return _at_once(tiles, products, count, copy)
    goes_on = tiles.by.is_asynchronous
    ahead = tiles.stages - tiles.by.stages_behind
    for tile in range(ahead):
        if isinstance(count, int):
            copy(number(tile), number(tile))
        else:
            branch = scf.IfOp(is_below(number(tile), count))
            with ir.InsertionPoint(branch.then_block):
                copy(number(tile), number(tile))
                scf.YieldOp([])
        ptx.close_copies()
    zeros = products.zeros()
    end = number(count) if isinstance(count, int) else count
    flat = [one for own in zeros for one in own]
    loop = scf.ForOp(number(0), end, number(1), [number(0), *flat])
    with ir.InsertionPoint(loop.body):
        stage, *carried = loop.inner_iter_args
        ptx.wait_for_copies(ahead - 1, goes_on)
        gpu.BarrierOp()
        sums = _cut(carried, len(zeros))
        if goes_on:
            sums = products.start(sums, stage)
        later = linear(loop.induction_variable, 1, ahead)
        branch = scf.IfOp(is_below(later, count))
        with ir.InsertionPoint(branch.then_block):
            copy(later, turned(linear(stage, 1, ahead), tiles.stages))
            scf.YieldOp([])
        ptx.close_copies()
        sums = products.done(sums, 1) if goes_on else products.start(sums, stage)
        following = turned(linear(stage, 1, 1), tiles.stages)
        scf.YieldOp([following, *(one for own in sums for one in own)])
    _, *results = loop.results
    return products.done(_cut(results, len(zeros)), 0)


def _at_once(tiles: Tiles, products: Products | WaveProducts, count: int, copy: Copy) -> Sums:
    """The sums of so few tiles that each has a stage: all copies start before the first product."""
    for tile in range(count):
        copy(number(tile), number(tile))
        ptx.close_copies()
    sums = products.zeros()
    for tile in range(count):
        ptx.wait_for_copies(count - 1 - tile, tiles.by.is_asynchronous)
        gpu.BarrierOp()
        sums = products.start(sums, number(tile))
    return products.done(sums, 0)


def is_below(value: ir.Value, end: int | ir.Value) -> ir.Value:
    """Whether 0 <= value < end."""
    if isinstance(end, int):
        return below(value, end)
    return arith.CmpIOp(arith.CmpIPredicate.ult, value, end).result


def _cut(values: list[ir.Value], parts: int) -> Sums:
    length = len(values) // parts
    return [list(values[i * length : (i + 1) * length]) for i in range(parts)]


def turned(stage: ir.Value, stages: int) -> ir.Value:
    """A stage that may be one turn too far."""
    test = below(stage, stages)
    return arith.SelectOp(test, stage, linear(stage, 1, -stages)).result
