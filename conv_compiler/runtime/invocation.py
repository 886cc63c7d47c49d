# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The call of a module's function, and what the function states of itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from iree.runtime import HalBufferView, VmVariantList

from conv_compiler.problem.directions import RESULT_MEMORY


def invocation(context: Any, function: Any) -> Callable[..., Any]:
    """The function as one of buffer views that returns its one result's.

    `iree.runtime.FunctionInvoker` copies numpy arrays, and its own bookkeeping costs 4 us a call.
    """
    invoke = context.invoke

    def call(*views: Any) -> Any:
        arguments, results = VmVariantList(len(views)), VmVariantList(1)
        for view in views:
            arguments.push_ref(view)
        invoke(function, arguments, results)
        return results.get_as_object(0, HalBufferView)

    return call


def stated_tensors(function: Any) -> tuple[list[str], str, bool]:
    """The types of a function's operands and of its result, and whether it takes memory for that.

    A type is as in `2x3xf16`. Raises what the bindings raise for a function that states none.
    """
    declaration = function.reflection["iree.abi.declaration"]
    arguments, results = declaration.split("->")
    operands, (result,) = (re.findall(r"tensor<([^>]*)>", part) for part in (arguments, results))
    takes_result = RESULT_MEMORY in arguments
    return operands[: -1 if takes_result else None], result, takes_result
