# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rearrange a weight in a function of its own; the module's function takes what that returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import func

from conv_compiler.ir.dispatches import REGION
from conv_compiler.problem.directions import (
    COMPUTED,
    KEEP_WEIGHT,
    RESULT_MEMORY,
    STATED_DIRECTION,
    STATED_KEPT,
    STATED_OPERANDS,
    STATED_RESULT_SLICES,
    STATED_RESULTS,
    STATED_SLICES,
)

_REFLECTION, _ARGUMENTS, _RESULTS = "iree.reflection", "arg_attrs", "res_attrs"
# What gives the same elements in another shape.
_VIEWS = ("tensor.collapse_shape", "tensor.expand_shape", "flow.tensor.reshape")
_EMPTY = ("tensor.empty", "arith.constant")
# What launches a kernel: a region that becomes one, and a call of one that a pass has written.
_KERNELS = (REGION, "flow.dispatch")


@dataclass(frozen=True, kw_only=True)
class KeepWeight:
    """Move the kernels that read operand `operand` alone from the module's function to
    `@keep_weight`.

    `@keep_weight` takes the operand and returns what these kernels make of it. The module's
    function takes that in the operand's place. Where kernels read the operand as it is, it is among
    what is kept. Ops outside dispatch regions stay, for IREE may put them into the kernels behind.
    """

    name: ClassVar[str] = "keep-weight"

    operand: int

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place."""
        (main,) = (op for op in module.body if _REFLECTION in op.attributes)
        kept = _kept(main, self.operand)
        with ir.InsertionPoint(module.body), ir.Location.unknown():
            keeper = main.operation.clone()
        _return_kept(keeper, self.operand, kept)
        _take_kept(main.operation, self.operand, kept)


# A value of the function's block: the number of its op, and that of the result. None is the
# operand itself.
_Place = tuple[int, int] | None


def _block(function: ir.Operation | ir.OpView) -> ir.Block:
    return function.regions[0].blocks[0]


def _kept(main: ir.OpView, operand: int) -> list[_Place]:
    """What is kept, in the order in which kernels read it."""
    block = _block(main)
    weight = block.arguments[operand]
    number = {op.operation: at for at, op in enumerate(block)}
    alone = _alone(block, weight)
    found: list[_Place] = []
    for op in number:
        if op in alone:
            continue
        for value in _read(op, block):
            if value != weight and _maker(value) not in alone:
                continue
            made, result = _made(value)
            place = (number[made], result) if op.name in _KERNELS and made else None
            if place not in found:
                found.append(place)
    return found or [None]


def _alone(block: ir.Block, weight: ir.Value) -> set[ir.Operation]:
    """The ops whose values follow from the weight alone."""
    alone: set[ir.Operation] = set()
    free: set[ir.Operation] = set()
    for op in (one.operation for one in block):
        read = list(_read(op, block))
        if op.name in _EMPTY and not read:
            free.add(op)
        elif read and all(one == weight or _maker(one) in alone | free for one in read):
            alone.add(op)
    return alone


def _read(op: ir.Operation, block: ir.Block) -> Iterator[ir.Value]:
    """The values of the function's block that an op reads, in its regions too."""
    for value in op.operands:
        made = _maker(value)
        if (value.owner if made is None else made.block) == block:
            yield value
    for region in op.regions:
        for inner in region:
            for one in inner:
                yield from _read(one.operation, block)


def _maker(value: ir.Value) -> ir.Operation | None:
    """The op that a value is a result of."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def _made(value: ir.Value) -> tuple[ir.Operation | None, int]:
    """The op that makes what a value is a view of, and the number of its result."""
    while (made := _maker(value)) and made.name in _VIEWS:
        value = made.operands[0]
    return made, ir.OpResult(value).result_number if made else 0


def _values(function: ir.Operation, operand: int, places: list[_Place]) -> list[ir.Value]:
    block = _block(function)
    every = list(block)
    return [
        block.arguments[operand] if place is None else every[place[0]].results[place[1]]
        for place in places
    ]


def _return_kept(keeper: ir.Operation, operand: int, kept: list[_Place]) -> None:
    """Make the function one that takes the weight and returns what is kept."""
    block = _block(keeper)
    names, stated = _names(keeper), _stated(keeper)
    values = _values(keeper, operand, kept)
    end = list(block)[-1]
    with ir.InsertionPoint(end), ir.Location.unknown():
        func.ReturnOp(values)
    end.operation.erase()
    _erase_unread(block)
    for number in reversed(range(len(block.arguments))):
        if number != operand:
            block.erase_argument(number)
    keeper.attributes["sym_name"] = ir.StringAttr.get(KEEP_WEIGHT)
    _retype(keeper, block, [value.type for value in values])
    for name in (_ARGUMENTS, _RESULTS):
        if name in keeper.attributes:
            del keeper.attributes[name]
    stated |= {STATED_OPERANDS: names[operand], STATED_RESULTS: _numbered(kept)}
    # Slices are of other operands and of the module's results.
    for name in (STATED_SLICES, STATED_RESULT_SLICES):
        stated.pop(name, None)
    _state(keeper, stated)


def _take_kept(main: ir.Operation, operand: int, kept: list[_Place]) -> None:
    """Let the function take what is kept in the place of the weight."""
    block = _block(main)
    values = _values(main, operand, kept)
    names, stated, count = _names(main), _stated(main), len(block.arguments)
    attributes = list(main.attributes[_ARGUMENTS]) if _ARGUMENTS in main.attributes else []
    taken = [block.add_argument(value.type, ir.Location.unknown()) for value in values]
    for value, argument in zip(values, taken, strict=True):
        value.replace_all_uses_with(argument)
    behind = [block.arguments[number] for number in range(operand + 1, count)]
    for value in behind:
        value.replace_all_uses_with(block.add_argument(value.type, ir.Location.unknown()))
    _erase_unread(block)
    for number in reversed(range(operand, count)):
        block.erase_argument(number)
    _retype(main, block, [value.type for value in list(block)[-1].operands])
    if attributes:
        plain = [ir.DictAttr.get({})] * len(kept)
        main.attributes[_ARGUMENTS] = ir.ArrayAttr.get(
            [*attributes[:operand], *plain, *attributes[operand + 1 :]]
        )
    results = stated.get(STATED_RESULTS, COMPUTED[stated[STATED_DIRECTION]][1])
    words = (*names[:operand], _numbered(kept), *names[operand + 1 :])
    stated |= {STATED_OPERANDS: ",".join(words), STATED_RESULTS: results}
    stated[STATED_KEPT] = str(operand)
    if slices := stated.get(STATED_SLICES):
        parts = slices.split(",")
        parts[operand : operand + 1] = [""] * len(kept)
        stated[STATED_SLICES] = ",".join(parts)
    _state(main, stated)


def _erase_unread(block: ir.Block) -> None:
    """Erase the ops whose results nothing reads; a payload's ops have no other effect."""
    *ops, _end = block
    for op in reversed(ops):
        if not any(True for result in op.results for _ in result.uses):
            op.operation.erase()


def _retype(function: ir.Operation, block: ir.Block, results: list[ir.Type]) -> None:
    kind = ir.FunctionType.get([value.type for value in block.arguments], results)
    function.attributes["function_type"] = ir.TypeAttr.get(kind)


def _numbered(kept: list[_Place]) -> str:
    return ",".join(f"kept{number}" for number in range(len(kept)))


def _names(function: ir.Operation) -> list[str]:
    """The names of a function's operands; memory for results is none."""
    stated = _stated(function)
    if STATED_OPERANDS in stated:
        return stated[STATED_OPERANDS].split(",")
    attributes = function.attributes.get(_ARGUMENTS, ())
    memory = sum(RESULT_MEMORY in ir.DictAttr(one) for one in attributes)
    count = len(_block(function).arguments) - memory
    return [*COMPUTED[stated[STATED_DIRECTION]][0], "d"][:count]


def _stated(function: ir.Operation) -> dict[str, str]:
    pairs = ir.DictAttr(function.attributes[_REFLECTION])
    named = (pairs[number] for number in range(len(pairs)))
    return {one.name: str(ir.StringAttr(one.attr).value) for one in named}


def _state(function: ir.Operation, stated: dict[str, str]) -> None:
    function.attributes[_REFLECTION] = ir.DictAttr.get(
        {name: ir.StringAttr.get(text) for name, text in stated.items()}
    )
