# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of a loop's next iteration, run in this one.

    for i = lower to upper                     x = f(lower)
      x = f(i)                                 for i = lower to upper, with x
      use(x)                            ->       use(x)
                                                 y = f(i + step)
                                                 next x = y

What the last iteration runs for the one behind it is used by none. Loads of it may lie outside
their operand: they have to be such that check this (buffer instructions of AMD's chips).
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, scf

from conv_compiler.passes.main_loop.loop_ops import kind, operation


def with_needs(loop: ir.Operation, wanted: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Operations of a loop's body and what they need of it, in order; none where that hangs on
    another iteration or is more than values."""
    block = loop.regions[0].blocks[0]
    number = {one.operation: i for i, one in enumerate(block.operations)}
    carried = list(block.arguments)[1:]
    found = {number[op]: op for op in wanted}
    waiting = list(wanted)
    while waiting:
        for value in waiting.pop().operands:
            if value in carried:
                return []
            if not isinstance(value.owner, ir.OpView | ir.Operation):
                continue
            op = operation(value.owner)
            if op in number and number[op] not in found:
                if kind(op) != "value":
                    return []
                found[number[op]] = op
                waiting.append(op)
    return [found[i] for i in sorted(found)]


def run_ahead(loop: ir.Operation, group: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Run a group of a loop's operations, with all they need, an iteration early: before the loop
    and at the end of each iteration. Replaces the loop and returns what now stands at the end of
    its body."""
    block = loop.regions[0].blocks[0]
    lower, upper, step, *inits = loop.operands
    # Found before operands change: the hash of an operation hangs on them.
    users = _users_outside(group)
    with ir.InsertionPoint(loop):
        first = _clones(group, {block.arguments[0]: lower})
        new = scf.ForOp(lower, upper, step, [*inits, *(first[value] for value, _ in users)])
    *body, end = (one.operation for one in block.operations)
    for op in [*body, end]:
        new.body.append(op)
    arguments = list(new.body.arguments)
    for old, argument in zip(block.arguments, arguments, strict=False):
        old.replace_all_uses_with(argument)
    for (_, uses), argument in zip(users, arguments[len(block.arguments) :], strict=True):
        for user, place in uses:
            user.operands[place] = argument
    with ir.InsertionPoint(end):
        following = arith.AddIOp(arguments[0], step).result
        for op in group:
            op.move_before(end)
            for place, value in enumerate(op.operands):
                if value == arguments[0]:
                    op.operands[place] = following
        scf.YieldOp([*end.operands, *(value for value, _ in users)])
    end.erase()
    for old, result in zip(loop.results, new.results, strict=False):
        old.replace_all_uses_with(result)
    loop.erase()
    return [operation(following.owner), *group]


def _users_outside(
    group: Sequence[ir.Operation],
) -> list[tuple[ir.Value, list[tuple[ir.Operation, int]]]]:
    """Values of a group that others use, and where these do."""
    members = set(group)
    found = []
    for value in (value for op in group for value in op.results):
        uses = [(operation(use.owner), use.operand_number) for use in value.uses]
        if others := [(user, place) for user, place in uses if user not in members]:
            found.append((value, others))
    return found


def _clones(
    group: Sequence[ir.Operation], known: dict[ir.Value, ir.Value]
) -> dict[ir.Value, ir.Value]:
    """Clone a group and tell what stands for each of its values."""
    for op in group:
        clone = op.clone()
        for place, value in enumerate(clone.operands):
            if value in known:
                clone.operands[place] = known[value]
        known.update(zip(op.results, clone.results, strict=True))
    return known
