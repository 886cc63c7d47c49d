# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Read back how the weight is made of P: a sum of parts, views of it, the placement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from conv_compiler.build.bwd_weight import FILTER_LOOPS
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.attributes import ROLE, ops_with_role
from conv_compiler.ir.loop_nest import LOOPS, erase_if_dead
from conv_compiler.passes.implicit_gemm_parts.placement import diagonal

_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")
_VIEWS = ("tensor.extract_slice", *_RESHAPES)


@dataclass(frozen=True, kw_only=True)
class PlacedSum:
    """The sum of P[s, g, m, t, n] over s, the views of it, outermost first, and the placement that
    reads the last of them, or `extracts` from the sum."""

    sum: ir.Operation
    views: tuple[ir.Operation, ...]
    placement: ir.Operation
    extracts: bool

    @property
    def partials(self) -> ir.Value:
        """P."""
        found: ir.Value = self.sum.operands[0]
        return found

    @property
    def shape(self) -> list[int]:
        """Of the weight."""
        return ops.shape_of(self.placement.results[0])

    @property
    def sizes(self) -> Mapping[str, int]:
        """Extents of the weight's axes, by the loops' names, in their order."""
        names = [ir.StringAttr(x).value for x in ir.ArrayAttr(self.placement.attributes[LOOPS])]
        return dict(zip(names, self.shape, strict=True))

    @property
    def taps_outside(self) -> bool:
        """Whether P has an axis of taps."""
        return len(ops.shape_of(self.partials)) > len("sgmn")

    @property
    def is_single(self) -> bool:
        """Whether one element of P is all of the weight."""
        return math.prod(self.shape) * ops.shape_of(self.partials)[0] == 1

    @property
    def is_extracted(self) -> bool:
        """Whether elements are extracted from P: by the placement, or because there is but one.

        IREE 3.13 makes a slice of one element larger in rank than what it is cut from.
        """
        return self.extracts or self.is_single

    @property
    def is_whole(self) -> bool:
        """Whether a single part has the elements of the weight and no others."""
        is_cut = any(view.name == "tensor.extract_slice" for view in self.views)
        return ops.shape_of(self.partials)[0] == 1 and not is_cut and not self.extracts

    @property
    def is_view(self) -> bool:
        """Whether a single part is the weight, its elements in their order."""
        in_order = self.is_whole and not self.is_single
        return in_order and list(self.read) == list(range(len(self.shape)))

    @property
    def read(self) -> Sequence[int]:
        """The weight's axis for each axis of the last view."""
        map = ir.AffineMapAttr(ir.ArrayAttr(self.placement.attributes["indexing_maps"])[0]).value
        return [ir.AffineDimExpr(x).position for x in map.results]

    def view_of_parts(self) -> ir.Value:
        """P seen as the sum is, each part by itself."""
        value, parts = self.partials, ops.shape_of(self.partials)[0]
        for view in self.views:
            shape = [parts, *ops.shape_of(view.results[0])]
            if view.name not in _RESHAPES:
                value = ops.leading(value, shape)
                continue
            groups = [
                [ir.IntegerAttr(axis).value + 1 for axis in ir.ArrayAttr(group)]
                for group in ir.ArrayAttr(view.attributes["reassociation"])
            ]
            value = ops.reshape(value, shape, [[0], *groups])
        return value

    def place(self, loops: Sequence[ir.Value]) -> list[ir.Value]:
        """The indices in P behind s of the weight at `loops`, as the placement computes them."""
        if not self.extracts:
            sizes = self.sizes
            names = ("g", "k", *(name for name in FILTER_LOOPS if name in sizes), "c")
            ordered = {name: sizes[name] for name in names}
            at = dict(zip(sizes, loops, strict=True))
            return diagonal(1, self.taps_outside)(ordered, at)
        copied: dict[ir.Value, ir.Value] = {}
        *arithmetic, extract, _ = (x.operation for x in self.placement.regions[0].blocks[0])
        for op in arithmetic:
            if op.name == "linalg.index":
                copied[op.results[0]] = loops[ir.IntegerAttr(op.attributes["dim"]).value]
                continue
            clone = op.clone()
            for number, operand in enumerate(op.operands):
                clone.operands[number] = copied[operand]
            copied[op.results[0]] = clone.results[0]
        return [copied[index] for index in list(extract.operands)[1:]]

    def erase_sum(self) -> None:
        """Erase the sum, where what extracted from it is gone."""
        if self.extracts:
            erase_if_dead(self.sum)


def find_placed_sum(module: ir.Module) -> PlacedSum:
    """The sum of parts behind the module's placement of a weight.

    Raises UnsupportedStrategy where there is none.
    """
    for placement in ops_with_role(module, "placement"):
        views: list[ir.Operation] = []
        extracts = len(placement.operands) == 1
        source = _extracted(placement) if extracts else _owner(placement.operands[0])
        while source is not None and source.name in _VIEWS:
            views.insert(0, source)
            source = _owner(source.operands[0])
        if source is not None and _is_sum(source):
            return PlacedSum(sum=source, views=tuple(views), placement=placement, extracts=extracts)
    raise UnsupportedStrategy(
        "sum-parts: no placement of a sum of parts; run im2col and split-k first"
    )


def _extracted(placement: ir.Operation) -> ir.Operation | None:
    """What makes the tensor that a placement extracts from."""
    *_, extract, _ = placement.regions[0].blocks[0]
    return _owner(extract.operation.operands[0])


def _owner(value: ir.Value) -> ir.Operation | None:
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def _is_sum(op: ir.Operation) -> bool:
    return ROLE in op.attributes and ir.StringAttr(op.attributes[ROLE]).value == "reduction"
