# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One module of several, whose kernels are machine code already.

Each comes with a function of a name of its own, and the kernels that it has alone. Beside them
there is one function more, `@main`, that calls them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from iree.compiler import ir

from conv_compiler.errors import CompileFailed

_REFLECTION, _DECLARATION, _SYMBOL = "iree.reflection", "iree.abi.declaration", "sym_name"
_TENSOR = re.compile(r"tensor<[^>]*>(?: \{[^}]*\})?")
_DEVICE = "__device_"
VIEW = "!hal.buffer_view"


def link(
    names: Sequence[str], texts: Sequence[str], main: Callable[[Sequence[ir.Operation]], None]
) -> str:
    """The module of several, from the text of each and the name of its function; `main` adds
    `@main` behind these functions, which it is given in order.

    Raises CompileFailed where MLIR refuses the module.
    """
    with ir.Context(), ir.Location.unknown():
        try:
            first, *others = (ir.Module.parse(text) for text in texts)
            for name, other in zip(names[1:], others, strict=True):
                _take_over(first, other, name)
            functions = [_named(first, name) for name in names]
            with ir.InsertionPoint(first.body):
                main(functions)
            first.operation.verify()
            return str(first)
        except ir.MLIRError as error:
            reason = " ".join(str(error).split())[:300]
            raise CompileFailed(f"link: MLIR refused the module: {reason}") from error


def _take_over(module: ir.Module, other: ir.Module, added: str) -> None:
    """Move all ops of another module behind those of the first, but for what both have.

    That is the device and what it was asked. An initializer has no name, and goes with the global
    in front of it. Something else of a name that is there, as a constant of a type that both have,
    gets `added` behind it.
    """
    there = {name for op in module.body if (name := _symbol(op))}
    for op in other.body:
        name = _symbol(op)
        if name in there and not name.startswith(_DEVICE):
            renamed = f"{name}_{added}"
            ir.SymbolTable.replace_all_symbol_uses(name, renamed, other.operation)
            ir.SymbolTable.set_symbol_name(op.operation, renamed)
    name = ""
    for op in list(other.body):
        name = _symbol(op) or name
        if name not in there:
            module.body.append(op)


def _symbol(op: ir.OpView) -> str:
    """Its name, empty for an op that has none."""
    attributes = op.operation.attributes
    return str(ir.StringAttr(attributes[_SYMBOL]).value) if _SYMBOL in attributes else ""


def _named(module: ir.Module, name: str) -> ir.Operation:
    (found,) = (op.operation for op in module.body if _symbol(op) == name)
    return found


def stated(function: ir.Operation) -> dict[str, str]:
    """What a function states of itself."""
    pairs = ir.DictAttr(function.attributes[_REFLECTION])
    named = (pairs[i] for i in range(len(pairs)))
    return {one.name: str(ir.StringAttr(one.attr).value) for one in named}


def declared(function: ir.Operation) -> tuple[list[str], list[str]]:
    """The tensors that a function declares to take, with their attributes, and to return."""
    operands, results = (
        _TENSOR.findall(part) for part in stated(function)[_DECLARATION].split("->")
    )
    return operands, results


def main_function(
    operands: Sequence[str], results: Sequence[str], reflection: Mapping[str, str]
) -> ir.Block:
    """Put an empty `@main` of these tensors into the module and return its first block.

    It declares them, and states `reflection` besides.
    """
    taken = ", ".join(f"%input{number}: {type}" for number, type in enumerate(operands))
    given = ", ".join(f"%output{number}: {type}" for number, type in enumerate(results))
    declaration = f"sync func @main({taken}) -> ({given})"
    view = ir.Type.parse(VIEW)
    function = ir.Operation.create(
        "util.func",
        attributes={
            _SYMBOL: ir.StringAttr.get("main"),
            "function_type": ir.TypeAttr.get(
                ir.FunctionType.get([view] * len(operands), [view] * len(results))
            ),
            "iree.abi.stub": ir.UnitAttr.get(),
            _REFLECTION: ir.DictAttr.get(
                {
                    name: ir.StringAttr.get(text)
                    for name, text in {**reflection, _DECLARATION: declaration}.items()
                }
            ),
        },
        regions=1,
    )
    return function.regions[0].blocks.append(*[view] * len(operands))


def called(name: str, operands: Sequence[ir.Value], results: int) -> list[ir.Value]:
    """What a function of the module returns for these operands."""
    call = ir.Operation.create(
        "util.call",
        results=[ir.Type.parse(VIEW)] * results,
        operands=operands,
        attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
    )
    return list(call.results)


def returned(values: Sequence[ir.Value]) -> None:
    """End a block by returning values."""
    ir.Operation.create("util.return", operands=values)
