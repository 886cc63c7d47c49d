# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sums of a lane of `scaled-gemm`: fragments and scales, and the loop of its products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.passes.depthwise_parts.arithmetic import below, both, cut, linear, loop, number
from conv_compiler.passes.depthwise_parts.pixels import zeros
from conv_compiler.passes.scaled_parts.sizes import BLOCK, DEPTH, ROWS, SIDE

if TYPE_CHECKING:
    from conv_compiler.passes.scaled_parts.operands import Packed
    from conv_compiler.passes.scaled_parts.sizes import ScaledSizes


class Products:
    """What lanes multiply: `rows` of the gradient, `columns` of the image."""

    def __init__(self, sizes: ScaledSizes, rows: Packed, columns: Packed) -> None:
        self.sizes, self.rows, self.columns = sizes, rows, columns

    def sums(
        self,
        first: dict[str, ir.Value],
        lane: dict[str, ir.Value],
        quarter: ir.Value,
        place: ir.Value,
    ) -> list[ir.Value]:
        """The four sums of a lane for each row tile and column tile, in turn."""
        sizes, rows, columns = self.sizes, self.rows, self.columns
        groups = lane["g"]
        fours, row = cut(place, (0, ROWS))
        addresses = []
        for tile in range(sizes.row_tiles):
            own = linear(linear(fours, ROWS * sizes.row_tiles, row), 1, ROWS * tile)
            own, _ = _bounded(linear(first["r"], 1, own), sizes.rows)
            addresses.append(
                [
                    linear(own, by.of["K"], linear(groups, by.of["G"]))
                    for by in (rows.by_element, rows.by_scale)
                ]
            )
        pixels = []
        for tile in range(sizes.column_tiles):
            own, _ = _bounded(linear(lane["c"], 1, tile), sizes.columns)
            image, *taps = image_and_taps(sizes, own)
            starts = [
                linear(linear(tap, dilation), 1, -pad)
                for tap, dilation, pad in zip(taps, sizes.dilation, sizes.pad, strict=True)
            ]
            bases = [
                linear(image, by.of["C"], linear(groups, by.of["G"]))
                for by in (columns.by_element, columns.by_scale)
            ]
            pixels.append((starts, bases))
        total = sizes.steps
        for size in sizes.outs:
            total *= size

        def step(iteration: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            *out, at = cut(iteration, (*sizes.outs, sizes.steps))
            depth = linear(at, DEPTH, linear(quarter, sizes.run))
            block = linear(at, DEPTH // BLOCK, quarter)
            starts_of_runs = range(0, BLOCK // sizes.run * DEPTH // 2, DEPTH // 2)
            runs: list[ir.Value | None] = [None for _ in starts_of_runs]
            there = None
            if sizes.summed % DEPTH:
                runs = [below(linear(depth, 1, x), sizes.summed) for x in starts_of_runs]
                there = below(block, sizes.blocks)
            of_rows = []
            for base, base_of_scale in addresses:
                for stride, scale_stride, o in zip(
                    rows.by_element.space, rows.by_scale.space, out, strict=True
                ):
                    base = linear(o, stride, base)
                    base_of_scale = linear(o, scale_stride, base_of_scale)
                found = rows.fragment(base, depth, runs)
                of_rows.append((found, rows.scale(base_of_scale, block, there)))
            of_columns = []
            for starts, (base, base_of_scale) in pixels:
                inside = None
                for axis, (start, o) in enumerate(zip(starts, out, strict=True)):
                    pixel = linear(o, sizes.stride[axis], start)
                    pixel, test = self.pixel(axis, pixel)
                    inside = both(inside, test)
                    base = linear(pixel, columns.by_element.space[axis], base)
                    base_of_scale = linear(pixel, columns.by_scale.space[axis], base_of_scale)
                tests = [both(inside, run) for run in runs]
                found = columns.fragment(base, depth, tests)
                scale = columns.scale(base_of_scale, block, both(inside, there))
                of_columns.append((found, scale))
            pairs = [(a, b) for a in of_rows for b in of_columns]
            return [_product(*a, *b, one) for (a, b), one in zip(pairs, sums, strict=True)]

        none = zeros(ir.VectorType.get([ROWS], ir.F32Type.get()))
        return loop(total, [none] * (sizes.row_tiles * sizes.column_tiles), step)

    def pixel(self, axis: int, pixel: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        """A pixel of the image, and whether it is one; None where all are."""
        sizes = self.sizes
        reach = (sizes.outs[axis] - 1) * sizes.stride[axis]
        last = reach + (sizes.taps[axis] - 1) * sizes.dilation[axis] - sizes.pad[axis]
        if not sizes.pad[axis] and last < sizes.image[axis]:
            return pixel, None
        test = below(pixel, sizes.image[axis])
        return arith.SelectOp(test, pixel, number(0)).result, test


def image_and_taps(sizes: ScaledSizes, column: ir.Value) -> list[ir.Value]:
    """The image and the taps of a column, as they follow one another in the result."""
    if sizes.row_is_inner:
        return cut(column, (sizes.images, *sizes.taps))
    *taps, image = cut(column, (*sizes.taps, sizes.images))
    return [image, *taps]


def _product(
    a: ir.Value, a_scale: ir.Value, b: ir.Value, b_scale: ir.Value, sums: ir.Value
) -> ir.Value:
    """The sums with a product of two fragments, each in blocks with a scale."""
    i32 = ir.IntegerType.get_signless(32)
    sizes = {"m": SIDE, "n": SIDE, "k": DEPTH, "scalesIdxA": 0, "scalesIdxB": 0}
    made = ir.Operation.create(
        "amdgpu.scaled_mfma",
        results=[sums.type],
        operands=[a, b, sums, a_scale, b_scale],
        attributes={name: ir.IntegerAttr.get(i32, size) for name, size in sizes.items()},
    )
    result: ir.Value = made.results[0]
    return result


def _bounded(value: ir.Value, size: int) -> tuple[ir.Value, ir.Value]:
    """An index that is 0 where there is no such element, and whether there is."""
    test = below(value, size)
    return arith.SelectOp(test, value, number(0)).result, test
