# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The call of a module's function, and what the function states of itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from iree.runtime import HalBufferView, VmVariantList

from conv_compiler.problem.directions import (
    COMPUTED,
    RESULT_MEMORY,
    STATED_DIRECTION,
    STATED_OPERANDS,
    STATED_RESULTS,
)

Names = tuple[str, ...]


def invocation(context: Any, function: Any, results: int = 1) -> Callable[..., list[Any]]:
    """The function as one of buffer views that returns those of its results.

    `iree.runtime.FunctionInvoker` copies numpy arrays, and its own bookkeeping costs 4 us a call.
    """
    invoke = context.invoke

    def call(*views: Any) -> list[Any]:
        arguments, given = VmVariantList(len(views)), VmVariantList(results)
        for view in views:
            arguments.push_ref(view)
        invoke(function, arguments, given)
        return [given.get_as_object(number, HalBufferView) for number in range(results)]

    return call


def stated_tensors(function: Any) -> tuple[list[str], list[str], bool]:
    """The types of a function's operands and of its results, and whether it takes memory for these.

    A type is as in `2x3xf16`. Raises what the bindings raise for a function that states none.
    """
    declaration = function.reflection["iree.abi.declaration"]
    arguments, results = declaration.split("->")
    operands, made = (re.findall(r"tensor<([^>]*)>", part) for part in (arguments, results))
    takes_result = RESULT_MEMORY in arguments
    return operands[: -len(made) if takes_result else None], made, takes_result


def stated_names(stated: Mapping[str, str], operands: int, results: int) -> tuple[Names, Names]:
    """The names of a function's operands and of its results, by what it states of itself.

    A module of plain iree-compile states nothing, and is taken for a weight gradient. Raises
    ValueError for other numbers than it states.
    """
    if STATED_RESULTS in stated:
        names = tuple(stated[STATED_OPERANDS].split(","))
        made = tuple(stated[STATED_RESULTS].split(","))
    else:
        names, one = COMPUTED[stated.get(STATED_DIRECTION) or "bwd_weight"]
        more = (f"operand {i}" for i in range(len(names) + 1, operands))
        names, made = (*names, "d", *more)[:operands], (one,)
    if (len(names), len(made)) != (operands, results):
        raise ValueError(f"{operands} operands and {results} results are not {names} and {made}")
    return names, made
