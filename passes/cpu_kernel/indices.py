# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index arithmetic and nested loops, for kernels that a pass writes; constants are folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, scf


def constant(value: int) -> ir.Value:
    """An index."""
    return arith.ConstantOp(ir.IndexType.get(), value).result


def _known(index: ir.Value) -> int | None:
    owner = index.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def times(index: ir.Value, factor: int) -> ir.Value:
    """index * factor."""
    if (value := _known(index)) is not None:
        return constant(value * factor)
    return index if factor == 1 else arith.MulIOp(index, constant(factor)).result


def plus(*terms: ir.Value) -> ir.Value:
    """The sum of some indices; 0 of none."""
    known = sum(value for term in terms if (value := _known(term)) is not None)
    total: ir.Value | None = None
    for term in terms:
        if _known(term) is None:
            total = term if total is None else arith.AddIOp(total, term).result
    if total is None:
        return constant(known)
    return arith.AddIOp(total, constant(known)).result if known else total


def delinearized(index: ir.Value, sizes: Sequence[int]) -> list[ir.Value]:
    """One index an axis, outermost first; 0 where an axis has one."""
    found: list[ir.Value] = []
    for size in reversed(sizes):
        if size == 1:
            found.append(constant(0))
            continue
        found.append(arith.RemUIOp(index, constant(size)).result)
        index = arith.DivUIOp(index, constant(size)).result
    return found[::-1]


def linearized(at: Sequence[ir.Value], sizes: Sequence[int]) -> ir.Value:
    """The number of a place, of so many an axis, outermost first."""
    number = constant(0)
    for index, size in zip(at, sizes, strict=True):
        number = plus(times(number, size), index)
    return number


def at_most(most: int, index: ir.Value) -> ir.Value:
    """The lesser of a number and an index."""
    if (value := _known(index)) is not None:
        return constant(min(most, value))
    return arith.MinUIOp(constant(most), index).result


def at_least(least: int, index: ir.Value) -> ir.Value:
    """The greater of a number and an index that may be negative."""
    if (value := _known(index)) is not None:
        return constant(max(least, value))
    return arith.MaxSIOp(constant(least), index).result


def divided(index: ir.Value, divisor: int) -> ir.Value:
    """index / divisor, rounded down, of an index that is not negative."""
    if (value := _known(index)) is not None:
        return constant(value // divisor)
    return index if divisor == 1 else arith.DivUIOp(index, constant(divisor)).result


def less(index: ir.Value, other: ir.Value) -> ir.Value:
    """index - other."""
    known = _known(index), _known(other)
    if known[0] is not None and known[1] is not None:
        return constant(known[0] - known[1])
    return arith.SubIOp(index, other).result


def choice(
    test: ir.Value,
    type: ir.Type,
    then: Callable[[], ir.Value],
    otherwise: Callable[[], ir.Value],
) -> ir.Value:
    """One value of a type or another, of which only one is computed."""
    branch = scf.IfOp(test, [type], has_else=True)
    for block, value in ((branch.then_block, then), (branch.else_block, otherwise)):
        with ir.InsertionPoint(block):
            scf.YieldOp([value()])
    result: ir.Value = branch.results[0]
    return result


def between(
    first: ir.Value,
    behind: ir.Value,
    values: list[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """A loop from one index to before another, that hands values on; one known iteration is no
    loop."""
    low, high = _known(first), _known(behind)
    if low is not None and high == low + 1:
        return body(first, values)
    loop = scf.ForOp(first, behind, constant(1), values)
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(body(loop.induction_variable, list(loop.inner_iter_args)))
    return list(loop.results)


def loops(
    iterations: Sequence[int | ir.Value],
    values: list[ir.Value],
    body: Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """Nested loops from 0, outermost first, that hand values on; one iteration is no loop."""
    if not iterations:
        return body([], values)
    known = iterations[0] if isinstance(iterations[0], int) else _known(iterations[0])
    if known == 0:
        return values
    if known == 1:
        return loops(iterations[1:], values, lambda at, values: body([constant(0), *at], values))
    count = constant(iterations[0]) if isinstance(iterations[0], int) else iterations[0]
    loop = scf.ForOp(constant(0), count, constant(1), values)
    with ir.InsertionPoint(loop.body):
        first = loop.induction_variable
        out = loops(
            iterations[1:],
            list(loop.inner_iter_args),
            lambda at, values: body([first, *at], values),
        )
        scf.YieldOp(out)
    return list(loop.results)
