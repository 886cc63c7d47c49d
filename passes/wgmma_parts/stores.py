# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a workgroup's sums are stored: in whole lines, by way of LDS.

A wave has sums of 16 rows, or of several times 16. Its lane l has, of each eight columns, two of
row l / 4, and two of the row eight behind it. Stored from there, a wave would write eight pieces of
32 bytes at a time. So the sums go to LDS, which the operands no longer need, and each thread stores
16 bytes of a row behind those of its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith, gpu, scf, vector

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import cut, linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.f8_conversions import applied
from conv_compiler.passes.wgmma_parts.sizes import WAVE, Tiles

# Floats behind each row in LDS: rows that lanes write at once lie in banks of their own.
ROW_PAD = 8
# The same of rows of pairs of rounded sums, in words of 32 bits.
NARROW_PAD = 4
PAIR, QUAD = 2, 4


# Where the sum of a row and a column of the tile lies in the result, and whether there is one.
Place = Callable[[ir.Value, ir.Value], tuple[ir.Value, ir.Value | None]]


def widest(element: ir.Type) -> int:
    """Elements of the widest store."""
    return ptx.PIECE * 8 // ops.bits_of(element)


def row_words(columns: int, is_narrow: bool) -> int:
    """Words of LDS from row to row of so many sums: of the sums, or of pairs that are rounded."""
    return columns // PAIR + NARROW_PAD if is_narrow else columns + ROW_PAD


@dataclass(frozen=True, kw_only=True)
class Store:
    """A workgroup's store: `width` adjacent columns of a row at a time, by `line` to a place."""

    tiles: Tiles
    thread: ir.Value
    width: int
    place: Place
    line: Line

    @property
    def is_narrow(self) -> bool:
        """Whether LDS has the sums rounded already, in pairs, which takes half of it."""
        return self.line.narrows(self.width)

    @property
    def _pitch(self) -> int:
        return row_words(self.tiles.tile_n, self.is_narrow)

    def write(
        self, lds: ir.Value, sums: Sequence[Sequence[ir.Value]], row: ir.Value, column: ir.Value
    ) -> None:
        """Store a wave's sums, of which the first has `row` and `column` in the tile, by way of
        LDS."""
        gpu.BarrierOp()  # all operands have been read
        lane = arith.RemUIOp(self.thread, number(WAVE)).result
        row = linear(arith.DivUIOp(lane, number(4)).result, 1, row)
        column = linear(arith.RemUIOp(lane, number(4)).result, PAIR, column)
        if self.is_narrow:
            column = arith.DivUIOp(column, number(PAIR)).result
        first = linear(row, self._pitch, column)
        for block, own in enumerate(sums):
            for half in range(2):
                behind = (block * self.tiles.by.rows + half * 8) * self._pitch
                for eight in range(self.tiles.columns // 8):
                    at = 4 * eight + 2 * half
                    words = own[at : at + PAIR]
                    if self.is_narrow:
                        words = [as_word(words, self.line.element)]
                    shift = behind + eight * 8 * len(words) // PAIR
                    store_vector(words, lds, linear(first, 1, shift))
        gpu.BarrierOp()
        self._lines(lds)

    def _lines(self, lds: ir.Value) -> None:
        """Store the tile, a thread some columns of a row at a time."""
        tiles, width = self.tiles, self.width
        across = tiles.tile_n // width
        words = width // PAIR if self.is_narrow else width
        at_once, rest = divmod(tiles.threads, across)
        row, column = cut(self.thread, [at_once, across])
        for behind in range(0, tiles.tile_m * across, tiles.threads):
            own = linear(row, 1, behind // across)
            if rest:
                own, column = cut(linear(self.thread, 1, behind), [tiles.tile_m, across])
            from_lds = linear(own, self._pitch, linear(column, words))
            at, exists = self.place(own, linear(column, width))
            with where(exists):
                if self.is_narrow:
                    self.line.copy(read_vector(lds, from_lds, words), at)
                else:
                    self.line.store(self._sums(lds, from_lds), at)

    def _sums(self, lds: ir.Value, at: ir.Value) -> list[ir.Value]:
        """Adjacent sums of LDS."""
        piece = min(self.width, QUAD)
        found: list[ir.Value] = []
        for part in range(0, self.width, piece):
            found += load_vector(lds, linear(at, 1, part), piece)
        return found


class where:
    """Inside of it, ops are built where a test holds; everywhere without one."""

    def __init__(self, test: ir.Value | None) -> None:
        self.point = None
        if test is not None:
            branch = scf.IfOp(test)
            with ir.InsertionPoint(branch.then_block):
                end = scf.YieldOp([])
            self.point = ir.InsertionPoint(end)

    def __enter__(self) -> None:
        if self.point:
            self.point.__enter__()

    def __exit__(self, *error: object) -> None:
        if self.point:
            self.point.__exit__(*error)


def store_vector(values: Sequence[ir.Value], memory: ir.Value, at: ir.Value) -> None:
    """Store adjacent scalars as one vector; its place is a multiple of their number."""
    _store(_vector(values), memory, at)


def _vector(values: Sequence[ir.Value]) -> ir.Value:
    type = ir.VectorType.get([len(values)], values[0].type)
    made = ir.Operation.create("vector.from_elements", results=[type], operands=list(values))
    found: ir.Value = made.results[0]
    return found


def _store(vector: ir.Value, memory: ir.Value, at: ir.Value) -> None:
    type = ir.VectorType(vector.type)
    ir.Operation.create(
        "vector.store",
        operands=[vector, memory, as_index(at)],
        attributes={"alignment": _bytes(type.shape[0], type.element_type)},
    )


class Extra(NamedTuple):
    """Another tensor that an op on the sums reads: it lies as the result does, has a number for
    each of so many `channels` that are adjacent in the result, or one for each call."""

    tensor: ir.Value
    per: str = "element"
    channels: int = 0

    def read(self, at: ir.Value, count: int) -> ir.Value:
        """What belongs to so many adjacent elements of the result, as a vector."""
        if self.per == "call":
            one = read_vector(self.tensor, number(0), 1)
            type = ir.VectorType.get([count], ir.VectorType(one.type).element_type)
            return vector.BroadcastOp(type, one).result
        if self.per == "channel":
            at = arith.RemUIOp(at, number(self.channels)).result
        return read_vector(self.tensor, at, count)


def in_memory(extra: Sequence[Extra], memory: Sequence[ir.Value]) -> list[Extra]:
    """The same tensors as a kernel has them."""
    return [one._replace(tensor=held) for one, held in zip(extra, memory, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Line:
    """How adjacent sums become elements of a result: an op on them or rounding, and other tensors
    that the op reads."""

    out: ir.Value
    op: ir.Operation | None = None
    extra: Sequence[Extra] = ()

    @property
    def element(self) -> ir.Type:
        """Of the result."""
        return ir.MemRefType(self.out.type).element_type

    @property
    def rounds_to_16_bits(self) -> bool:
        """Whether sums are rounded to 16 bits, and no more."""
        return self.op is None and ops.bits_of(self.element) == 16

    def narrows(self, width: int) -> bool:
        """Whether a store of so many columns at a time rounds its sums on the way to LDS."""
        return self.rounds_to_16_bits and width % PAIR == 0

    def copy(self, words: ir.Value, at: ir.Value) -> None:
        """Store pairs of elements that are rounded already, each pair in a word of 32 bits."""
        count = ir.VectorType(words.type).shape[0] * PAIR
        _store(_bits(words, ir.VectorType.get([count], self.element)), self.out, at)

    def store(self, sums: Sequence[ir.Value], at: ir.Value) -> None:
        """Store adjacent sums; their place is a multiple of their number."""
        if self.op is None:
            store_rounded(sums, self.out, at)
            return
        vectors = [_vector(sums), *self._read(at, len(sums))]
        _store(applied(self.op, vectors), self.out, at)

    def _read(self, at: ir.Value, count: int) -> list[ir.Value]:
        """Of the other tensors what belongs to so many adjacent elements."""
        return [one.read(at, count) for one in self.extra]


def only_rounds(op: ir.Operation) -> bool:
    """Whether an op on the sums does nothing but round them."""
    body = [inner.operation.name for inner in op.regions[0].blocks[0]]
    return body == ["arith.truncf", "linalg.yield"]


def store_rounded(sums: Sequence[ir.Value], memory: ir.Value, at: ir.Value) -> None:
    """Store adjacent sums in the type of the memory, as `store_vector` does."""
    element = ir.MemRefType(memory.type).element_type
    if not isinstance(element, ir.BF16Type) or len(sums) % PAIR:
        store_vector([ops.convert(one, element) for one in sums], memory, at)
        return
    pairs = [ptx.rounded_pair(*sums[i : i + PAIR]) for i in range(0, len(sums), PAIR)]
    _store(_bits(_vector(pairs), ir.VectorType.get([len(sums)], element)), memory, at)


def as_word(pair: Sequence[ir.Value], element: ir.Type) -> ir.Value:
    """Two sums rounded to a type of 16 bits, side by side in what is called an f32."""
    if isinstance(element, ir.BF16Type):
        narrow = _vector([ptx.rounded_pair(*pair)])
    else:
        narrow = _vector([ops.convert(one, element) for one in pair])
    word = ir.F32Type.get()
    found = _bits(narrow, ir.VectorType.get([1], word))
    taken = ir.Operation.create("vector.to_elements", results=[word], operands=[found])
    value: ir.Value = taken.results[0]
    return value


def _bits(vector: ir.Value, type: ir.Type) -> ir.Value:
    """The same bits as a vector of another type."""
    made = ir.Operation.create("vector.bitcast", results=[type], operands=[vector])
    found: ir.Value = made.results[0]
    return found


def or_zero(value: ir.Value, test: ir.Value | None) -> ir.Value:
    """A value, or 0 where a test fails."""
    return value if test is None else arith.SelectOp(test, value, ops.zero(value.type)).result


def load_vector(memory: ir.Value, at: ir.Value, count: int) -> list[ir.Value]:
    """So many adjacent scalars, read as one vector; their place is a multiple of their number."""
    vector = read_vector(memory, at, count)
    parts = ir.Operation.create(
        "vector.to_elements",
        results=[ir.VectorType(vector.type).element_type] * count,
        operands=[vector],
    )
    return list(parts.results)


def read_vector(memory: ir.Value, at: ir.Value, count: int) -> ir.Value:
    """So many adjacent elements as a vector."""
    element = ir.MemRefType(memory.type).element_type
    type = ir.VectorType.get([count], element)
    read = ir.Operation.create(
        "vector.load",
        results=[type],
        operands=[memory, as_index(at)],
        attributes={"alignment": _bytes(count, element)},
    )
    found: ir.Value = read.results[0]
    return found


def _bytes(count: int, element: ir.Type) -> ir.Attribute:
    return ir.Attribute.parse(f"{count * ops.bits_of(element) // 8} : i64")


def as_index(value: ir.Value) -> ir.Value:
    """A number that is not negative as an index."""
    return arith.IndexCastUIOp(ir.IndexType.get(), value).result
