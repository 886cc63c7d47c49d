# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses in 32 bits, for kernels a pass writes itself: half the registers of an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, scf


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def number(value: int) -> ir.Value:
    """A constant."""
    return arith.ConstantOp(_i32(), ir.IntegerAttr.get(_i32(), value)).result


def in_32_bits(index: ir.Value) -> ir.Value:
    """An index as a number."""
    return arith.IndexCastOp(_i32(), index).result


def linear(value: ir.Value, factor: int, term: ir.Value | int = 0) -> ir.Value:
    """value * factor + term."""
    scaled = arith.MulIOp(value, number(factor)).result if factor != 1 else value
    if isinstance(term, int):
        return arith.AddIOp(scaled, number(term)).result if term else scaled
    return arith.AddIOp(scaled, term).result


def cut(value: ir.Value, sizes: Sequence[int]) -> list[ir.Value]:
    """A linear index as one index an axis, outermost first; the first is not bounded."""
    found: list[ir.Value] = []
    for size in reversed(sizes[1:]):
        found.append(arith.RemUIOp(value, number(size)).result)
        value = arith.DivUIOp(value, number(size)).result
    return [value, *reversed(found)]


def below(value: ir.Value, size: int) -> ir.Value:
    """Whether 0 <= value < size."""
    return arith.CmpIOp(arith.CmpIPredicate.ult, value, number(size)).result


def both(*tests: ir.Value | None) -> ir.Value | None:
    """All tests together; None stands for true."""
    found: ir.Value | None = None
    for test in tests:
        if test is not None:
            found = test if found is None else arith.AndIOp(found, test).result
    return found


def inside(value: ir.Value, test: ir.Value | None) -> ir.Value:
    """The value, or 0 where the test fails."""
    return value if test is None else arith.SelectOp(test, value, number(0)).result


def bounded(at: ir.Value, size: int, first: int, span: int) -> tuple[ir.Value, ir.Value | None]:
    """An index that runs from `first` over `span`, kept inside an axis of `size`, and whether it
    is; None where it always is."""
    if first >= 0 and first + span < size:
        return at, None
    test = below(at, size)
    return inside(at, test), test


def loop(
    iterations: int,
    values: list[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """A loop from 0 with values that iterations hand on; no loop for one iteration."""
    if iterations == 1:
        return body(number(0), values)
    bounds = [number(bound) for bound in (0, iterations, 1)]
    loop = scf.ForOp(*bounds, values)
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(body(loop.induction_variable, list(loop.inner_iter_args)))
    return list(loop.results)


def put_where(test: ir.Value | None, tensor: ir.Value, put: Callable[[], ir.Value]) -> ir.Value:
    """What `put` makes of a tensor where the test holds, and the tensor elsewhere; without a test
    what `put` makes."""
    if test is None:
        return put()
    chosen = scf.IfOp(test, [tensor.type], has_else=True)
    with ir.InsertionPoint(chosen.then_block):
        scf.YieldOp([put()])
    with ir.InsertionPoint(chosen.else_block):
        scf.YieldOp([tensor])
    result: ir.Value = chosen.results[0]
    return result


def times(value: ir.Value, factor: int) -> ir.Value:
    """An index times a constant."""
    return arith.MulIOp(value, arith.ConstantOp(ir.IndexType.get(), factor).result).result
