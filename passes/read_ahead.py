"""Carry operations of a loop's next trip into this one."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, scf

from conv_compiler.passes.loop_ops import kind, operation


def closure(loop: ir.Operation, wanted: Sequence[ir.Operation]) -> list[ir.Operation] | None:
    """Operations of a loop's body with all of it that they need, in order; None where these hang
    on what the trip before computed."""
    block = loop.regions[0].blocks[0]
    body = [one.operation for one in block.operations]
    number = {op: i for i, op in enumerate(body)}
    iv, *carried = block.arguments
    found = set(wanted)
    waiting = list(wanted)
    while waiting:
        for value in waiting.pop().operands:
            if value in carried:
                return None
            if not isinstance(value.owner, ir.OpView | ir.Operation):
                continue
            op = operation(value.owner)
            if op in number and op not in found:
                if kind(op) != "value":
                    return None
                found.add(op)
                waiting.append(op)
    return sorted(found, key=lambda op: number[op])


def carry(loop: ir.Operation, group: Sequence[ir.Operation]) -> tuple[ir.Operation, list[ir.Operation]]:
    """The loop that runs some operations of its body a trip early: once before it, and in each trip
    those of the next; and what that runs for them. `group` is closed."""
    block = loop.regions[0].blocks[0]
    iv = block.arguments[0]
    lower, upper, step, *inits = loop.operands
    members = set(group)  # before operands change: an operation's hash hangs on them
    outside = [
        (value, users)
        for op in group
        for value in op.results
        if (users := [(user, use.operand_number) for use in value.uses
                      if (user := operation(use.owner)) not in members])
    ]
    with ir.InsertionPoint(loop):
        first = _clones(group, {iv: lower})
        new = scf.ForOp(lower, upper, step, [*inits, *(first[one] for one, _ in outside)])
    inside = new.regions[0].blocks[0]
    *body, end = (one.operation for one in block.operations)
    for op in [*body, end]:
        inside.append(op)
    ours = list(inside.arguments)
    count = len(block.arguments)
    for old, arg in zip(list(block.arguments), ours, strict=False):
        old.replace_all_uses_with(arg)
    for (_, users), arg in zip(outside, ours[count:], strict=True):
        for user, at in users:
            user.operands[at] = arg
    with ir.InsertionPoint(end):
        following = arith.AddIOp(ours[0], step).result
    for op in group:
        op.move_before(end)
        for i, value in enumerate(op.operands):
            if value == ours[0]:
                op.operands[i] = following
    with ir.InsertionPoint(end):
        scf.YieldOp([*end.operands, *(value for value, _ in outside)])
    end.erase()
    for old, result in zip(list(loop.results), list(new.results), strict=False):
        old.replace_all_uses_with(result)
    loop.erase()
    return new.operation, [operation(following.owner), *group]


def _clones(group: Sequence[ir.Operation], known: dict[ir.Value, ir.Value]) -> dict[ir.Value, ir.Value]:
    known = dict(known)
    for op in group:
        clone = op.clone()
        for i, value in enumerate(clone.operands):
            if value in known:
                clone.operands[i] = known[value]
        known.update(zip(op.results, clone.results, strict=True))
    return known
