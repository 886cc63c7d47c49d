# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a contraction of operands with block scales as matrix instructions that take the scales.

Before: the contraction of bf16 operands, each made of elements and scales by a kernel in front.
After, in one dispatch region that reads elements and scales themselves:

    forall group, tile of rows, tile of columns                     workgroups
      forall lane of some waves                                     threads
        acc = 0                                                     registers
        for gradient pixel, 128 of N                                a loop
          elements and scales of the lane's rows and columns        loads, 16 or 32 elements each
          acc += v_mfma_scale_f32_16x16x128_f8f6f4                  each row tile and column tile
        result = epilogue(acc)                                      vectors stored

Blocks lie along N in the roles of a weight gradient. An operand with N elsewhere than innermost is
transposed in front, and packed elements are packed along N by that. Rows and columns are dealt to
lanes so that a lane's sums are adjacent in the result. Row 4 q + r of tile i is row
4 tiles q + 4 i + r of the wave's. Column c of tile j is column tiles c + j.

A lane of group q (lane / 16) has depths 16 q to 16 q + 15 of each half of the 128. Of elements of 4
and 6 bits it has depths 32 q to 32 q + 31. It has the scale of depths 32 q to 32 q + 31.
`vgpu/native/isa/matrix_f8f6f4.cpp` has the sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.ir.loop_nest import erase_if_dead, find_nests
from conv_compiler.passes.cpu_kernel.foralls import Piece, forall, slice_of
from conv_compiler.passes.depthwise_parts.arithmetic import cut, in_32_bits, linear, number
from conv_compiler.passes.depthwise_parts.operands import Result, find_result
from conv_compiler.passes.scaled_parts.operands import Packed
from conv_compiler.passes.scaled_parts.products import Products
from conv_compiler.passes.scaled_parts.sizes import RESULTS, ROWS, SIDE, ScaledSizes
from conv_compiler.passes.scaled_parts.stores import Stores

_LANES = 64


@dataclass(frozen=True, kw_only=True)
class ScaledGemm(ScaledSizes):
    """The pass; its options are those of `ScaledSizes`."""

    name: ClassVar[str] = "scaled-gemm"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if it is not of elements and scales."""
        with module.context, ir.Location.unknown():
            nests = find_nests(module)
            if len(nests) != 1 or self.result not in RESULTS:
                raise UnsupportedStrategy(
                    f"module: {len(nests)} contractions, a result {self.result}; give one that is "
                    f"{' or '.join(RESULTS)}"
                )
            op = nests[0].op
            result = find_result(op.results[0])
            with ir.InsertionPoint(result.value.owner):
                kernel = _Kernel(self, op, result)
                made = kernel.value()
            last = result.value.owner
            result.value.replace_all_uses_with(made)
            erase_if_dead(last)


class _Kernel:
    """The kernel while it is written."""

    def __init__(self, sizes: ScaledSizes, op: ir.Operation, result: Result) -> None:
        self.sizes, self.value_before = sizes, result.value
        extents = {"G": sizes.groups, "K": sizes.rows, "C": sizes.images, "N": sizes.summed}
        # Operand 0 of the contraction is the image.
        columns = Packed.of(op.operands[0], sizes.source, extents, sizes.image, sizes.element)
        rows = Packed.of(op.operands[1], sizes.weight, extents, sizes.outs, sizes.element)
        self.products = Products(sizes, rows, columns)
        places = {"C*GK": "cgr", "GC*K": "gcr", "GK*C": "grc"}
        self.order = places[sizes.result]
        self.extents = {"g": sizes.groups, "r": sizes.rows, "c": sizes.columns}
        self.tiles = dict(zip("grc", (1, *sizes.tile), strict=True))
        self.stores = Stores(sizes, result, self.order, self.extents, self.tiles)

    def value(self) -> ir.Value:
        """The result in the form in which the program has it."""
        element = ops.element_of(self.value_before)
        shape = [self.extents[name] for name in self.order]
        blocks = {name: -(-self.extents[name] // self.tiles[name]) for name in "grc"}
        region = dispatches.dispatch_region(ir.RankedTensorType.get(shape, element))
        dispatches.count_workgroups(region)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            out = tensor.EmptyOp(shape, element).result

            def workgroup(ids: list[ir.Value], out: ir.Value) -> Piece:
                at = cut(in_32_bits(ids[0]), list(blocks.values()))
                first = {
                    name: linear(one, self.tiles[name])
                    for name, one in zip(blocks, at, strict=True)
                }
                box = {
                    name: _part(one, self.extents[name], self.tiles[name])
                    for name, one in first.items()
                }
                offsets = [box[name][0] for name in self.order]
                sizes = [box[name][1] for name in self.order]
                piece = slice_of(out, offsets, sizes, [_static(one) for one in sizes])
                return self.threads(first, piece, box), offsets, sizes

            count = blocks["g"] * blocks["r"] * blocks["c"]
            made = forall((count,), out, ["#iree_codegen.workgroup_mapping<x>"], workgroup)
            made.owner.operation.attributes[ROLE] = ir.StringAttr.get("contraction")
            dispatches.dispatch_return(made)
        flat = ops.merge_axes(region.results[0], 0, len(shape))
        return ops.split_axis(flat, 0, ops.shape_of(self.value_before))

    def threads(
        self,
        first: dict[str, ir.Value],
        out: ir.Value,
        box: dict[str, tuple[ir.Value | int, ir.Value | int]],
    ) -> ir.Value:
        """One workgroup's tile; `first` has its first row, column and its group."""
        sizes = self.sizes

        def a_thread(ids: list[ir.Value], out: ir.Value) -> Piece:
            wave, quarter, place = cut(in_32_bits(ids[0]), (0, _LANES // SIDE, SIDE))
            column = linear(linear(wave, SIDE, place), sizes.column_tiles)
            own = {"g": number(0), "r": linear(quarter, ROWS * sizes.row_tiles), "c": column}
            extent = {"g": 1, "r": ROWS * sizes.row_tiles, "c": sizes.column_tiles}
            part = {name: _part(own[name], box[name][1], extent[name]) for name in "grc"}
            offsets = [part[name][0] for name in self.order]
            extents = [part[name][1] for name in self.order]
            piece = slice_of(out, offsets, extents, [_static(one) for one in extents])
            lane = {name: linear(first[name], 1, own[name]) for name in "grc"}
            sums = self.products.sums(first, lane, quarter, place)
            return self.stores.written(piece, lane, sums), offsets, extents

        threads = sizes.waves * _LANES
        return forall((threads,), out, ["#gpu.thread<linear_dim_0>"], a_thread)


def _static(size: ir.Value | int) -> int:
    return size if isinstance(size, int) else ir.ShapedType.get_dynamic_size()


def _part(
    first: ir.Value, extent: ir.Value | int, size: int
) -> tuple[ir.Value | int, ir.Value | int]:
    """Offset and size of a part of an axis, which the axis may cut short or leave empty."""
    index = ir.IndexType.get()
    at = arith.IndexCastOp(index, first).result
    if isinstance(extent, int) and extent % size == 0:
        return at, size
    if isinstance(extent, int):
        extent = arith.ConstantOp(index, extent).result
    left = arith.SubIOp(extent, at).result
    none, most = (arith.ConstantOp(index, x).result for x in (0, size))
    return at, arith.MaxSIOp(arith.MinSIOp(left, most).result, none).result
