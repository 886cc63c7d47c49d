# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One module of the modules of a layer's results, whose kernels are machine code already.

Each comes with a function of its result's name, and the kernels that it has alone. Beside them
there is one function more, `@main`, that takes every operand once, calls each, and returns all
results.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from iree.compiler import ir

from conv_compiler.errors import CompileFailed
from conv_compiler.problem.directions import (
    STATED_DIRECTION,
    STATED_OPERANDS,
    STATED_RESULTS,
)
from conv_compiler.problem.layer import Layer

_REFLECTION, _DECLARATION, _SYMBOL = "iree.reflection", "iree.abi.declaration", "sym_name"
_TENSOR = re.compile(r"tensor<[^>]*>(?: \{[^}]*\})?")
_VIEW = "!hal.buffer_view"
_DEVICE = "__device_"
_FUNCTION, _CALL, _RETURN = "util.func", "util.call", "util.return"


def link(layer: Layer, texts: Sequence[str]) -> str:
    """The module of a layer, from the text of each of its results' modules.

    Raises CompileFailed where two have something of one name that is not the same.
    """
    with ir.Context(), ir.Location.unknown():
        try:
            first, *others = (ir.Module.parse(text) for text in texts)
            for other in others:
                _take_over(first, other)
            functions = [_named(first, result) for result in layer.results]
            with ir.InsertionPoint(first.body):
                _main(layer, functions)
            first.operation.verify()
            return str(first)
        except ir.MLIRError as error:
            reason = " ".join(str(error).split())[:300]
            raise CompileFailed(f"link: MLIR refused the module: {reason}") from error


def _take_over(module: ir.Module, other: ir.Module) -> None:
    """Move all ops of another module behind those of the first, but for what both have.

    That is the device and what it was asked. An initializer has no name, and goes with the global
    in front of it. All else has a result's name in its own.
    """
    there = {_symbol(op) for op in module.body}
    name = ""
    for op in list(other.body):
        name = _symbol(op) or name
        if name not in there:
            module.body.append(op)
        elif not name.startswith(_DEVICE):
            raise CompileFailed(f"link: two of the modules have a {name}; compile them apart")


def _symbol(op: ir.OpView) -> str:
    """Its name, empty for an op that has none."""
    attributes = op.operation.attributes
    return str(ir.StringAttr(attributes[_SYMBOL]).value) if _SYMBOL in attributes else ""


def _named(module: ir.Module, name: str) -> ir.Operation:
    (found,) = (op.operation for op in module.body if _symbol(op) == name)
    return found


def _stated(function: ir.Operation) -> dict[str, str]:
    """What a function states of itself."""
    pairs = ir.DictAttr(function.attributes[_REFLECTION])
    named = (pairs[i] for i in range(len(pairs)))
    return {one.name: str(ir.StringAttr(one.attr).value) for one in named}


def _main(layer: Layer, functions: Sequence[ir.Operation]) -> None:
    """The function of all operands and all results: memory for results last, in their order."""
    view = ir.Type.parse(_VIEW)
    stated = [_stated(one) for one in functions]
    declared = [_tensors(one[_DECLARATION]) for one in stated]
    places = [layer.operands_of(number) for number in range(len(functions))]
    types = [""] * len(layer.operand_names)
    for (operands, _), place in zip(declared, places, strict=True):
        for at, type in zip(place, operands, strict=False):
            types[at] = type
    into = layer.problems[0].result_operand
    memory = [operands[-1] for operands, _ in declared] if into else []
    arguments = [f"%input{i}: {type}" for i, type in enumerate([*types, *memory])]
    results = [f"%output{i}: {type}" for i, (_, type) in enumerate(declared)]
    shared = {name: text for one in stated for name, text in one.items()}
    del shared[STATED_DIRECTION]
    reflection = {
        **shared,
        _DECLARATION: f"sync func @main({', '.join(arguments)}) -> ({', '.join(results)})",
        STATED_OPERANDS: ",".join(layer.operand_names),
        STATED_RESULTS: ",".join(layer.results),
    }
    function = ir.Operation.create(
        _FUNCTION,
        attributes={
            _SYMBOL: ir.StringAttr.get("main"),
            "function_type": ir.TypeAttr.get(
                ir.FunctionType.get([view] * len(arguments), [view] * len(results))
            ),
            "iree.abi.stub": ir.UnitAttr.get(),
            _REFLECTION: ir.DictAttr.get(
                {name: ir.StringAttr.get(text) for name, text in reflection.items()}
            ),
        },
        regions=1,
    )
    block = function.regions[0].blocks.append(*[view] * len(arguments))
    with ir.InsertionPoint(block):
        values = []
        for number, (result, place) in enumerate(zip(layer.results, places, strict=True)):
            given = [block.arguments[at] for at in place]
            if into:
                given.append(block.arguments[len(types) + number])
            call = ir.Operation.create(
                _CALL,
                results=[view],
                operands=given,
                attributes={"callee": ir.FlatSymbolRefAttr.get(result)},
            )
            values.append(call.results[0])
        ir.Operation.create(_RETURN, operands=values)


def _tensors(declaration: str) -> tuple[list[str], str]:
    """The tensors that a function declares to take, with their attributes, and what it returns."""
    operands, results = (_TENSOR.findall(part) for part in declaration.split("->"))
    return operands, results[0]
