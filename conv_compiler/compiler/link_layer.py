# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The function of a layer's module that takes every operand once and returns all results."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from conv_compiler.compiler.link import called, declared, main_function, returned, stated
from conv_compiler.problem.directions import (
    STATED_DIRECTION,
    STATED_OPERANDS,
    STATED_RESULT_SLICES,
    STATED_RESULTS,
    STATED_SLICES,
)
from conv_compiler.problem.layer import Layer


def _slices(layer: Layer, functions: Sequence[ir.Operation]) -> dict[str, str]:
    """What is stated of operands and results that are slices."""
    operands, results = [""] * len(layer.operand_names), [""] * len(layer.results)
    for number, one in enumerate(functions):
        said = stated(one)
        for at, part in zip(
            layer.operands_of(number), said.get(STATED_SLICES, "").split(","), strict=False
        ):
            operands[at] = operands[at] or part
        own = layer.results_of(number)
        parts = said.get(STATED_RESULT_SLICES, "").split(",")
        results[own] = [*parts, *results[own][len(parts) :]]
    found = {STATED_SLICES: operands, STATED_RESULT_SLICES: results}
    return {name: ",".join(parts) for name, parts in found.items() if any(parts)}


def layer_main(layer: Layer, functions: Sequence[ir.Operation]) -> None:
    """`@main`, which calls the function of each result: memory for results last, in their order."""
    every = [declared(one) for one in functions]
    places = [layer.operands_of(number) for number in range(len(functions))]
    types = [""] * len(layer.operand_names)
    for (operands, _), place in zip(every, places, strict=True):
        for at, type in zip(place, operands, strict=False):
            types[at] = type
    into = layer.problems[0].result_operand
    results = [type for _, made in every for type in made]
    memory = [type for operands, made in every for type in operands[-len(made) :] if into]
    shared = {name: text for one in functions for name, text in stated(one).items()}
    del shared[STATED_DIRECTION]
    names = {
        STATED_OPERANDS: ",".join(layer.operand_names),
        STATED_RESULTS: ",".join(layer.results),
    }
    slices = _slices(layer, functions)
    block = main_function([*types, *memory], results, {**shared, **names, **slices})
    with ir.InsertionPoint(block):
        values: list[ir.Value] = []
        for number, (name, place) in enumerate(zip(layer.functions, places, strict=True)):
            given = [block.arguments[at] for at in place]
            if into:
                given += list(block.arguments)[len(types) :][layer.results_of(number)]
            values += called(name, given, len(every[number][1]))
        returned(values)
