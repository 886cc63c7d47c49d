# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Have the main loop's iterations run through the places of the window that a tile of rows meets.

Before and after, for windows of four places with two iterations each, of which the tile meets 0
and 2:

    for i = 0 to 8                    for i = 0 to 8
      place = i / 2                     place = [0, 2, 0, 2][i / 2]
      iteration(place, i % 2)           iteration(place, i % 2)

The places that are met stand at the start of the table, and the last of them at its end.
`passes/shorten_loop.py` leaves out the iterations between, once the loop is software pipelined. A
pipelined loop has its last iterations behind it, with their numbers written out: these find the end
of the table.

The table is a number, as many bits a place as one takes. It and what is read of it are scalar.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import affine, arith

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.main_loop.loop_ops import operation
from conv_compiler.passes.main_loop.row_tiles import (
    by_tile,
    constant,
    loops_and_tiles,
    tile_of,
    written,
)
from conv_compiler.problem.phase_taps import TapTable

_SHORT, _LONG = 32, 64


@dataclass(frozen=True, kw_only=True)
class SkipTaps(TapTable):
    """Options: those of TapTable. The tiles of rows change places where they are started so."""

    name: ClassVar[str] = "skip-taps"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the main loops, which are not yet pipelined; UnsupportedStrategy for others."""
        with module.context, ir.Location.unknown():
            for loop, started in list(loops_and_tiles(module)):
                bounds = [written(value) for value in list(loop.operands)[:3]]
                if bounds != [0, self.places * self.steps, 1]:
                    raise UnsupportedStrategy(
                        f"main loop from, to, by {bounds}: not {self.places} places of "
                        f"{self.steps} iterations each; use another form"
                    )
                self._rewrite(loop, self._tile(started))

    def _tile(self, started: ir.BlockArgument) -> ir.Value:
        """The tile of rows of a workgroup, which takes the place of the number of its start."""
        users = [(operation(use.owner), use.operand_number) for use in started.uses]
        with ir.InsertionPoint.at_block_begin(started.owner):
            tile = tile_of(started, self)
        for user, at_operand in users:
            user.operands[at_operand] = tile
        return tile

    def _rewrite(self, loop: ir.Operation, tile: ir.Value) -> None:
        block = loop.regions[0].blocks[0]
        number = block.arguments[0]
        users = [(operation(use.owner), use.operand_number) for use in number.uses]
        with ir.InsertionPoint(loop):
            words = self._words(tile)
        with ir.InsertionPoint.at_block_begin(block):
            place = self._place(number, words)
            iteration, at = ir.AffineDimExpr.get(0), ir.AffineDimExpr.get(1)
            steps = ir.AffineMap.get(2, 0, [at * self.steps + iteration % self.steps])
            found = affine.AffineApplyOp(steps, [number, place]).result
        for user, at_operand in users:
            user.operands[at_operand] = found

    @property
    def _bits(self) -> int:
        return max(1, (self.places - 1).bit_length())

    @property
    def _word(self) -> int:
        """Bits of a word of the table."""
        return _SHORT if self.places * self._bits <= _SHORT else _LONG

    def _words(self, tile: ir.Value) -> list[ir.Value]:
        """The table of a tile of rows: the first places in the low bits of the first word."""
        each, kind = self._word // self._bits, ir.IntegerType.get_signless(self._word)
        found = []
        for start in range(0, self.places, each):
            entries = [
                (first, self._packed(self._repeated(met)[start : start + each]))
                for first, met in zip(self.first, self.met, strict=True)
            ]
            found.append(by_tile(tile, entries, kind))
        return found

    def _repeated(self, met: tuple[int, ...]) -> list[int]:
        """The places met, and the last of them again at the end of as many as the window has."""
        missing = self.places - len(met)
        tail = met[len(met) - min(len(met), missing) :]
        return [*met, *[met[-1]] * (missing - len(tail)), *tail]

    def _packed(self, places: list[int]) -> int:
        value = sum(place << (self._bits * i) for i, place in enumerate(places))
        return value - (1 << self._word) if value >> (self._word - 1) else value

    def _place(self, number: ir.Value, words: list[ir.Value]) -> ir.Value:
        """The place of an iteration. One behind the last finds any place: what it loads is used by
        none."""
        index, kind = ir.IndexType.get(), words[0].type
        each, dim = self._word // self._bits, ir.AffineDimExpr.get(0)
        at = ir.AffineExpr.get_floor_div(dim, self.steps)
        in_word = at if len(words) == 1 else at % each
        shift = affine.AffineApplyOp(ir.AffineMap.get(1, 0, [in_word * self._bits]), [number])
        amount = arith.IndexCastOp(kind, shift.result).result
        amount = arith.AndIOp(amount, constant(kind, self._word - 1)).result
        word = words[0]
        for i, value in enumerate(words[1:], start=1):
            first = constant(index, i * each * self.steps)
            behind = arith.CmpIOp(arith.CmpIPredicate.uge, number, first).result
            word = arith.SelectOp(behind, value, word).result
        low = arith.ShRUIOp(word, amount).result
        place = arith.AndIOp(low, constant(kind, (1 << self._bits) - 1)).result
        found: ir.Value = arith.IndexCastUIOp(index, place).result
        return found
