# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the product of an implicit GEMM to the weight: where in P[g, m, ...] each element lies.

The placement is one linalg.generic of role `placement` over the weight's axes, whose loops it names
(`conv_compiler.loops`): a transposition of a view of P, or extraction by computed indices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from conv_compiler.ir import ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.ir.loop_nest import LOOPS
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction

# The indices in P[g, m, ...] of the element of a weight, from the extents and indices of the loops
# (g, k, taps..., c) by name, in that order.
Place = Callable[[Mapping[str, int], Mapping[str, ir.Value]], list[ir.Value]]


def placed(conv: Contraction, product: ir.Value, channels_first: bool) -> ir.Value:
    """The weight from P[g, k, columns], its columns (taps, channels), or the other way round."""
    *others, c = conv.weight_loops
    loops = [*others[:2], c, *others[2:]] if channels_first else [*others, c]
    sizes = conv.weight_sizes
    apart = ops.split_axis(product, 2, [sizes[name] for name in loops[2:]])
    dims = [ir.AffineDimExpr.get(i) for i in range(len(loops))]
    read = [dims[conv.weight_order.index(name)] for name in loops]
    return _placement(conv, [apart], [read, dims], lambda x, _: x)


def extracted(conv: Contraction, product: ir.Value, place: Place) -> ir.Value:
    """The weight whose elements lie at the `place` of its loops in P[g, m, ...].

    An index that falls where a loop rises, or depends on a loop twice, is no affine map that IREE
    tiles (it takes a tile's slice to begin at the tile's first index). The elements are extracted
    from the whole of P, padding included: IREE 3.13 gathers from a slice as if it were contiguous.
    """

    def body(_: ir.Value) -> ir.Value:
        loops = {name: linalg.IndexOp(axis).result for axis, name in enumerate(conv.weight_order)}
        return tensor.ExtractOp(product, place(conv.weight_sizes, loops)).result

    dims = [ir.AffineDimExpr.get(i) for i in range(len(conv.weight_order))]
    return _placement(conv, [], [dims], body)


def _placement(
    conv: Contraction,
    inputs: list[ir.Value],
    maps: list[list[ir.AffineExpr]],
    body: Callable[..., ir.Value],
) -> ir.Value:
    attributes = {
        ROLE: ir.StringAttr.get("placement"),
        LOOPS: ops.string_array(conv.weight_order),
    }
    empty = tensor.EmptyOp(ops.shape_of(conv.op.results[0]), conv.accumulator).result
    return ops.generic(inputs, empty, maps, len(conv.weight_order), 0, body, attributes)


def _constant(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result


def _linear(indices: Iterable[tuple[ir.Value, int]]) -> ir.Value:
    """The linear index of some (index, extent), outermost first."""
    at = _constant(0)
    for index, extent in indices:
        at = arith.AddIOp(arith.MulIOp(at, _constant(extent)).result, index).result
    return at


def mirrored(sizes: Mapping[str, int], loops: Mapping[str, ir.Value]) -> list[ir.Value]:
    """Where a weight lies in P[g, (taps..., k), c], taps reversed."""
    taps = [
        (arith.SubIOp(_constant(sizes[name] - 1), loops[name]).result, sizes[name])
        for name in _taps(sizes)
    ]
    return [loops["g"], _linear([*taps, (loops["k"], sizes["k"])]), loops["c"]]


def diagonal(groups: int, taps_outside: bool) -> Place:
    """Where a weight lies in P[merged g, (g, k), (taps...), (g, c)], taps and channels on one axis
    unless `taps_outside`."""

    def place(sizes: Mapping[str, int], loops: Mapping[str, ir.Value]) -> list[ir.Value]:
        merged = _constant(groups)
        block = (arith.RemUIOp(loops["g"], merged).result, groups)
        taps = [(loops[name], sizes[name]) for name in _taps(sizes)]
        channel = [block, (loops["c"], sizes["c"])]
        columns = [taps, channel] if taps_outside else [[*taps, *channel]]
        rows = [block, (loops["k"], sizes["k"])]
        return [arith.DivUIOp(loops["g"], merged).result, *map(_linear, (rows, *columns))]

    return place


def _taps(sizes: Mapping[str, int]) -> list[str]:
    """The loops between k and c."""
    return list(sizes)[2:-1]
