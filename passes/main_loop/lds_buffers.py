# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of the pass `load-to-lds`: several buffers of LDS for a tile, and loads that write to
them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from iree.compiler import ir
from iree.compiler.dialects import affine, arith, memref

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.main_loop.copied_pieces import Piece
from conv_compiler.passes.main_loop.loop_ops import BARRIER, FENCE, operation
from conv_compiler.passes.main_loop.row_tiles import constant

_LOAD, _MARK, _WAIT = "amdgpu.gather_to_lds", "rocdl.asyncmark", "rocdl.wait.asyncmark"
_ANY = ir.ShapedType.get_dynamic_stride_or_offset()


class Buffers:
    """As many buffers as told for each tile of LDS that some pieces are copied to.

    Made where operations are inserted, before the loop that uses them.
    """

    def __init__(self, pieces: Sequence[Piece], count: int) -> None:
        tiles = dict.fromkeys(piece.tile for piece in pieces)
        sources = dict.fromkeys(piece.read.operands[0] for piece in pieces)
        self._count = count
        self._buffers = {tile: _several(tile, count) for tile in tiles}
        self._sources = {source: _flat(source) for source in sources}
        self._starts = [_start(piece) for piece in pieces]
        self._pieces = pieces

    def views(self, number: int) -> dict[ir.Value, ir.Value]:
        """What stands for each tile: its buffer of a number, from 0, around and around."""
        buffer = constant(ir.IndexType.get(), number % self._count)
        return {tile: _view(several, buffer) for tile, several in self._buffers.items()}

    def load(self, place: int, number: int, made: Mapping[ir.Value, ir.Value]) -> None:
        """Load the piece at a place among all to its buffer of a number.

        `made` has what stands for values of the loop. What is no pixel lies behind its operand,
        where buffer instructions give zeros.
        """
        piece, index = self._pieces[place], ir.IndexType.get()
        source = ir.MemRefType(piece.read.operands[0].type)
        at = linear([made.get(one, one) for one in piece.indices], source.shape)
        behind = constant(index, math.prod(source.shape))
        for test in piece.tests:
            at = arith.SelectOp(made.get(test, test), at, behind).result
        zeros = [constant(index, 0)] * (ir.MemRefType(piece.tile.type).rank - 1)
        to = [constant(index, number % self._count), *zeros, self._starts[place]]
        ir.Operation.create(
            _LOAD,
            operands=[
                self._sources[piece.read.operands[0]],
                at,
                self._buffers[piece.tile],
                *to,
            ],
            attributes={
                "transferType": ir.TypeAttr.get(piece.read.results[0].type),
                "async": ir.UnitAttr.get(),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, len(to)]),
            },
        )

    def free_tiles(self) -> None:
        """Erase the tiles that buffers stand for, and what frees them."""
        for tile in self._buffers:
            _erase_unused(tile)


def mark() -> None:
    """End a tile's loads: `wait` counts these marks."""
    ir.Operation.create(_MARK)


def wait(left: int) -> None:
    """Wait until no more than some tiles are on their way, for all waves."""
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(16), left)
    ir.Operation.create(_WAIT, attributes={"count": count})
    barrier()


def barrier() -> None:
    """Wait for all waves, and what they read and write in LDS."""
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    ir.Operation.create(BARRIER, attributes={"address_spaces": ir.ArrayAttr.get([space])})


def fence() -> None:
    """Have LLVM move nothing across."""
    (sample,) = ir.Module.parse(f"{FENCE} allow = none").body.operations
    ir.Operation.create(FENCE, attributes={"opts": sample.attributes["opts"]})


def linear(at: Sequence[ir.Value | int], shape: Sequence[int]) -> ir.Value:
    """The number of an element among those of an array without holes."""
    total, values, stride = ir.AffineConstantExpr.get(0), list[ir.Value](), 1
    for index, size in reversed(list(zip(at, shape, strict=True))):
        if isinstance(index, int):
            total = total + index * stride
        else:
            total = total + ir.AffineDimExpr.get(len(values)) * stride
            values.append(index)
        stride *= size
    map_of = ir.AffineMap.get(len(values), 0, [total])
    found: ir.Value = affine.AffineApplyOp(map_of, values).result
    return found


def _is_whole(kind: ir.MemRefType) -> bool:
    """Whether a type has all sizes and no holes."""
    plain = ir.AffineMapAttr.get(ir.AffineMap.get_identity(kind.rank))
    return bool(kind.has_static_shape and kind.layout == plain)


def _several(tile: ir.Value, count: int) -> ir.Value:
    """Several buffers in place of a tile."""
    one = ir.MemRefType(tile.type)
    if not _is_whole(one):
        raise UnsupportedStrategy(f"LDS of type {one}: has padding; use another form")
    several = ir.MemRefType.get(
        [count, *one.shape], one.element_type, memory_space=one.memory_space
    )
    with ir.InsertionPoint(operation(tile.owner)):
        found: ir.Value = memref.AllocOp(several, [], []).result
    return found


def _view(several: ir.Value, buffer: ir.Value) -> ir.Value:
    """One of several buffers, as a tile."""
    kind = ir.MemRefType(several.type)
    shape = kind.shape[1:]
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    one = ir.MemRefType.get(
        shape,
        kind.element_type,
        layout=ir.StridedLayoutAttr.get(_ANY, strides),
        memory_space=kind.memory_space,
    )
    whole = ir.DenseI64ArrayAttr.get
    found: ir.Value = ir.Operation.create(
        "memref.subview",
        results=[one],
        operands=[several, buffer],
        attributes={
            "static_offsets": whole([_ANY, *[0] * len(shape)]),
            "static_sizes": whole([1, *shape]),
            "static_strides": whole([1] * kind.rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, 0]),
        },
    ).results[0]
    return found


def _start(piece: Piece) -> ir.Value:
    """Where the first lane of a wave writes a piece, in elements from the start of its tile."""
    i32 = ir.IntegerType.get_signless(32)
    at = linear(piece.at, ir.MemRefType(piece.tile.type).shape)
    number = arith.IndexCastUIOp(i32, at).result
    first = ir.Operation.create("rocdl.readfirstlane", results=[i32], operands=[number])
    found: ir.Value = arith.IndexCastUIOp(ir.IndexType.get(), first.results[0]).result
    return found


def _flat(source: ir.Value) -> ir.Value:
    """An operand as a row of elements."""
    kind = ir.MemRefType(source.type)
    if not _is_whole(kind):
        raise UnsupportedStrategy(f"operand of type {kind}: has holes; use another form")
    flat = ir.MemRefType.get(
        [math.prod(kind.shape)], kind.element_type, memory_space=kind.memory_space
    )
    i64 = ir.IntegerType.get_signless(64)
    axes = ir.ArrayAttr.get([ir.IntegerAttr.get(i64, axis) for axis in range(kind.rank)])
    found: ir.Value = ir.Operation.create(
        "memref.collapse_shape",
        results=[flat],
        operands=[source],
        attributes={"reassociation": ir.ArrayAttr.get([axes])},
    ).results[0]
    return found


def _erase_unused(tile: ir.Value) -> None:
    """Erase a tile of LDS that nothing reads any more, its views, and what frees it."""
    for use in list(tile.uses):
        user = operation(use.owner)
        if user.name == "memref.subview":
            _erase_unused(user.results[0])
        elif user.name == "memref.dealloc":
            user.erase()
    if not list(tile.uses):
        operation(tile.owner).erase()
