# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a thread of `depthwise_pixels` multiplies a source pixel by a tap of its filter.

A pixel is a vector of the source channels of the thread's groups, one group behind the other. The
sums of a result pixel are a vector of result channels. No product has factors of two groups.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from iree.compiler import ir
from iree.compiler.dialects import amdgpu, arith, vector
from iree.compiler.dialects import math as math_dialect

from conv_compiler.passes.depthwise_parts.arithmetic import cut, linear, number
from conv_compiler.passes.depthwise_parts.filters import loaded

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand
    from conv_compiler.passes.depthwise_parts.options import PixelOptions

# The weights of a tap as a product wants them.
Tap: TypeAlias = list[ir.Value]


class Product(ABC):
    """A way to multiply. `strips` is how many threads that have the same channels, and strips of
    their own, must be adjacent lanes."""

    strips: ClassVar[int] = 1

    def __init__(self, options: PixelOptions, accumulator: ir.Type) -> None:
        self.options, self.accumulator = options, accumulator
        self.is_integer = isinstance(accumulator, ir.IntegerType)

    @abstractmethod
    def taps(
        self, weight: Operand, tensor: ir.Value, channel: ir.Value, place: ir.Value
    ) -> list[Tap]:
        """The filter of a thread from its first result `channel` on, by tap.

        `place` is the thread's among those that have the same channels.
        """

    @abstractmethod
    def multiply_add(self, pixel: ir.Value, tap: Tap, sums: ir.Value) -> ir.Value:
        """The sums with the products of a pixel and a tap."""

    @property
    def read(self) -> int:
        """Source channels that a thread reads of a pixel."""
        return self.options.read

    def sources(self, channel: ir.Value) -> ir.Value:
        """The first of them, for a thread's first result channel."""
        return linear(group_of(self.options, channel), self.options.sources)

    def prepared(self, operand: Operand, value: ir.Value) -> ir.Value:
        """Elements of an operand after its ops, as they are multiplied."""
        return operand.applied(value)

    def first(self, channel: ir.Value) -> tuple[ir.Value, int]:
        """The address of a thread's first weight, and of how many elements it is a multiple."""
        options = self.options
        group_step, result_step, _, _ = options.weight_steps
        if options.vector % options.results == 0:
            group = group_of(options, channel)
            return linear(group, group_step), options.groups_of_thread * group_step
        group, result = cut(channel, (0, options.results))
        aligned = math.gcd(group_step, options.vector * result_step)
        return linear(result, result_step, linear(group, group_step)), aligned


class Fma(Product):
    """Result channels in lanes of a vector: a fused multiply-add for each source channel, in the
    type of the sums."""

    def taps(
        self, weight: Operand, tensor: ir.Value, channel: ir.Value, place: ir.Value
    ) -> list[Tap]:
        """A vector of result channels for each source channel."""
        options = self.options
        weights, distances = loaded(
            options,
            tensor,
            *self.first(channel),
            range(options.results_of_group),
            options.sources,
        )
        return [
            [
                self.prepared(
                    weight, weights.gathered([row[c] for group in of_tap for row in group])
                )
                for c in range(options.sources)
            ]
            for of_tap in distances
        ]

    def prepared(self, operand: Operand, value: ir.Value) -> ir.Value:
        """Extended to the type of the sums."""
        value = operand.applied(value)
        type = ir.VectorType(value.type)
        if type.element_type == self.accumulator:
            return value
        wide = ir.VectorType.get(type.shape, self.accumulator)
        return (arith.ExtSIOp if self.is_integer else arith.ExtFOp)(wide, value).result

    def multiply_add(self, pixel: ir.Value, tap: Tap, sums: ir.Value) -> ir.Value:
        """Each source channel, beside all result channels of its group."""
        options = self.options
        for c, weights in enumerate(tap):
            factor = pixel
            if options.sources != 1 or options.results_of_group != 1:
                places = [
                    group * options.sources + c
                    for group in range(options.groups_of_thread)
                    for _ in range(options.results_of_group)
                ]
                factor = vector.ShuffleOp(pixel, pixel, places).result
            sums = self._fma(factor, weights, sums)
        return sums

    def _fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        if self.is_integer:
            return arith.AddIOp(c, arith.MulIOp(a, b).result).result
        return math_dialect.FmaOp(a, b, c).result


class Dot(Product):
    """Source channels in the 32 bits of a dot product: one for each result channel."""

    def taps(
        self, weight: Operand, tensor: ir.Value, channel: ir.Value, place: ir.Value
    ) -> list[Tap]:
        """A vector of source channels for each result channel."""
        options = self.options
        weights, distances = loaded(
            options,
            tensor,
            *self.first(channel),
            range(options.results_of_group),
            options.sources,
        )
        return [
            [self.prepared(weight, weights.gathered(row)) for group in of_tap for row in group]
            for of_tap in distances
        ]

    def multiply_add(self, pixel: ir.Value, tap: Tap, sums: ir.Value) -> ir.Value:
        """Each result channel, by the source channels of its group."""
        options, found = self.options, []
        per = 32 // ir.VectorType(pixel.type).element_type.width
        for at, weights in enumerate(tap):
            first = at // options.results_of_group * options.sources
            sum = vector.ExtractOp(sums, [], [at]).result
            for c in range(0, options.sources, per):
                a, b = _part(pixel, first + c, per), _part(weights, c, per)
                sum = amdgpu.dot(a, b, sum)
            found.append(sum)
        return vector.FromElementsOp(sums.type, found).result


class Matrix(Product):
    """Matrix instructions, whose columns are pixels and whose rows are result channels.

    `strips` adjacent lanes have the same channels and a pixel each, of strips of their own. A lane
    brings adjacent source channels of its pixel, and the same ones of the result channel that is
    its row. It gets four rows of its column: its own result channels.
    """

    blocks: ClassVar[int] = 1
    parts: ClassVar[int] = 1  # lanes that have the channels of a group between them

    @property
    def read(self) -> int:
        """A part of each group's."""
        return self.options.read // self.parts

    def row(self, channel: ir.Value, place: ir.Value) -> tuple[ir.Value, int]:
        """As `first`, of the lane's row."""
        at, aligned = self.first(channel)
        step = self.options.weight_steps[1]
        return linear(place, step, at), math.gcd(aligned, step)

    def taps(
        self, weight: Operand, tensor: ir.Value, channel: ir.Value, place: ir.Value
    ) -> list[Tap]:
        """The lane's source channels of its row, for each four result channels of each group."""
        options = self.options
        weights, distances = loaded(
            options,
            tensor,
            *self.row(channel, place),
            range(0, options.results_of_group, _ROWS),
            self.read // options.groups_of_thread,
        )
        size = options.depth // self.parts
        return [
            [
                self.prepared(weight, weights.gathered(row[c : c + size]))
                for group in of_tap
                for row in group
                for c in range(0, len(row), size)
            ]
            for of_tap in distances
        ]

    def multiply_add(self, pixel: ir.Value, tap: Tap, sums: ir.Value) -> ir.Value:
        """Each four result channels, by all source channels of their group."""
        options, left = self.options, iter(tap)
        of_group, size = self.read // options.groups_of_thread, options.depth // self.parts
        for first in range(0, options.vector, _ROWS):
            group = first // options.results_of_group
            part = _part(sums, first, _ROWS)
            for c in range(0, of_group, size):
                factors = next(left), _part(pixel, group * of_group + c, size)
                if size == 1:
                    factors = tuple(vector.ExtractOp(one, [], [0]).result for one in factors)
                shape = self.strips, self.strips, options.depth
                part = amdgpu.mfma(*shape, *factors, part, blocks=self.blocks)
            if options.vector == _ROWS:
                return part
            sums = vector.InsertStridedSliceOp(part, sums, [first], [1]).result
        return sums


class Blocks(Matrix):
    """16 blocks of four rows and columns: groups of some fours of channels."""

    strips: ClassVar[int] = 4
    blocks: ClassVar[int] = 16


class Tiles(Matrix):
    """16 rows and columns: groups of some sixteens of channels.

    Four lanes have a fourth of the source channels each. They have the result channels between
    them, or an even part of these: then other lanes multiply the same sources by the other rows.
    """

    strips: ClassVar[int] = 16
    parts: ClassVar[int] = 4

    def sources(self, channel: ir.Value) -> ir.Value:
        """The part of a group's source channels that stands for the part of its result channels."""
        group, result = cut(channel, (0, self.options.results))
        return linear(group, self.options.sources, self._first_source(result))

    def row(self, channel: ir.Value, place: ir.Value) -> tuple[ir.Value, int]:
        """Rows are result channels of four lanes, four of each."""
        group_step, result_step, _, source_step = self.options.weight_steps
        group, result = cut(channel, (0, self.options.results))
        part, row = cut(place, (0, _ROWS))
        at = linear(self._first_source(result), source_step, linear(group, group_step))
        rows = linear(part, self.options.vector, row)
        if self._results < self.options.results:
            rows = linear(cut(result, (0, self._results))[0], self._results, rows)
        at = linear(rows, result_step, at)
        return at, math.gcd(group_step, self.read * source_step, result_step)

    @property
    def _results(self) -> int:
        """Result channels of four lanes."""
        return self.parts * self.options.vector

    def _first_source(self, result: ir.Value) -> ir.Value:
        if self._results < self.options.results:
            result = cut(result, (0, self._results))[1]
        part = arith.DivUIOp(result, number(self.options.vector)).result
        return linear(part, self.read)


def group_of(options: PixelOptions, channel: ir.Value) -> ir.Value:
    """The group of a result channel."""
    return channel if options.results == 1 else cut(channel, (0, options.results))[0]


PRODUCTS: Mapping[str, type[Product]] = MappingProxyType(
    {"fma": Fma, "dot": Dot, "blocks": Blocks, "tiles": Tiles}
)
# Rows of its column that a lane gets of a matrix instruction.
_ROWS = 4


def _part(value: ir.Value, first: int, size: int) -> ir.Value:
    """Some adjacent elements of a vector."""
    type = ir.VectorType(value.type)
    if type.shape == [size]:
        return value
    part = ir.VectorType.get([size], type.element_type)
    return vector.ExtractStridedSliceOp(part, value, [first], [size], [1]).result
